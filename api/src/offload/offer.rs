//! `OffloadOffer`: what a host lets a home use.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{
    names,
    quantity::{self, Resources},
};

/// OffloadOffer says what one cluster, the host, lets another, the home, use: what its OffloadPeer allows. The member of the host writes
/// it into the Common Area; users never do.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.freeport.dev",
    version = "v1alpha1",
    kind = "OffloadOffer",
    namespaced,
    derive = "PartialEq",
    category = "multicluster",
    selectable = ".spec.host",
    selectable = ".spec.home",
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Home", type_ = "string", json_path = ".spec.home"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct OffloadOfferSpec {
    /// ID of the cluster that offers.
    #[schemars(length(max = 63))]
    pub host: String,
    /// ID of the cluster that may use it.
    #[schemars(length(max = 63))]
    pub home: String,
    /// Capacity of the node that the host is at home. It cannot be left out: nothing is said on purpose.
    #[schemars(schema_with = "quantity::resources")]
    pub resources: Resources,
    /// Labels that the host wants on that node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Public key of the host, in base64: Pods for it are sealed with it.
    pub public_key: String,
}

impl OffloadOfferSpec {
    /// The only name that the record of this pair may have.
    pub fn name(&self) -> String {
        names::offer(&self.host, &self.home)
    }
}
