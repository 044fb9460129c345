//! The CRDs of this cluster that may be another's: what they do not know of what we write (rule R-78). Exports and imports go on
//! as far as they can; what is lost is said on the ClusterSet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kit::{
    index::Readers,
    objects::Change,
    watch::{Source, Watches},
};
use kube::{Api, ResourceExt, runtime::watcher};
use tokio::{sync::Notify, task::JoinSet};

use super::Link;

/// What each kind lacks, by kind; kinds that lack nothing are not in it.
pub(super) type Lacking = BTreeMap<String, BTreeSet<String>>;

/// CRDs of the Multi-Cluster Services API, which several implementations install. Watches are told apart by their names.
const WATCHED: [(&str, &str); 2] = [
    ("serviceexports.multicluster.x-k8s.io", "CustomResourceDefinition serviceexports"),
    ("serviceimports.multicluster.x-k8s.io", "CustomResourceDefinition serviceimports"),
];

/// By then an API server goes by the CRD that it has told of.
const IN_FORCE: Duration = Duration::from_secs(5);

impl Link {
    /// Nothing waits for these: without the right to look nothing can be said of them, and that is all.
    pub(super) fn watch_schemas(&self, tasks: &mut JoinSet<()>) {
        let (watches, changed) = (Watches::default(), Arc::new(Notify::new()));
        tasks.spawn(write_again(self.clone(), changed.clone()));
        for (name, kind) in WATCHED {
            let (link, changed) = (self.clone(), changed.clone());
            tasks.spawn(watches.watch(
                Api::<CustomResourceDefinition>::all(self.env.client.clone()),
                watcher::Config::default().fields(&format!("metadata.name={name}")),
                Source { cluster: "local", kind },
                self.env.metrics.clone(),
                move |change| {
                    if link.lacking.with(|lacking| take(lacking, change)) {
                        link.told.notify_one();
                        changed.notify_one();
                    }
                },
            ));
        }
    }
}

/// What was lost for want of a field is written once there is one; no watch tells of that.
async fn write_again(link: Link, changed: Arc<Notify>) {
    loop {
        changed.notified().await;
        tokio::time::sleep(IN_FORCE).await;
        link.here.forget_undeclared();
        link.knowledge.services.enqueue_all(Readers::ALL);
    }
}

/// Whether what is lacking changed. A CRD that is gone is no old one: that its kind cannot be watched is said elsewhere.
fn take(lacking: &mut Lacking, change: Change<CustomResourceDefinition>) -> bool {
    let before = lacking.clone();
    let (installed, gone) = match change {
        Change::Apply(crd) => (vec![crd], None),
        Change::Reset(crds) => (crds, None),
        Change::Remove(crd) => (vec![], Some(crd)),
    };
    if let Some(crd) = gone {
        lacking.remove(&crd.spec.names.kind);
    }
    for crd in installed {
        let ours = crd::member().into_iter().find(|ours| ours.name_any() == crd.name_any());
        let lacks = ours.map(|ours| crd::lacks(&crd, &ours)).unwrap_or_default();
        let kind = crd.spec.names.kind;
        if lacks.is_empty() {
            lacking.remove(&kind);
        } else {
            lacking.insert(kind, lacks);
        }
    }
    *lacking != before
}

/// As in `ServiceImport lacks spec.ipFamilies, status.conditions`.
pub(super) fn words(lacking: &Lacking) -> Vec<String> {
    let of_kind = |(kind, lacks): (&String, &BTreeSet<String>)| {
        let lacks: Vec<_> = lacks.iter().map(String::as_str).collect();
        format!("{kind} lacks {}", lacks.join(", "))
    };
    lacking.iter().map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r78_an_old_crd_is_told_of_until_it_is_a_new_one_or_gone() {
        let new = || crd::member().into_iter().find(|crd| crd.spec.names.kind == "ServiceImport").unwrap();
        let mut old = new();
        old.spec.versions.pop();
        let mut lacking = Lacking::default();
        assert!(take(&mut lacking, Change::Reset(vec![old.clone()])));
        assert!(!take(&mut lacking, Change::Reset(vec![old.clone()])));
        assert_eq!(words(&lacking), ["ServiceImport lacks version v1beta1"]);
        assert!(take(&mut lacking, Change::Apply(new())));
        assert!(words(&lacking).is_empty());
        assert!(take(&mut lacking, Change::Apply(old.clone())));
        assert!(take(&mut lacking, Change::Remove(old)));
        assert!(words(&lacking).is_empty());
    }
}
