//! The kinds that offloading reads, reduced to what it uses. Those it also writes hold exactly what it owns of them.

mod shadow;

use api::{
    label as general,
    offload::{
        label,
        map::{NamespaceMap, NamespaceMapSpec, NamespaceMapStatus},
        names,
        offer::{OffloadOffer, OffloadOfferSpec},
        quantity::Resources,
    },
    view::{Lenient, is_written_by, lean, ours_annotated, unlabelled},
};
use k8s_openapi::api::core::v1 as core;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::shadow::{HostedPod, NewPod, PeerPod, TwinAccount, TwinBinding};

/// A Namespace of this cluster: one that is offloaded, the twin of one, or any other.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Namespace)]
pub(crate) struct Namespace {
    /// Labels and annotations say whose twin it is.
    #[serde(deserialize_with = "ours_annotated")]
    pub(crate) metadata: ObjectMeta,
}

impl Namespace {
    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    /// Reports whether this member wrote it: of a copy of a twin others did.
    pub(crate) fn is_made_here(&self) -> bool {
        is_written_by(&self.metadata, general::MEMBER)
    }

    /// The cluster and the Namespace there that it says to be the twin of, by map `map`. Somebody may have taken labels off; then what
    /// this member once wrote is its own.
    pub(crate) fn twin_of(&self, map: &str) -> Option<(&str, &str)> {
        let (home, _) = self.home().filter(|(_, record)| *record == map)?;
        let is_ours = match self.label(general::MANAGED_BY) {
            Some(by) => by == general::FREEPORT,
            None => self.is_made_here(),
        };
        let is_of_home = self.label(label::REMOTE_CLUSTER_ID).is_none_or(|label| label == home);
        let original = self.annotations().get(label::ORIGINAL_NAME)?;
        (is_ours && is_of_home).then_some((home, original.as_str()))
    }

    /// The cluster that it was made for, and the map, as it says itself.
    pub(crate) fn home(&self) -> Option<(&str, &str)> {
        let map = self.annotations().get(label::MANAGED_BY_NAMESPACE_MAP)?;
        names::of_namespace_map(map).map(|(home, _)| (home, map.as_str()))
    }
}

/// A Node that stands for another cluster, as far as it is ours to say.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Node)]
pub(crate) struct VirtualNode {
    /// Labels, and in an annotation which of them we set.
    #[serde(deserialize_with = "ours_annotated")]
    pub(crate) metadata: ObjectMeta,
    /// Its taints, also those of others: they are one list.
    #[serde(default)]
    pub(crate) spec: VirtualNodeSpec,
    /// What it says of itself.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<VirtualNodeStatus>,
}

impl VirtualNode {
    /// Whether Freeport made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.labels().get(general::MANAGED_BY).is_some_and(|by| by == general::FREEPORT)
            || is_written_by(&self.metadata, general::MEMBER)
    }

    /// Reports whether this member made it as the Node of a cluster. A copy has another name, or somebody else wrote it.
    pub(crate) fn is_made_here(&self) -> bool {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let is_of = |of: &str| self.labels().get(label::REMOTE_CLUSTER_ID).is_none_or(|id| id == of);
        names::of_virtual_node(name).is_some_and(is_of) && is_written_by(&self.metadata, general::MEMBER)
    }
}

/// The part of a Node's spec that we read and write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct VirtualNodeSpec {
    /// As they are on the wire: those of others go back unread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) taints: Vec<Value>,
    /// Whether it is cordoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unschedulable: Option<bool>,
}

/// The part of a Node's status that we write.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct VirtualNodeStatus {
    /// What it has of each resource.
    #[serde(default)]
    pub(crate) capacity: Resources,
    /// What Pods may take of that.
    #[serde(default)]
    pub(crate) allocatable: Resources,
    /// Among them `Ready`.
    #[serde(default)]
    pub(crate) conditions: Vec<NodeCondition>,
}

impl VirtualNodeStatus {
    /// What it says of being ready.
    pub(crate) fn ready(&self) -> Option<&NodeCondition> {
        self.condition(READY)
    }

    /// Its condition of this type.
    pub(crate) fn condition(&self, type_: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

/// Condition type of a Node: it takes Pods.
pub(crate) const READY: &str = "Ready";

/// A condition of a Node. Its times are text: others may write what we cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeCondition {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) last_transition_time: Option<String>,
}

/// A NamespaceMap whose origin we are.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = NamespaceMap)]
pub(crate) struct OwnMap {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What we want.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<NamespaceMapSpec>>,
    /// What the host says.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<NamespaceMapStatus>,
}

impl OwnMap {
    /// Whether what we want can be read, and what the host says.
    pub(crate) fn reads(&self) -> (bool, bool) {
        (matches!(self.spec.0, Ok(Some(_))), self.status.0.is_ok())
    }
}

/// A NamespaceMap whose destination we are.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = NamespaceMap)]
pub(crate) struct PeerMap {
    #[serde(deserialize_with = "unlabelled")]
    pub(crate) metadata: ObjectMeta,
    /// What the home wants.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<NamespaceMapSpec>>,
    /// What we say.
    #[serde(default)]
    pub(crate) status: Lenient<NamespaceMapStatus>,
}

/// An OffloadOffer of ours.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = OffloadOffer)]
pub(crate) struct OwnOffer {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What another cluster may use here.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<OffloadOfferSpec>>,
}

/// An OffloadOffer to us.
#[derive(Resource, Clone, Debug, PartialEq, Deserialize)]
#[resource(inherit = OffloadOffer)]
pub(crate) struct PeerOffer {
    #[serde(deserialize_with = "unlabelled")]
    pub(crate) metadata: ObjectMeta,
    /// What we may use there.
    #[serde(default)]
    pub(crate) spec: Lenient<Option<OffloadOfferSpec>>,
}

#[cfg(test)]
mod tests;
