//! A record as it is watched, and whether its member takes it back by deleting it, as Antrea's do.

use api::{
    antrea::{Members, RECORD_FINALIZERS},
    resource_export::{ResourceExport, ResourceExportSpec, ResourceExportStatus},
    view::{Lenient, lean},
};
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;

/// A ResourceExport. Whatever is in it, the watch goes on.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceExport)]
pub(crate) struct Record {
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
    /// What the member says, if it decodes.
    #[serde(default)]
    pub(crate) spec: Lenient<ResourceExportSpec>,
    /// What we said about it.
    #[serde(default)]
    pub(crate) status: Lenient<ResourceExportStatus>,
}

/// Whether a record is being deleted and has a finalizer that the leader takes off.
pub(crate) fn is_held(metadata: &ObjectMeta) -> bool {
    let ours = |finalizer: &String| RECORD_FINALIZERS.contains(&finalizer.as_str());
    metadata.deletion_timestamp.is_some() && metadata.finalizers.iter().flatten().any(ours)
}

/// Whether `cluster` has taken the record back by deleting it. Freeport's members put no finalizer on a record, so one of theirs
/// that is being deleted merely vanishes.
pub(crate) fn is_withdrawn(metadata: &ObjectMeta, cluster: &str, antrea: &Members) -> bool {
    metadata.deletion_timestamp.is_some() && (antrea.contains(cluster) || is_held(metadata))
}
