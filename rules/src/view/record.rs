//! A member's own record in the Common Area.

use api::{
    condition::AntreaCondition,
    resource_export::{FAILURE, ResourceExport, ResourceExportSpec, ResourceExportStatus},
    view::{Lenient, ours},
};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// One of our own records in the Common Area.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ResourceExport)]
pub struct OwnRecord {
    /// Name, labels, generation.
    #[serde(deserialize_with = "ours")]
    pub metadata: ObjectMeta,
    /// What it exports.
    #[serde(default)]
    pub spec: Lenient<ResourceExportSpec>,
    /// What the leader writes about it.
    #[serde(default, skip_serializing)]
    pub status: Lenient<ResourceExportStatus>,
}

impl OwnRecord {
    /// What the leader has against this record, if anything.
    pub fn failure(&self) -> Option<&AntreaCondition> {
        let said = self.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        said.iter().find(|condition| condition.type_.as_deref() == Some(FAILURE))
    }

    /// What a verdict on just this record has observed.
    pub fn version(&self) -> String {
        let uid = self.metadata.uid.as_deref().unwrap_or_default();
        format!("{uid}/{}", self.metadata.generation.unwrap_or_default())
    }
}
