//! The objects of the daemon's Namespace that say whether and where this cluster belongs, as far as the member reads them.

use std::{collections::BTreeMap, fmt};

use api::{
    about::{ClusterProperty, ClusterPropertySpec},
    cluster_claim::ClusterClaim,
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus, READY},
    condition::AntreaCondition,
    label,
    membership::Via,
    view::{Lenient, annotated, decodable, lean},
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// Reason of the condition of a ClusterSet that this cluster has left.
pub(super) const LEFT: &str = "Left";

/// A ClusterSet.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
pub(super) struct Set {
    #[serde(deserialize_with = "annotated")]
    pub(super) metadata: ObjectMeta,
    #[serde(default = "no_spec")]
    pub(super) spec: Lenient<ClusterSetSpec>,
    #[serde(default)]
    pub(super) status: Lenient<ClusterSetStatus>,
}

fn no_spec() -> Lenient<ClusterSetSpec> {
    Lenient(Err("it has no spec".into()))
}

impl Set {
    /// When it was created, as the API server writes it.
    pub(super) fn created(&self) -> String {
        self.metadata.creation_timestamp.as_ref().map(|at| at.0.to_string()).unwrap_or_default()
    }

    /// How its leader is reached, as its annotations say.
    pub(super) fn via(&self) -> Via {
        let says = |key| self.annotations().get(key).filter(|value| !value.is_empty()).cloned();
        Via { proxy: says(label::PROXY_URL), server_name: says(label::TLS_SERVER_NAME) }
    }

    /// What it says of imports that are to go: see [`label::LET_GO`].
    pub(super) fn lets_go(&self) -> Option<String> {
        self.metadata.annotations.as_ref()?.get(label::LET_GO).cloned()
    }

    /// Whether nobody has deleted it.
    pub(super) fn is_live(&self) -> bool {
        self.metadata.deletion_timestamp.is_none()
    }

    /// Whether it leaves it to a ClusterClaim to name this cluster.
    pub(super) fn needs_claim(&self) -> bool {
        self.spec.0.as_ref().is_ok_and(|spec| spec.cluster_id.is_empty())
    }

    /// Its condition of this type.
    pub(super) fn condition(&self, type_: &str) -> Option<&AntreaCondition> {
        let conditions = &self.status.0.as_ref().ok()?.conditions;
        conditions.iter().find(|c| c.type_.as_deref() == Some(type_))
    }

    /// The reason of its condition `Ready`.
    pub(super) fn reason(&self) -> Option<&str> {
        self.condition(READY)?.reason.as_deref()
    }

    /// Whether this cluster has left it: only a change of its `spec` makes it a ClusterSet to join.
    pub(super) fn is_left(&self) -> bool {
        let observed = self.status.0.as_ref().ok().and_then(|status| status.observed_generation);
        self.reason() == Some(LEFT) && observed == self.metadata.generation
    }
}

/// A ClusterClaim.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterClaim)]
pub(super) struct Claim {
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    value: Lenient<String>,
}

impl Claim {
    /// What it says.
    pub(super) fn value(&self) -> &str {
        self.value.0.as_deref().unwrap_or_default()
    }
}

/// A ClusterProperty as we own it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ClusterProperty)]
pub(super) struct Property {
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Option<ClusterPropertySpec>>,
}

impl Property {
    pub(super) fn of(name: &str, value: &str) -> Self {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Self { metadata, spec: Lenient(Ok(Some(ClusterPropertySpec { value: value.into() }))) }
    }

    /// What it says; nothing where that does not decode.
    pub(super) fn value(&self) -> &str {
        self.spec.0.as_ref().ok().and_then(Option::as_ref).map(|spec| spec.value.as_str()).unwrap_or_default()
    }

    /// Whether we made it, and nobody took it over.
    pub(super) fn is_ours(&self) -> bool {
        self.labels().get(label::MANAGED_BY).is_some_and(|value| value == label::FREEPORT)
    }
}

/// A Secret.
#[derive(Resource, Clone, Deserialize)]
#[resource(inherit = Secret)]
pub(super) struct Credential {
    #[serde(deserialize_with = "lean")]
    pub(super) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "decodable")]
    pub(super) data: BTreeMap<String, ByteString>,
}

/// Shows nothing of the content.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::membership::note::Note;

    const FIELDS: &[&str] = &["value", "clusterID", "leaders", "conditions", "lastTransitionTime", "token"];

    proptest! {
        #[test]
        fn a1_no_object_stops_a_list(odd in odd::anything(FIELDS)) {
            odd::everywhere::<Set>(&odd).unwrap();
            odd::everywhere::<Claim>(&odd).unwrap();
            for property in odd::everywhere::<Property>(&odd).unwrap() {
                let _ = property.value();
            }
            odd::everywhere::<Credential>(&odd).unwrap();
            odd::everywhere::<Note>(&odd).unwrap();
        }
    }
}
