//! Whatever a home asks for, and whatever is there: a host comes to an end, and touches nothing that it did not make.

use proptest::{collection, prelude::*, sample::select};

use super::*;

const RECORD: &str = "1.west.east";
const ORIGINALS: [&str; 5] = ["shop", "web", "default", "a", "b"];
const TWINS: [&str; 7] = ["shop-west", "web-west", "a-west", "mine", "kube-system", "default", "team-a"];
/// More rounds than any order of deletions takes: a deleted Namespace is gone in the next one.
const ROUNDS: usize = 3;

fn refused() -> Refusal {
    Refusal::NotAccepted { home: "west".into() }
}

fn consent() -> impl Strategy<Value = Option<Incoming>> {
    let patterns = collection::vec(select(vec!["team-*", "*", "mine", "kube-*"]), 0..3);
    let incoming = (patterns, 0..5).prop_map(|(patterns, max_namespaces)| Incoming {
        namespaces: patterns.into_iter().map(Into::into).collect(),
        max_namespaces,
        ..Incoming::default()
    });
    proptest::option::of(incoming)
}

fn spec() -> impl Strategy<Value = NamespaceMapSpec> {
    let name = |names: &'static [&'static str]| select(names).prop_map(str::to_owned);
    let desired = collection::btree_map(name(&ORIGINALS), name(&TWINS), 0..5);
    let withdrawn = collection::btree_map(name(&ORIGINALS), 0..9_i64, 0..5);
    (desired, withdrawn).prop_map(|(desired_mapping, withdrawn)| NamespaceMapSpec {
        desired_mapping,
        withdrawn,
        ..NamespaceMapSpec::default()
    })
}

/// Namespaces that are there: twins of that home, of another map, and others, some of them without the labels that we gave them.
fn there() -> impl Strategy<Value = BTreeMap<String, Namespace>> {
    let kind = prop_oneof![4 => Just(Some(RECORD)), 1 => Just(Some("1.north.east")), 2 => Just(None)];
    let one = (select(&TWINS[..]), (select(&ORIGINALS[..]), kind, any::<bool>()));
    collection::vec(one, 0..6).prop_map(|all| {
        let namespace = |(name, (original, record, labelled)): (&str, (&str, Option<&str>, bool))| {
            let Some(record) = record else {
                let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
                return (name.to_owned(), Namespace { metadata });
            };
            let home = if record == RECORD { "west" } else { "north" };
            let around = Around {
                home,
                record,
                incoming: Err(refused()),
                twins: &[],
                exists: &|_| false,
                system: &|_| BTreeSet::new(),
            };
            let mut made = made(original, name, &around);
            if !labelled {
                made.metadata.labels = None;
            }
            (name.to_owned(), made)
        };
        all.into_iter().map(namespace).collect()
    })
}

/// Takes the steps of one round; whether any of them writes.
fn round(
    there: &mut BTreeMap<String, Namespace>,
    spec: &NamespaceMapSpec,
    incoming: Option<&Incoming>,
) -> bool {
    let ours = |namespace: &&Namespace| namespace.twin_of(RECORD).is_some();
    let twins: Vec<_> = there.values().filter(ours).cloned().collect();
    let steps = {
        let exists = |name: &str| there.contains_key(name);
        let system = |_: &str| BTreeSet::from(["kube-system".to_owned(), "default".to_owned()]);
        let around = Around {
            home: "west",
            record: RECORD,
            incoming: incoming.ok_or_else(refused),
            twins: &twins,
            exists: &exists,
            system: &system,
        };
        plan(spec, &around)
    };
    let mut writes = false;
    for (_, step) in steps {
        match step {
            Step::Create(twin) => {
                writes = true;
                assert!(there.insert(twin.name_any(), twin).is_none(), "it was there");
            }
            Step::Mend { have, want } => {
                writes |= have != want;
                there.insert(want.name_any(), want);
            }
            Step::Delete(twin) => {
                writes = true;
                assert!(twin.twin_of(RECORD).is_some(), "somebody else's: {twin:?}");
                there.remove(&twin.name_any());
            }
            Step::Refuse { .. } | Step::Wait { .. } | Step::Keep { .. } => {}
        }
    }
    writes
}

proptest! {
    #[test]
    fn a_host_comes_to_an_end_and_touches_nobody_elses(
        spec in spec(), before in there(), incoming in consent(),
    ) {
        let mut there = before.clone();
        let mut rounds = 0;
        while round(&mut there, &spec, incoming.as_ref()) {
            rounds += 1;
            prop_assert!(rounds <= ROUNDS, "{there:?}");
        }
        let is_ours = |namespace: &Namespace| namespace.twin_of(RECORD).is_some();
        let foreign = |all: &BTreeMap<String, Namespace>| -> Vec<Namespace> {
            all.values().filter(|namespace| !is_ours(namespace)).cloned().collect()
        };
        prop_assert_eq!(foreign(&before), foreign(&there));
        for twin in there.values().filter(|namespace| is_ours(namespace)) {
            let (home, original) = twin.twin_of(RECORD).unwrap();
            prop_assert_eq!(home, "west");
            prop_assert!(!spec.withdraws(original), "a twin that is withdrawn");
        }
        for (name, twin) in &before {
            let is_withdrawn = twin.twin_of(RECORD).is_some_and(|(_, original)| spec.withdraws(original));
            prop_assert!(is_withdrawn || there.contains_key(name), "a twin went that is not withdrawn");
        }
        let had = before.values().filter(|namespace| is_ours(namespace)).count();
        let has = there.values().filter(|namespace| is_ours(namespace)).count();
        let most = usize::try_from(incoming.map_or(0, |incoming| incoming.max_namespaces)).unwrap();
        prop_assert!(has <= had.max(most), "{has} of {most}, had {had}");
    }
}
