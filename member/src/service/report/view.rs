//! A ClusterReport, as members read and write it.

use api::{
    report::{ClusterReport, ClusterReportStatus},
    view::{Lenient, unlabelled},
};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// The report of a cluster, ours or another.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = ClusterReport)]
pub(crate) struct Report {
    /// Its name is the ID of its cluster.
    #[serde(deserialize_with = "unlabelled")]
    pub(crate) metadata: ObjectMeta,
    /// What its member says.
    #[serde(default, skip_serializing)]
    pub(crate) status: Lenient<ClusterReportStatus>,
}

impl Report {
    /// The report of cluster `id` in this Common Area, before it says anything.
    pub(crate) fn named(area: &str, id: &str) -> Self {
        let (name, namespace) = (Some(id.to_owned()), Some(area.to_owned()));
        Self { metadata: ObjectMeta { name, namespace, ..ObjectMeta::default() }, status: Lenient::default() }
    }
}
