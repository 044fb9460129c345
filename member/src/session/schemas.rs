//! CRDs of this cluster that somebody else may have installed: which fields that we write they lack (rule R-78). Exports and imports
//! go on as far as they can; the ClusterSet reports what is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::crd::{self, Installed};
use kit::{
    index::Shared,
    objects::Change,
    watch::{IN_FORCE, Source, Watches},
};
use kube::{Api, runtime::watcher};
use tokio::{sync::Notify, task::JoinSet};

use super::table::Table;
use crate::feature::Access;

/// What each kind lacks, by kind; kinds that lack nothing are not in it.
pub(super) type Lacking = BTreeMap<String, BTreeSet<String>>;

/// Watches these CRDs and has it reported when what they lack changes. Nothing waits for the lists: without the right to read
/// CRDs nothing is reported.
pub(super) fn watch(
    access: &Access,
    crds: BTreeSet<&'static str>,
    table: &Arc<Table>,
    tasks: &mut JoinSet<()>,
) -> Shared<Lacking> {
    let env = &access.env;
    let (lacking, changed) = (Shared::<Lacking>::default(), Arc::new(Notify::new()));
    tasks.spawn(write_again(table.clone(), changed.clone()));
    for name in crds {
        let (lacking, changed, reported) = (lacking.clone(), changed.clone(), access.changed.clone());
        tasks.spawn(Watches::guarded(access.home.guard()).watch(
            Api::<Installed>::all(env.client.clone()),
            watcher::Config::default().fields(&format!("metadata.name={name}")),
            Source { cluster: "local", kind: "CustomResourceDefinition" },
            env.metrics.clone(),
            move |change| {
                if lacking.with(|lacking| take_in(lacking, change)) {
                    reported.notify_one();
                    changed.notify_one();
                }
            },
        ));
    }
    lacking
}

/// When a CRD has got a field, what was dropped without it is read and written again. No other watch tells of that.
async fn write_again(table: Arc<Table>, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        tokio::time::sleep(IN_FORCE).await;
        table.local_again();
    }
}

/// Takes in what a watch told; whether what is lacking changed. A CRD that is gone lacks nothing: that its kind cannot be watched is
/// reported elsewhere.
fn take_in(lacking: &mut Lacking, change: Change<Installed>) -> bool {
    let before = lacking.clone();
    let (installed, gone) = match change {
        Change::Apply(crd) => (vec![crd], None),
        Change::Reset(crds) => (crds, None),
        Change::Remove(crd) => (vec![], Some(crd)),
    };
    if let Some((kind, _)) = gone.and_then(|crd| crd.lacks(crd::local())) {
        lacking.remove(&kind);
    }
    for crd in installed {
        let Some((kind, lacks)) = crd.lacks(crd::local()) else { continue };
        if lacks.is_empty() {
            lacking.remove(&kind);
        } else {
            lacking.insert(kind, lacks);
        }
    }
    *lacking != before
}

/// As in `ServiceImport lacks spec.ipFamilies, status.conditions`.
pub(super) fn texts(lacking: &Lacking) -> Vec<String> {
    let of_kind = |(kind, lacks): (&String, &BTreeSet<String>)| {
        let lacks: Vec<_> = lacks.iter().map(String::as_str).collect();
        format!("{kind} lacks {}", lacks.join(", "))
    };
    lacking.iter().map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn r78_an_old_crd_is_told_of_until_it_is_a_new_one_or_gone() {
        let new = || {
            let new = crd::member().into_iter().find(|crd| crd.spec.names.kind == "ServiceImport").unwrap();
            let mut new = serde_json::to_value(new).unwrap();
            new["status"] = json!({"conditions": [{"lastTransitionTime": "9999-12-31T23:59:59Z"}]});
            new
        };
        let mut old = new();
        old["spec"]["versions"].as_array_mut().unwrap().pop();
        let [new, old] = [new(), old].map(|crd| serde_json::from_value::<Installed>(crd).unwrap());
        let mut lacking = Lacking::default();
        assert!(take_in(&mut lacking, Change::Reset(vec![old.clone()])));
        assert!(!take_in(&mut lacking, Change::Reset(vec![old.clone()])));
        assert_eq!(texts(&lacking), ["ServiceImport lacks version v1beta1"]);
        assert!(take_in(&mut lacking, Change::Apply(new)));
        assert!(texts(&lacking).is_empty());
        assert!(take_in(&mut lacking, Change::Apply(old.clone())));
        assert!(take_in(&mut lacking, Change::Remove(old)));
        assert!(texts(&lacking).is_empty());
    }
}
