//! Requests that are too large, or do not decode: they fail, and go like others.

use api::{
    bind::{
        export::{
            APIServiceExportRequest, APIServiceExportRequestSpec, APIServiceExportRequestStatus, Phase,
        },
        grant::{EXPORTS_READY, Refused},
    },
    view::{Lenient, lean},
};
use jiff::Timestamp;
use kit::{queue::Outcome, write::Error};
use kube::core::ObjectMeta;
use serde::Deserialize;

use super::{Requests, STAYS};
use crate::bind::key::Key;

/// How far a request is, whatever else it has.
#[derive(Clone, Debug, Deserialize)]
struct Progress {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Lenient<Option<APIServiceExportRequestStatus>>,
}

api::view_of!([] Progress, APIServiceExportRequest, metadata);

impl Requests {
    /// One pass of a request that is not read, for this reason. For whoever has the turn.
    pub(super) async fn refuse(&self, key: &Key, why: &str) -> Result<Outcome, Error> {
        let metadata = ObjectMeta {
            name: Some(key.name.clone()),
            namespace: Some(key.cluster_namespace.clone()),
            ..ObjectMeta::default()
        };
        let there = match self.writer.read(&Progress { metadata, status: Lenient(Ok(None)) }).await {
            Ok(there) => there,
            Err(Error::Gone) => return Ok(Outcome::Done),
            Err(error) => return Err(error),
        };
        let status = there.status.0.unwrap_or_default();
        let (metadata, spec) = (there.metadata, APIServiceExportRequestSpec::default());
        let request = APIServiceExportRequest { metadata, spec, status };
        match &request.status {
            Some(status) if status.phase != Phase::Pending => {
                self.over(&request, status, Timestamp::now()).await
            }
            _ => {
                let message = format!("the request cannot be read: {why}");
                let refused = Refused { condition: EXPORTS_READY, reason: "NotReadable", message };
                self.fail(&request, &refused).await.map(|_| Outcome::Requeue(STAYS))
            }
        }
    }
}
