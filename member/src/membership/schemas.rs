//! CRDs of the kinds that say where this cluster belongs. Somebody who puts a CRD right that had lost a field puts the ClusterSet right
//! in the same moment, and a watch may tell it as the CRD was before. So the kinds are listed again after each change.

use std::{collections::HashMap, sync::Arc};

use api::{cluster_claim::ClusterClaim, cluster_set::ClusterSet, crd::Version, view::Meta};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::{
    boot::Env,
    objects::Change,
    watch::{IN_FORCE, Source, Watches},
    write::Writer,
};
use kube::{Api, CustomResourceExt, ResourceExt, runtime::watcher};
use tokio::{sync::Notify, task::JoinSet};

use crate::home::Home;

/// Watches the CRDs, and has `kinds` listed again when one changed. Nothing waits for the lists.
pub(super) fn watch(env: &Env, home: &Home, kinds: [Watches; 2], writer: Writer, tasks: &mut JoinSet<()>) {
    let changed = Arc::new(Notify::new());
    for name in [ClusterSet::crd_name(), ClusterClaim::crd_name()] {
        let (changed, mut known) = (changed.clone(), HashMap::new());
        tasks.spawn(Watches::guarded(home.guard()).watch(
            Api::<Meta<CustomResourceDefinition>>::all(env.client.clone()),
            watcher::Config::default().fields(&format!("metadata.name={name}")),
            Source { cluster: "local", kind: "CustomResourceDefinition" },
            env.metrics.clone(),
            move |change| {
                if take_in(&mut known, change) {
                    changed.notify_one();
                }
            },
        ));
    }
    tasks.spawn(async move {
        loop {
            changed.notified().await;
            tokio::time::sleep(IN_FORCE).await;
            // What an older CRD did not keep is written again when it is read.
            writer.forget_undeclared();
            kinds.iter().for_each(Watches::list_again);
        }
    });
}

/// Takes in what a watch told; whether a CRD is another one than before.
fn take_in(known: &mut HashMap<String, Version>, change: Change<Meta<CustomResourceDefinition>>) -> bool {
    let there = match change {
        Change::Apply(crd) => vec![crd],
        Change::Reset(crds) => crds,
        // When it is there again, it is another one.
        Change::Remove(_) => vec![],
    };
    let mut changed = false;
    for crd in there {
        let now = Version::of(&crd);
        let before = known.insert(crd.name_any(), now.clone());
        changed |= before.is_some_and(|before| before != now);
    }
    changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_counts_as_another_one_when_its_spec_changed_or_it_was_made_anew() {
        let crd = |uid: &str, generation: i64| {
            let metadata = json!({"name": "c", "uid": uid, "generation": generation});
            serde_json::from_value::<Meta<_>>(json!({"metadata": metadata})).unwrap()
        };
        let mut known = HashMap::new();
        let mut told = |change| take_in(&mut known, change);
        assert!(!told(Change::Reset(vec![crd("u", 1)])), "the first list");
        assert!(!told(Change::Apply(crd("u", 1))), "its status");
        assert!(told(Change::Apply(crd("u", 2))));
        assert!(!told(Change::Remove(crd("u", 2))));
        assert!(told(Change::Apply(crd("v", 1))));
        assert!(told(Change::Reset(vec![crd("v", 3)])), "the watch missed it");
    }
}
