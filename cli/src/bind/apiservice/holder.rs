//! The holder of a contract: the cluster that uses it.

use api::bind::{
    binding::ClusterBinding,
    holder::{self, Other},
};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::request::Contract;
use crate::{
    Error,
    bind::holder::other,
    cluster::{Cluster, known},
};

impl Contract {
    /// Makes the consumer the one that holds the contract. Refused where another cluster does, unless its contract is to be taken over.
    pub(super) async fn hold(&self, consumer: &Cluster, take_over: bool) -> Result<(), Error> {
        let called = format!("ClusterBinding {}/cluster", self.namespace);
        let bindings = self.cluster_bindings();
        let binding = self.provider.request(format!("read {called}"), bindings.get("cluster")).await?;
        let status = binding.status.clone().unwrap_or_default();
        if let Some(other) = other(consumer, &status).await?.filter(|_| !take_over) {
            return Err(consumer.refuse(in_use(&self.namespace, &other)));
        }
        if holder::held_by(&status) == Some(&consumer.uid) {
            return Ok(());
        }
        let conditions = holder::noted(&status.conditions, &consumer.uid, Timestamp::now());
        let metadata = json!({"resourceVersion": binding.resource_version()});
        let patch = Patch::Merge(json!({"metadata": metadata, "status": {"conditions": conditions}}));
        let with = PatchParams::default();
        let write = bindings.patch_status("cluster", &with, &patch);
        self.provider.request(format!("note this cluster in {called}"), write).await.map(drop)
    }

    /// Reports whether the consumer is noted as the holder of the contract.
    pub(super) async fn is_held_by(&self, consumer: &Cluster) -> Result<bool, Error> {
        let doing = format!("read ClusterBinding {}/cluster", self.namespace);
        let bindings = self.cluster_bindings();
        let binding = self.provider.request(doing, known(bindings.get("cluster"))).await?;
        let status = binding.and_then(|binding| binding.status).unwrap_or_default();
        Ok(holder::held_by(&status) == Some(&consumer.uid))
    }

    fn cluster_bindings(&self) -> Api<ClusterBinding> {
        Api::namespaced(self.provider.client.clone(), &self.namespace)
    }
}

fn in_use(namespace: &str, other: &Other) -> String {
    format!(
        "the contract in Namespace {namespace} of the provider is in use by {other}: nothing was changed. Two clusters with one contract would delete each \
         other's objects: ask the provider for one of this cluster's own (freeport bind apiservice --only provider, with another --identity); if that \
         cluster is gone, run this with --take-over"
    )
}
