//! APIServiceNamespaces go when the Namespace of our cluster that they are for is gone.
//!
//! Watches APIServiceNamespaces and our Namespaces. Deletes APIServiceNamespaces that are ours; the provider then deletes its Namespace.
//! Objects are not left behind: each holds its Namespace here until its copy is gone. A Namespace that is not there is gone, also if
//! that was not seen: the credential is noted to be this cluster's, and one that was restored from a backup synchronizes nothing.

use api::{
    bind::{binding::APIServiceBinding, export::APIServiceNamespace},
    label::MEMBER,
};
use k8s_openapi::api::core::v1::Namespace;
use kit::write::{Error, Writer};
use kube::ResourceExt;
use std::{collections::BTreeSet, time::Duration};
use tokio_util::sync::CancellationToken;

use super::{binding::leaves_copies, contract::Contract, local::Local};

/// How soon a deletion is tried again that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// Of one contract.
pub(crate) struct Namespaces {
    contract: Contract,
    local: Local,
    here: Writer,
}

impl Namespaces {
    pub(crate) fn new(contract: &Contract, local: &Local) -> Self {
        let env = &contract.env;
        let here = Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone());
        Self { contract: contract.clone(), local: local.clone(), here }
    }

    /// Goes on until `stop`.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        let (mut here, mut there) = (self.local.changes(), self.contract.changes());
        loop {
            here.mark_unchanged();
            there.mark_unchanged();
            let failed = self.pass().await.is_err();
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = here.changed() => {}
                Ok(()) = there.changed() => {}
                () = tokio::time::sleep(AGAIN), if failed => {}
            }
        }
    }

    async fn pass(&self) -> Result<(), Error> {
        let exports: BTreeSet<_> =
            self.contract.known.with(|known| known.exports.iter().map(ResourceExt::name_any).collect());
        let (live, leaves_copies) = self.local.known.with(|known| {
            let live: BTreeSet<_> = known.namespaces.iter().map(ResourceExt::name_any).collect();
            let is_ours = |binding: &&APIServiceBinding| exports.contains(&binding.name_any());
            (live, known.bindings.iter().filter(is_ours).any(leaves_copies))
        });
        if leaves_copies {
            return Ok(());
        }
        let all: Vec<_> = self.contract.known.with(|known| known.namespaces.iter().cloned().collect());
        let mut failed = Ok(());
        for namespace in all.iter().filter(|namespace| is_over(namespace, &live)) {
            let name = namespace.name_any();
            if let Err(error) = self.take_back(namespace, &name).await {
                tracing::warn!(namespace = name, %error, "the APIServiceNamespace was not deleted, trying again");
                failed = Err(error);
            }
        }
        failed
    }

    /// The watch of our Namespaces may be behind that of the provider: what is new there is not gone here. So the API server is asked.
    async fn take_back(&self, namespace: &APIServiceNamespace, name: &str) -> Result<(), Error> {
        let mut here = Namespace::default();
        here.metadata.name = Some(name.to_owned());
        match self.here.read(&here).await {
            Ok(_) => Ok(()),
            Err(Error::Gone) => {
                tracing::info!(
                    namespace = name,
                    "the Namespace is gone here: taking it back from the provider"
                );
                self.contract.writer.delete(namespace, false).await
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether what was made for the Namespace is ours to take back, and it is not here any more.
fn is_over(namespace: &APIServiceNamespace, live: &BTreeSet<String>) -> bool {
    let is_going = namespace.metadata.deletion_timestamp.is_some();
    !is_going && !Contract::is_providers(namespace) && !live.contains(&namespace.name_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_ours_and_is_gone_is_taken_back() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let of = |labels: serde_json::Value| -> APIServiceNamespace {
            serde_json::from_value(json!({"metadata": {"name": "team1", "labels": labels}, "spec": {}}))
                .unwrap()
        };
        assert!(is_over(&of(json!({})), &set(&["other"])));
        assert!(!is_over(&of(json!({})), &set(&["team1"])));
        assert!(!is_over(&of(json!({"kube-bind.io/owner": "provider"})), &set(&[])));
    }
}
