use kit::objects::Change;
use proptest::prelude::*;

use super::*;
use crate::identity::Identity;
use crate::offload::arrivals::{Known, Looks, events, seen};

/// The steps in words, without what is no news.
fn look(known: &Known, home: &str) -> BTreeMap<String, Vec<String>> {
    let known = &known.all;
    let record = names::namespace_map(home, &known.us.cluster);
    let entry = known.clusters.get(&home.to_owned()).unwrap_or_default();
    let Some(spec) = entry.asked_here() else { return [(home.to_owned(), vec![])].into() };
    let twins = twins(known, home, &record, &entry);
    let steps = desired(known, (home, &record), &entry, spec, &twins);
    let words = steps.into_iter().map(|(namespace, step)| {
        let step = match step {
            Step::Create(twin) => format!("create {:?}", twin.metadata),
            Step::Mend { have, want } => {
                let twin = want.name_any();
                let is_bound = known.namespaces.get(&twin).is_some_and(|entry| entry.binding.is_some());
                let labels = [have.labels(), want.labels()];
                format!("mend {twin} {labels:?}, takes Pods: {}, {is_bound}", takes_pods(known, &twin))
            }
            Step::Refuse { twin, why } => format!("refuse {twin}: {why:?}"),
            Step::Wait { twin } => format!("wait for {twin}"),
            Step::Keep { twin } => format!("keep {twin}"),
            Step::Delete(twin) => format!("delete {}, is going: {}", twin.name_any(), twin.is_going()),
        };
        format!("{namespace}: {step}")
    });
    [(home.to_owned(), words.collect())].into()
}

const LOOKS: Looks<Vec<String>> =
    Looks { queue: |known| known.clusters.queue(2), keys: |known| known.clusters.keys(), at: look };

proptest! {
    #[test]
    fn whoever_makes_twins_has_seen_the_last_of_what_decides_them(events in events()) {
        let [last, now] = seen(&events, &LOOKS, &[]);
        prop_assert_eq!(last, now);
    }
}

#[test]
fn a_copy_of_a_twin_is_nobodys() {
    let us = Identity { cluster: "east".into(), common_area: "area".into() };
    let known = Knowledge::new(us, "freeport".into(), None);
    let labels = json!({"app.kubernetes.io/managed-by": "freeport", "liqo.io/remote-cluster-id": "west"});
    let named = [
        ("shop-west", "freeport-member", "shop"),
        ("copied", "kubectl", "web"),
        ("restored", "velero", "shop"),
    ];
    for (name, manager, original) in named {
        let annotations =
            json!({"liqo.io/managed-by-namespace-map": "1.west.east", "liqo.io/original-name": original});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations,
            "managedFields": [{"manager": manager, "operation": "Update"}]});
        let namespace = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        known.change_namespaces(Change::Apply(namespace));
    }
    let spec = json!({"origin": "west", "destination": "east", "desiredMapping": {"web": "copied"}, "withdrawn": {"shop": 1}});
    let said = json!({"currentMapping": {
        "shop": {"remoteNamespace": "restored", "phase": "Accepted"},
        "web": {"remoteNamespace": "copied", "phase": "CreationLoopBackOff"},
    }});
    let map = json!({"metadata": {"name": "1.west.east"}, "spec": spec, "status": said});
    known.clusters.change(Change::Apply(serde_json::from_value::<PeerMap>(map).unwrap()));
    let entry = known.clusters.get(&"west".to_owned()).unwrap();
    let twins = twins(&known, "west", "1.west.east", &entry);
    let names: std::collections::BTreeSet<_> = twins.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["restored", "shop-west"].map(str::to_owned).into());
    let steps = desired(&known, ("west", "1.west.east"), &entry, entry.asked_here().unwrap(), &twins);
    let asked: Vec<_> =
        steps.iter().filter(|(namespace, _)| namespace == "web").map(|(_, step)| step).collect();
    assert!(matches!(asked[..], [Step::Refuse { .. }]), "not by the word of its home: {asked:?}");
}
