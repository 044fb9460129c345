//! Secrets with keys that this member makes and uses.

use std::collections::BTreeMap;

use api::{label, view::ours};
use k8s_openapi::{ByteString, api::core::v1 as core};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// A Secret.
#[derive(Resource, Clone, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Secret)]
pub(crate) struct Keys {
    /// Its label says whose it is.
    #[serde(deserialize_with = "ours")]
    pub(crate) metadata: ObjectMeta,
    /// All of it is ours, or nothing.
    #[serde(default)]
    pub(crate) data: BTreeMap<String, ByteString>,
}

impl std::fmt::Debug for Keys {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.metadata.fmt(f)
    }
}

impl Keys {
    /// A Secret of ours with this content.
    pub(crate) fn of(name: &str, namespace: &str, data: BTreeMap<String, ByteString>) -> Self {
        let labels = BTreeMap::from([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())]);
        let metadata = ObjectMeta {
            name: Some(name.into()),
            namespace: Some(namespace.into()),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        Self { metadata, data }
    }

    /// Whether it has our label. Without, it is somebody's own.
    pub(crate) fn is_ours(&self) -> bool {
        let by = self.metadata.labels.as_ref().and_then(|labels| labels.get(label::MANAGED_BY));
        by.is_some_and(|by| by == label::FREEPORT)
    }
}
