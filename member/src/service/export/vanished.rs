//! A ServiceExport that is not there any more: somebody deleted it, or somebody deleted its CRD, and it along with it. Only the
//! first ends the export.

use std::{sync::Arc, time::Instant};

use api::{mcs::ServiceExport, view::Meta};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::write::Error;
use kube::{
    Api, Client, Resource,
    api::{GetParams, ObjectMeta},
    core::Request,
};
use tokio::sync::Mutex;

use crate::service::index::entry::Unexported;

/// What is said of a ServiceExport that its CRD took along.
pub(super) const WITH_ITS_CRD: &str = "the ServiceExport of this Service was deleted together with the CRD of ServiceExports, perhaps by mistake";
/// What is said of a ServiceExport that a restored API server does not have.
pub(super) const RESTORED: &str =
    "this cluster was restored from a backup that is older than the ServiceExport of this Service";

/// The CRD of ServiceExports. Whoever asks gets an answer to a read that began after that; one read answers all who wait for it, since
/// with a Namespace a thousand ServiceExports may go at once. The watch of the CRD cannot answer: where its link was cut, or where it is only
/// later than that of ServiceExports, it does not know yet that the CRD is going. Cloning shares it.
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
        let found = self.metadata().await?;
        *last = Some(Read { begun, found: found.clone() });
        Ok(found)
    }

    /// Reads no more of it: its schema is long.
    async fn metadata(&self) -> Result<Option<ObjectMeta>, Error> {
        let name = format!("{}.{}", ServiceExport::plural(&()), ServiceExport::group(&()));
        let request = Request::new(self.crds.resource_url()).get_metadata(&name, &GetParams::default());
        let request = request.map_err(kube::Error::BuildRequest)?;
        match self.crds.clone().into_client().request::<Meta<CustomResourceDefinition>>(request).await {
            Ok(crd) => Ok(Some(crd.metadata)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
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

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        time::Duration,
    };

    use futures::future::join_all;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;

    /// The CRD at an API server that takes a second for each answer, and how often it was read.
    fn crd() -> (ExportCrd, Arc<AtomicUsize>) {
        let reads = Arc::<AtomicUsize>::default();
        let counted = reads.clone();
        let answer = move |request: Request<Body>| {
            let counted = counted.clone();
            async move {
                let asked = request.headers()["accept"].to_str().unwrap();
                assert!(asked.contains("as=PartialObjectMetadata;"), "{asked}");
                assert_eq!(request.uri().query().unwrap_or_default(), "", "no cache answers");
                sleep(Duration::from_secs(1)).await;
                // The CRD is deleted after the first read.
                let deleted = (counted.fetch_add(1, SeqCst) > 0).then_some("2026-11-02T00:00:00Z");
                let metadata = json!({
                    "name": "serviceexports.multicluster.x-k8s.io", "creationTimestamp": "2026-11-01T00:00:00Z",
                    "deletionTimestamp": deleted,
                });
                let answer = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
                Ok::<_, Infallible>(Response::new(Body::from(answer.to_string().into_bytes())))
            }
        };
        (ExportCrd::new(Client::new(tower::service_fn(answer), "x")), reads)
    }

    #[tokio::test(start_paused = true)]
    async fn one_read_answers_all_withdrawals_that_waited_for_it_and_none_that_came_later() {
        let (crd, reads) = crd();
        let exported_at = Time("2026-11-01T12:00:00Z".parse().unwrap());
        let ask = async || crd.why(Some(&exported_at)).await.unwrap();
        let (first, others) = tokio::join!(ask(), async {
            sleep(Duration::from_millis(500)).await;
            join_all((0..1000).map(|_| ask())).await
        });
        assert_eq!(first, Unexported::Decided);
        assert!(
            others.iter().all(|why| *why == Unexported::Vanished),
            "the first read is older than their question"
        );
        assert_eq!(reads.load(SeqCst), 2);
        assert_eq!(ask().await, Unexported::Vanished);
        assert_eq!(reads.load(SeqCst), 3);
    }
}
