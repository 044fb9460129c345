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
use crate::{Error, bind::holder::other, cluster::Cluster};

impl Contract {
    /// Makes the consumer the one that holds the contract. Refused where another cluster does, unless its contract is to be taken over.
    pub(super) async fn hold(&self, consumer: &Cluster, take_over: bool) -> Result<(), Error> {
        let bindings = Api::<ClusterBinding>::namespaced(self.provider.client.clone(), &self.namespace);
        let called = format!("ClusterBinding {}/cluster", self.namespace);
        let read = bindings.get("cluster");
        let binding = self.provider.request(format!("read {called}"), read).await?;
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
}

fn in_use(namespace: &str, other: &Other) -> String {
    format!(
        "the contract in Namespace {namespace} of the provider is in use by {other}: nothing was changed. Two clusters with one contract would delete each \
         other's objects: ask the provider for one of this cluster's own (freeport bind apiservice --only provider, with another --identity); if that \
         cluster is gone, run this with --take-over"
    )
}
