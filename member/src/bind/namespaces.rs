//! APIServiceNamespaces go when the Namespace of our cluster that they are for is gone; and a Namespace that the provider wants is made.
//!
//! Watches APIServiceNamespaces and our Namespaces. Writes Namespaces for APIServiceNamespaces that the provider made itself ([`wanted`]).
//! Deletes APIServiceNamespaces that are annotated with the uid of this cluster, after which the provider deletes its Namespace, and marks those
//! in which copies are to stay ([`left`]). Annotates those that have copies of our objects, and no uid.
//! Objects are not left behind: each holds its Namespace here until its copy is gone. A Namespace that is not there is gone, also if
//! that was not seen, unless our cluster was restored from a backup that may lack it ([`absence`](super::absence)).

mod wanted;

use api::{
    bind::export::APIServiceNamespace,
    label::{CLUSTER_UID, MEMBER},
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kit::write::{Error, Writer};
use kube::{Api, ResourceExt, api::ApiResource};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    absence::{Absence, Gaps},
    contract::Contract,
    left,
    local::Local,
    policy::leaves_copies,
};

/// How soon a deletion is tried again that failed.
const AGAIN: Duration = Duration::from_secs(5);
/// How soon it is looked again whether a Namespace may be made: no event says that a right was given.
const MAY_BE_LET: Duration = Duration::from_secs(30);

/// Of one contract.
pub(crate) struct Namespaces {
    contract: Contract,
    local: Local,
    here: Api<Meta<Namespace>>,
    absence: Absence,
    /// Those that were here since we began.
    seen: BTreeSet<String>,
    writer: Writer,
    /// Those that the provider wants here and that we must not make, and when we tried.
    refused: BTreeMap<String, Instant>,
}

impl Namespaces {
    pub(crate) fn new(contract: &Contract, local: &Local, absence: Absence) -> Self {
        let client = contract.env.client.clone();
        Self {
            contract: contract.clone(),
            local: local.clone(),
            here: Api::all(client.clone()),
            absence,
            seen: BTreeSet::new(),
            writer: Writer::new(client, MEMBER, "local", contract.env.metrics.clone()),
            refused: BTreeMap::new(),
        }
    }

    /// Goes on until `stop`.
    pub(crate) async fn keep(mut self, stop: CancellationToken) {
        let (mut here, mut there) = (self.local.changes(), self.contract.changes());
        loop {
            here.mark_unchanged();
            there.mark_unchanged();
            let passed = tokio::select! {
                passed = self.pass() => passed,
                () = stop.cancelled() => return,
            };
            let again = match passed {
                Err(_) => Some(AGAIN),
                Ok(()) => (!self.refused.is_empty()).then_some(MAY_BE_LET),
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = here.changed() => {}
                Ok(()) = there.changed() => {}
                () = tokio::time::sleep(again.unwrap_or_default()), if again.is_some() => {}
            }
        }
    }

    async fn pass(&mut self) -> Result<(), Error> {
        let live: BTreeSet<_> =
            self.local.known.with(|known| known.namespaces.iter().map(ResourceExt::name_any).collect());
        self.seen.extend(live.iter().cloned());
        let all: Vec<_> = self.contract.known.with(|known| known.namespaces.iter().cloned().collect());
        let mut failed = self.make_wanted(&all, &live).await;
        failed = failed.and(self.annotate().await);
        // What leaves copies is told by its CRDs; without one nothing is taken back until it is there again.
        let Some(left) = self.left() else { return failed };
        let over = |namespace: &&APIServiceNamespace| {
            self.contract.is_for_us(namespace) && is_over(namespace, &live, &self.seen, &self.absence.gaps)
        };
        for namespace in all.iter().filter(over) {
            let name = namespace.name_any();
            if let Err(error) = self.take_back(namespace, &name, &left).await {
                tracing::warn!(namespace = name, %error, "the APIServiceNamespace was not deleted, trying again");
                failed = Err(error);
            }
        }
        failed
    }

    /// Annotates those that have copies of our objects with our uid: Go's konnector and older members do not. Marks those that note another cluster:
    /// if that one holds the contract again, it must not delete the copies of this one.
    async fn annotate(&self) -> Result<(), Error> {
        let mut done = Ok(());
        for namespace in self.contract.without_uid() {
            let mut patch = json!({"metadata": {"annotations": {CLUSTER_UID: &*self.contract.us}}});
            // Another cluster may have annotated it meanwhile.
            patch["metadata"]["resourceVersion"] = json!(namespace.resource_version());
            let marked = self.contract.writer.merge::<APIServiceNamespace>(&namespace, None, patch).await;
            done = done.and(marked.map(drop));
        }
        for namespace in self.contract.shared() {
            done = done.and(left::mark(&self.contract, &namespace).await);
        }
        done
    }

    /// The watch of our Namespaces may be behind that of the provider: what is new there is not gone here. So the API server is asked.
    async fn take_back(
        &self,
        namespace: &APIServiceNamespace,
        name: &str,
        left: &[ApiResource],
    ) -> Result<(), Error> {
        if !self.absence.is_certain(&self.here, name).await? {
            return Ok(());
        }
        tracing::info!(namespace = name, "the Namespace is gone here: taking it back from the provider");
        left::take_back(&self.contract, &self.local, namespace, left).await
    }

    /// The APIs of bindings of this contract that leave copies; nothing where that is not known.
    fn left(&self) -> Option<Vec<ApiResource>> {
        let exports =
            self.contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        left::namespaced(&self.local, &left::leaving(&self.local, &self.local.bound(exports)))
    }
}

/// Whether what was made for the Namespace is ours to take back, and it is not here any more.
fn is_over(
    namespace: &APIServiceNamespace,
    live: &BTreeSet<String>,
    seen: &BTreeSet<String>,
    gaps: &Gaps,
) -> bool {
    let (is_going, name) = (namespace.metadata.deletion_timestamp.is_some(), namespace.name_any());
    let is_gone = !live.contains(&name) && (seen.contains(&name) || gaps.are_over(&namespace.metadata));
    !is_going && !Contract::is_providers(namespace) && !leaves_copies(namespace) && is_gone
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::home::Lost;

    #[test]
    fn only_what_is_ours_and_is_gone_is_taken_back() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let of = |labels: serde_json::Value| -> APIServiceNamespace {
            serde_json::from_value(json!({"metadata": {"name": "team1", "labels": labels}, "spec": {}}))
                .unwrap()
        };
        let over = |namespace: &APIServiceNamespace, live: &[&str]| {
            is_over(namespace, &set(live), &set(&[]), &Gaps::default())
        };
        assert!(over(&of(json!({})), &["other"]));
        assert!(!over(&of(json!({})), &["team1"]));
        assert!(!over(&of(json!({"kube-bind.io/owner": "provider"})), &[]));
        let mut left = of(json!({}));
        left.annotations_mut().insert("multicluster.freeport.dev/deletion-policy".into(), "Orphan".into());
        assert!(!over(&left, &[]), "a binding left copies in it");
        let restored = Lost::between(Timestamp::UNIX_EPOCH, Timestamp::now());
        let gaps = Gaps { restored: Some(restored), unserved: None };
        let lost = |seen: &[&str]| is_over(&of(json!({})), &set(&[]), &set(seen), &gaps);
        assert!(!lost(&[]), "a backup may lack it");
        assert!(lost(&["team1"]), "it was there after the restore");
    }
}
