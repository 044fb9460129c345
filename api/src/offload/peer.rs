//! `OffloadPeer`: what the administrator of a cluster allows another one, and wants of it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    map::{ENTRIES_MAX, MappedNamespace},
    quantity::{self, Resources},
};

/// OffloadPeer is about another cluster of the set, whose ID is its name. With `incoming`, Namespaces and Pods of that cluster may
/// come here. With `outgoing`, that cluster becomes a node here, once its own administrator has allowed it. Without an OffloadPeer
/// nothing comes and nothing goes.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.freeport.dev",
    version = "v1alpha1",
    kind = "OffloadPeer",
    status = "OffloadPeerStatus",
    derive = "PartialEq",
    category = "multicluster",
    validation = Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')").message("the name must be the ID of a cluster: one or two lower-case DNS labels of at most 63 characters together"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct OffloadPeerSpec {
    /// What that cluster may bring here. Without it: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming: Option<Incoming>,
    /// That cluster is a node here. `outgoing: {}` is all there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outgoing: Option<Outgoing>,
}

/// What another cluster may bring.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Incoming {
    /// Names that twins of its Namespaces may have, besides `<namespace>-<ID of that cluster>`, which they always may. `*` stands for
    /// any text, also none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(max = 63)))]
    pub namespaces: Vec<String>,
    /// Most Namespaces it may have here.
    #[serde(default = "max_namespaces")]
    #[schemars(range(min = 0, max = ENTRIES_MAX))]
    pub max_namespaces: i32,
    /// What its Pods may take of this cluster: the capacity of the node that this cluster is there. Of what is not named here
    /// there are 4 `cpu`, 8Gi `memory`, 110 `pods` and 20Gi `ephemeral-storage`. More than 500 `pods` count as 500.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    #[schemars(schema_with = "quantity::resources")]
    pub resources: Resources,
    /// Labels of the node that this cluster is there, for example `liqo.io/region`. Those of `kubernetes.io` and `node*.kubernetes.io`
    /// cannot be set, nor what says that it is a virtual node and whose (`type`, `liqo.io/type`, `liqo.io/remote-cluster-id`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Level of Pod Security that Kubernetes enforces in the twins.
    #[serde(default)]
    pub pod_security: PodSecurity,
}

/// Another cluster is a node here.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Outgoing {}

/// Level of Pod Security (Kubernetes' Pod Security Standards).
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PodSecurity {
    /// Everything is allowed.
    Privileged,
    /// Known ways to privileges are not.
    #[default]
    Baseline,
    /// Pods have to be hardened.
    Restricted,
}

impl PodSecurity {
    /// The word in the label of a Namespace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

fn max_namespaces() -> i32 {
    100
}

/// Of each resource, what is there where the consent does not name it.
const RESOURCES: [(&str, &str); 4] =
    [("cpu", "4"), ("memory", "8Gi"), ("pods", "110"), ("ephemeral-storage", "20Gi")];

impl Default for Incoming {
    fn default() -> Self {
        Self {
            namespaces: Vec::new(),
            max_namespaces: max_namespaces(),
            resources: Resources::new(),
            node_labels: BTreeMap::new(),
            pod_security: PodSecurity::default(),
        }
    }
}

impl Incoming {
    /// What may be taken of each resource. A node without `pods` would take none, so each has a default of its own.
    pub fn capacity(&self) -> Resources {
        let defaults = RESOURCES.map(|(resource, amount)| (resource.to_owned(), Quantity(amount.to_owned())));
        defaults.into_iter().chain(self.resources.clone()).collect()
    }
}

/// What is missing, if anything; and what outlives the node.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OffloadPeerStatus {
    /// `Ready`: what was allowed and asked for works, or what is missing for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// Labels that others than Freeport set on the node of that cluster. If the node is deleted while no member runs, it is made anew
    /// with them: clusters may be selected by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Namespaces of this cluster that have a twin in that one, or are to have one, and no NamespaceOffloading any more, which vanished: by
    /// name, the name of the twin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub lost_offloadings: BTreeMap<String, String>,
    /// Namespaces of that cluster whose twin this cluster refuses to make, or to change: by name, what it says of it in the NamespaceMap.
    /// The first 100 of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = REFUSED_MAX))]
    pub refused_namespaces: BTreeMap<String, MappedNamespace>,
    /// Twins here of Namespaces of that cluster whose NamespaceMap neither wants them nor withdraws them, or is missing: by name, the name of
    /// the Namespace there. They stay, as nobody decided that they go. The first 100 of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = UNMAPPED_MAX))]
    pub unmapped_twins: BTreeMap<String, String>,
}

/// Number of Namespaces that [`OffloadPeerStatus::refused_namespaces`] names at most.
pub const REFUSED_MAX: usize = 100;

/// Number of twins that [`OffloadPeerStatus::unmapped_twins`] names at most.
pub const UNMAPPED_MAX: usize = 100;

/// Condition type of an OffloadPeer: what was allowed and asked for works.
pub const READY: &str = "Ready";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_consent_does_not_name_has_a_default() {
        let incoming: Incoming = serde_json::from_value(json!({})).unwrap();
        assert_eq!(incoming, Incoming::default());
        assert_eq!((incoming.max_namespaces, incoming.pod_security.as_str()), (100, "baseline"));
        let some: Incoming =
            serde_json::from_value(json!({"resources": {"cpu": 16, "nvidia.com/gpu": "1"}})).unwrap();
        let capacity = json!(some.capacity());
        let want = json!({"cpu": "16", "memory": "8Gi", "pods": "110", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"});
        assert_eq!(capacity, want);
        assert_eq!(quantity::check(&some.capacity()), Ok(()));
    }
}
