//! `NamespaceMap`: the twins that a home wants of a host, and what became of them.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names;
use crate::view::decodable;

/// Most entries of a map: what a home wants of one host, and what that says, have to fit into one object.
pub const ENTRIES_MAX: usize = 2000;
/// Most bytes that a host may take for a message. The schema leaves room for dots behind it.
pub const MESSAGE_MAX: usize = 300;

/// NamespaceMap says which Namespaces of one cluster, the origin, have twins in another, the destination. There is one for each pair,
/// in the Common Area. The member of the origin writes `spec`, the member of the destination `status`; users write neither.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceMap",
    namespaced,
    status = "NamespaceMapStatus",
    derive = "PartialEq",
    shortname = "nm",
    shortname = "nsmap",
    category = "liqo",
    selectable = ".spec.origin",
    selectable = ".spec.destination",
    printcolumn(name = "Origin", type_ = "string", json_path = ".spec.origin"),
    printcolumn(name = "Destination", type_ = "string", json_path = ".spec.destination"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapSpec {
    /// ID of the cluster with the Namespaces: their home.
    #[schemars(length(max = 63))]
    pub origin: String,
    /// ID of the cluster with the twins: their host.
    #[schemars(length(max = 63))]
    pub destination: String,
    /// For each Namespace of the origin, by name, the name that its twin shall have. It cannot be left out: none is said on purpose.
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub desired_mapping: BTreeMap<String, String>,
}

impl NamespaceMapSpec {
    /// The only name that the record of this pair may have.
    pub fn name(&self) -> String {
        names::namespace_map(&self.origin, &self.destination)
    }
}

/// What became of the twins, as their host says.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapStatus {
    /// For each Namespace of the origin that has, shall have or had a twin: what the destination says about that.
    // An entry that does not decode says nothing, and hides no other.
    #[serde(default, deserialize_with = "decodable", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = ENTRIES_MAX))]
    pub current_mapping: BTreeMap<String, MappedNamespace>,
    /// Generation of the map that the destination acted on last. Where nothing is desired any more, it says that nothing is left to delete
    /// that `currentMapping` does not name. The largest number there is where the destination has left: it acts on no generation any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What a host says about one twin.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MappedNamespace {
    /// Name of the twin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub remote_namespace: String,
    /// `Accepted`: the twin is there. `CreationLoopBackOff`: it cannot be made. `Terminating`: it is being deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub phase: String,
    /// Why, in one CamelCase word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MESSAGE_MAX + 10))]
    pub message: Option<String>,
}

/// Phase of a twin: it is there.
pub const ACCEPTED: &str = "Accepted";
/// Phase of a twin: it cannot be made.
pub const CREATION_LOOP_BACK_OFF: &str = "CreationLoopBackOff";
/// Phase of a twin: it is being deleted.
pub const TERMINATING: &str = "Terminating";
