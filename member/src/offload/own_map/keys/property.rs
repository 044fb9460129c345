//! Whatever Namespaces ask for, in whatever order they are looked at: one pass says it all, and the next one writes nothing.

use proptest::{collection, prelude::*};

use super::{
    tests::{asking, east, held},
    *,
};
use api::offload::label;
use serde_json::json;

/// What a Namespace may be like: it asks, has not the finalizer yet, is going by a decision or not, or has gone.
fn one(name: usize, kind: usize) -> Asking {
    let name = format!("ns-{name}");
    let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": "2026-11-01T12:00:00Z"});
    let withdrawn = |mut asking: Asking| {
        if let Some(entry) = Arc::get_mut(&mut asking.entry) {
            entry.withdrawn = Some("u".into());
        }
        asking
    };
    match kind {
        0 | 1 => held(&name),
        2 => asking(&name, &json!({}), &json!({})),
        3 => asking(&name, &going, &json!({})),
        4 => withdrawn(asking(&name, &going, &json!({}))),
        _ => {
            let mut gone = withdrawn(held(&name));
            if let Some(entry) = Arc::get_mut(&mut gone.entry) {
                entry.offloading = None;
            }
            Asking { name: None, ..gone }
        }
    }
}

/// `east` with a map that desires these twins.
fn with_map(desired: &BTreeMap<String, String>, withdrawn: &BTreeMap<String, i64>) -> ClusterEntry {
    let spec =
        json!({"origin": "west", "destination": "east", "desiredMapping": desired, "withdrawn": withdrawn});
    let map = json!({"metadata": {"name": "1.west.east", "generation": 7}, "spec": spec});
    ClusterEntry { own_map: serde_json::from_value(map).unwrap(), ..east() }
}

proptest! {
    #[test]
    fn one_pass_says_it_all_in_any_order(
        kinds in collection::vec(0..6_usize, 0..12),
        have in collection::btree_map(0..16_usize, any::<bool>(), 0..12),
    ) {
        let have: BTreeMap<String, String> = have
            .into_iter()
            .map(|(n, as_it_should)| (format!("ns-{n}"), if as_it_should { format!("ns-{n}-west") } else { "old".into() }))
            .collect();
        let before = with_map(&have, &BTreeMap::new());
        let all = || kinds.iter().enumerate().map(|(n, kind)| one(n, *kind));
        let forward: Vec<_> = all().collect();
        let backward: Vec<_> = all().rev().collect();
        let first = changes(&forward, "east", &before, false);
        prop_assert_eq!(&first, &changes(&backward, "east", &before, false));
        let (mut now, mut withdrawn) = (have.clone(), BTreeMap::new());
        for (namespace, change) in &first.keys {
            match change {
                Change::Desire(twin) => drop(now.insert(namespace.clone(), twin.clone())),
                Change::Withdraw => {
                    now.remove(namespace);
                    withdrawn.insert(namespace.clone(), 7);
                }
                Change::Remove => prop_assert!(false, "the host has said nothing"),
            }
        }
        let after = with_map(&now, &withdrawn);
        prop_assert_eq!(changes(&forward, "east", &after, false), Changes::default(), "a second pass");
        for (n, kind) in kinds.iter().enumerate() {
            let name = format!("ns-{n}");
            let twin = now.get(&name);
            match kind {
                0 | 1 => prop_assert_eq!(twin, Some(&format!("{name}-west"))),
                2 | 3 => prop_assert_eq!(twin, have.get(&name), "nothing was decided"),
                _ => {
                    prop_assert_eq!(twin, None);
                    prop_assert_eq!(withdrawn.contains_key(&name), have.contains_key(&name), "no end is unwritten");
                }
            }
        }
        let others = have.keys().filter(|name| forward.iter().all(|asking| asking.namespace != **name));
        for other in others {
            prop_assert_eq!(now.get(other), have.get(other), "nobody's");
        }
    }
}
