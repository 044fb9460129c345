//! `NamespaceOffloading`: where a Namespace has twins, and where its Pods may run.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::{
    api::core::v1::{NodeSelector, NodeSelectorTerm},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The only name that a NamespaceOffloading may have: there is one for each Namespace.
pub const NAME: &str = "offloading";

/// NamespaceOffloading gives its Namespace a twin in each of the selected clusters, and says where Pods that are created in it may
/// run: here, there or either. It has to be called `offloading`. When it is deleted, so are the twins with all that is in them.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceOffloading",
    namespaced,
    status = "NamespaceOffloadingStatus",
    derive = "PartialEq",
    shortname = "nso",
    shortname = "nsof",
    shortname = "nsoff",
    shortname = "nsoffloading",
    category = "liqo",
    printcolumn(
        name = "NamespaceMappingStrategy",
        type_ = "string",
        json_path = ".spec.namespaceMappingStrategy"
    ),
    printcolumn(name = "PodOffloadingStrategy", type_ = "string", json_path = ".spec.podOffloadingStrategy"),
    printcolumn(name = "OffloadingPhase", type_ = "string", json_path = ".status.offloadingPhase"),
    printcolumn(
        name = "PlacementEnforced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementEnforced\")].status"
    ),
    printcolumn(
        name = "RemoteNamespaceName",
        type_ = "string",
        json_path = ".status.remoteNamespaceName",
        priority = 10
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingSpec {
    /// What the twins are called. It cannot be changed.
    #[serde(default)]
    pub namespace_mapping_strategy: NamespaceMappingStrategy,
    /// Name of the twins, for strategy `SelectedName`: a DNS label. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub remote_namespace_name: Option<String>,
    /// Where Pods that are created in the Namespace may run. After a change, Pods that exist stay where they are.
    #[serde(default)]
    pub pod_offloading_strategy: PodOffloadingStrategy,
    /// The clusters that get a twin and take Pods, by labels of their virtual nodes. A cluster is selected if one of the terms
    /// matches; a term matches if all that is in it does. Without this, or without terms, all clusters are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<NodeSelector>,
}

impl NamespaceOffloadingSpec {
    /// The terms of the selector; none select all clusters.
    pub fn terms(&self) -> &[NodeSelectorTerm] {
        self.cluster_selector.as_ref().map_or(&[], |selector| &selector.node_selector_terms)
    }

    /// The name that is given for the twins; an empty one counts as none.
    pub fn selected_name(&self) -> Option<&str> {
        self.remote_namespace_name.as_deref().filter(|name| !name.is_empty())
    }
}

/// What the twins of a Namespace are called.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum NamespaceMappingStrategy {
    /// Name of the Namespace, `-`, ID of its cluster; a dot in the ID becomes `-`.
    #[default]
    DefaultName,
    /// As the Namespace.
    EnforceSameName,
    /// As `remoteNamespaceName` says.
    SelectedName,
}

/// Where the Pods of an offloaded Namespace may run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum PodOffloadingStrategy {
    /// In this cluster only.
    Local,
    /// In the selected clusters only.
    Remote,
    /// In this cluster and in the selected ones.
    #[default]
    LocalAndRemote,
}

impl PodOffloadingStrategy {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "Local",
            Self::Remote => "Remote",
            Self::LocalAndRemote => "LocalAndRemote",
        }
    }
}

impl fmt::Display for PodOffloadingStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far the offloading of a Namespace is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingStatus {
    /// Name of the twins, the same in every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_namespace_name: Option<String>,
    /// `Ready`, `NoClusterSelected`, `InProgress`, `SomeFailed`, `AllFailed` or `Terminating`; or `PlacementNotEnforced`: the twins are
    /// there, and condition `PlacementEnforced` is `False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloading_phase: Option<String>,
    /// For each cluster, by its ID: `OffloadingRequired`: it is selected. `Ready`: the twin is there, or what its cluster says
    /// about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_namespaces_conditions: BTreeMap<String, Vec<Condition>>,
    /// Generation of the spec this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `PlacementEnforced`: new Pods of the Namespace are placed as the strategy says. `PodsAccepted`, which is there only while it is `False`:
    /// Pods that are bound to virtual nodes are refused and do not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Condition type of a cluster: it is selected.
pub const OFFLOADING_REQUIRED: &str = "OffloadingRequired";
/// Condition type of a cluster: the twin is there.
pub const READY: &str = "Ready";

/// Condition type of a NamespaceOffloading that offloads nothing: why. It is there only while that is so.
pub const VALID: &str = "Valid";

/// Condition type of a NamespaceOffloading: new Pods of the Namespace are placed as the strategy says.
pub const PLACEMENT_ENFORCED: &str = "PlacementEnforced";
/// Condition type of a NamespaceOffloading of which Pods are refused at virtual nodes. It is there only while that is so.
pub const PODS_ACCEPTED: &str = "PodsAccepted";
/// Reason of [`PODS_ACCEPTED`], False: the message names the Pods.
pub const PODS_REFUSED: &str = "PodsRefused";

/// Reason of [`PLACEMENT_ENFORCED`], True: the webhook answers.
pub const ENFORCED: &str = "Enforced";
/// Reason of [`PLACEMENT_ENFORCED`], True: strategy `Local` needs no webhook.
pub const NOT_NEEDED: &str = "NotNeeded";
/// Reason of [`PLACEMENT_ENFORCED`], False: no webhook is configured.
pub const WEBHOOK_MISSING: &str = "WebhookMissing";
/// Reason of [`PLACEMENT_ENFORCED`], False: the webhook is not asked about every Pod.
pub const WEBHOOK_ALTERED: &str = "WebhookAltered";
/// Reason of [`PLACEMENT_ENFORCED`], False: the webhook does not answer.
pub const WEBHOOK_UNAVAILABLE: &str = "WebhookUnavailable";
/// Reason of [`PLACEMENT_ENFORCED`], False: the API server does not trust the certificate of the webhook.
pub const CERTIFICATE_UNTRUSTED: &str = "CertificateUntrusted";
