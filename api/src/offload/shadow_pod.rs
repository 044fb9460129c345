//! `ShadowPod`: a Pod of a home that runs at a host.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{names, pod_status::PodState};

/// Most characters of a sealed text. Pods have a tenth of it; a host holds those of all its homes.
pub const SEALED_MAX: usize = 64 << 10;

/// ShadowPod asks one cluster, the destination, to run a Pod of another, the origin, in the twin of its Namespace.
/// What the Pod is made of only the destination can read. The member of the origin writes `spec` into the Common
/// Area, the member of the destination `status`; users write neither.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "multicluster.freeport.dev",
    version = "v1alpha1",
    kind = "ShadowPod",
    namespaced,
    status = "ShadowPodStatus",
    derive = "PartialEq",
    category = "multicluster",
    selectable = ".spec.origin",
    selectable = ".spec.destination",
    printcolumn(name = "Origin", type_ = "string", json_path = ".spec.origin"),
    printcolumn(name = "Destination", type_ = "string", json_path = ".spec.destination"),
    printcolumn(name = "Twin", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Pod", type_ = "string", json_path = ".spec.pod"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.pod.phase"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Accepted')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodSpec {
    /// ID of the cluster whose Pod it is: its home.
    #[schemars(length(max = 63))]
    pub origin: String,
    /// ID of the cluster that runs it: its host.
    #[schemars(length(max = 63))]
    pub destination: String,
    /// The twin that it runs in, by the name that the destination gave it.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name of the Pod, the same in both clusters.
    #[schemars(length(max = 253))]
    pub pod: String,
    /// Uid of the Pod at home. A Pod that is made anew there is another one, with a record of its own.
    #[schemars(length(max = 63))]
    pub uid: String,
    /// What the Pod is made of, sealed to the public key of the destination, in base64.
    #[schemars(length(max = SEALED_MAX))]
    pub sealed: String,
    /// The Pod is to be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Deletion>,
}

impl ShadowPodSpec {
    /// The only name that the record of this Pod may have.
    pub fn name(&self) -> String {
        names::shadow_pod(&self.origin, &self.destination, &self.uid)
    }

    /// What its sealed text is about: it does not open in another record, or as another Pod.
    pub fn about(&self) -> String {
        format!("{}/{}/{}", self.name(), self.namespace, self.pod)
    }
}

/// How a Pod is to be deleted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// Seconds that the Pod has to end by itself. Without them: what the Pod itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub grace_period_seconds: Option<i32>,
}

/// How the Pod is, as its host says. In plain text, which every member can read: names of containers, images, addresses, and the beginning
/// of messages, which may quote commands and the end of logs.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodStatus {
    /// How the Pod is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodState>,
    /// The Pod was deleted as asked for, or there was none: nothing of it is left at the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// `Accepted`: the host runs the Pod, or why it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// Condition type of a ShadowPod: the host runs the Pod.
pub const ACCEPTED: &str = "Accepted";
