//! The holder of a contract: this cluster notes itself at the provider before it reads or writes anything else there. Where another one is
//! noted, nothing is done.
//!
//! Reads and writes the status of `ClusterBinding/cluster`. May run twice: who is noted stays noted.

use api::bind::{
    binding::ClusterBinding,
    holder::{self, Other},
};
use jiff::Timestamp;
use kit::write::Error;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{
    contract::Contract,
    local::{Local, NAMESPACE},
};

/// Of which there is one in a cluster namespace.
const CLUSTER: &str = "cluster";

/// Notes this cluster, unless another one holds the contract: then that one.
///
/// # Errors
/// [`Error::Stale`] where somebody else wrote it meanwhile, [`Error::Gone`] where there is no ClusterBinding.
pub(super) async fn hold(contract: &Contract, local: &Local, now: Timestamp) -> Result<Option<Other>, Error> {
    let binding = read(contract).await?;
    let status = binding.status.clone().unwrap_or_default();
    let has = |secret: &api::bind::binding::SecretName| {
        secret.namespace == NAMESPACE && local.known.with(|known| known.secrets.get(&secret.name).is_some())
    };
    if let Some(other) = holder::other(&status, &contract.us, now, has) {
        return Ok(Some(other));
    }
    if holder::held_by(&status).is_none() {
        let conditions = holder::noted(&status.conditions, &contract.us, now);
        let mut patch = json!({"status": {"conditions": conditions}});
        patch["metadata"]["resourceVersion"] = json!(binding.resource_version());
        contract.writer.merge::<ClusterBinding>(&binding, Some("status"), patch).await?;
    }
    Ok(None)
}

/// Asks the provider whether this cluster holds the contract, before something is deleted that cannot come back.
///
/// # Errors
/// [`Error::Stale`] where it does not.
pub(super) async fn ensure(contract: &Contract) -> Result<(), Error> {
    let status = read(contract).await?.status.unwrap_or_default();
    if holder::held_by(&status) == Some(&*contract.us) { Ok(()) } else { Err(Error::Stale) }
}

async fn read(contract: &Contract) -> Result<ClusterBinding, Error> {
    let bindings = Api::<ClusterBinding>::namespaced(contract.client(), &contract.cluster_namespace.name);
    bindings.get_opt(CLUSTER).await?.ok_or(Error::Gone)
}

/// Returns who else holds the contract as soon as one is noted.
pub(super) async fn taken(contract: &Contract) -> Other {
    let mut changes = contract.changes();
    loop {
        changes.mark_unchanged();
        if let Some(other) = known_other(contract) {
            return other;
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The cluster that is noted, as far as watches tell, if it is not this one.
pub(super) fn known_other(contract: &Contract) -> Option<Other> {
    contract.known.with(|known| {
        let status = known.cluster_bindings.get(CLUSTER)?.status.as_ref()?;
        let uid = holder::held_by(status).filter(|uid| *uid != &*contract.us)?;
        Some(Other::Cluster(uid.to_owned()))
    })
}
