//! A ServiceExport that is not there any more: somebody deleted it, or somebody deleted its CRD, and it along with it. Only the
//! first ends the export.

use std::{sync::Arc, time::Instant};

use api::{mcs::ServiceExport, view::Meta};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::write::Error;
use kube::{Api, Client, Resource, api::ObjectMeta};
use tokio::sync::Mutex;

use crate::service::index::entry::Unexported;

/// What is said of a ServiceExport that its CRD took along.
pub(super) const WITH_ITS_CRD: &str = "the ServiceExport of this Service was deleted together with the CRD of ServiceExports, perhaps by mistake";
/// What is said of a ServiceExport that a restored API server does not have.
pub(super) const RESTORED: &str =
    "this cluster was restored from a backup that is older than the ServiceExport of this Service";

/// The CRD of ServiceExports. Whoever asks gets an answer to a read that began after that; one read answers all who wait for it, since
/// with a Namespace a thousand ServiceExports may go at once. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ExportCrd {
    crds: Api<Meta<CustomResourceDefinition>>,
    last: Arc<Mutex<Option<Read>>>,
}

/// A read that has ended.
struct Read {
    begun: Instant,
    found: Option<ObjectMeta>,
}

impl ExportCrd {
    pub(crate) fn new(client: Client) -> Self {
        Self { crds: Api::all(client), last: Arc::default() }
    }

    /// Why a ServiceExport went that was made at `exported_at`: a CRD that is gone, going, or younger took it along.
    pub(super) async fn why(&self, exported_at: Option<&Time>) -> Result<Unexported, Error> {
        Ok(judge(self.read().await?.as_ref(), exported_at))
    }

    async fn read(&self) -> Result<Option<ObjectMeta>, Error> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(read) = last.as_ref().filter(|read| read.begun > asked) {
            return Ok(read.found.clone());
        }
        let begun = Instant::now();
        let name = format!("{}.{}", ServiceExport::plural(&()), ServiceExport::group(&()));
        let found = self.crds.get_opt(&name).await?.map(|crd| crd.metadata);
        *last = Some(Read { begun, found: found.clone() });
        Ok(found)
    }
}

fn judge(crd: Option<&ObjectMeta>, exported_at: Option<&Time>) -> Unexported {
    let Some(crd) = crd else { return Unexported::Vanished };
    let created = crd.creation_timestamp.as_ref();
    let is_younger = created.zip(exported_at).is_some_and(|(crd, export)| crd.0 > export.0);
    match crd.deletion_timestamp.is_some() || is_younger {
        true => Unexported::Vanished,
        false => Unexported::Decided,
    }
}
