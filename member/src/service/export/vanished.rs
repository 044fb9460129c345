//! A ServiceExport that is not there any more: somebody deleted it, or somebody deleted its CRD, and it along with it. Only the
//! first ends the export.

use api::{mcs::ServiceExport, view::Meta};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::write::Error;
use kube::{Api, Client, Resource};

use crate::service::index::entry::Unexported;

/// What is said of a ServiceExport that its CRD took along.
pub(super) const WITH_ITS_CRD: &str = "the ServiceExport of this Service was deleted together with the CRD of ServiceExports, perhaps by mistake";
/// What is said of a ServiceExport that a restored API server does not have.
pub(super) const RESTORED: &str =
    "this cluster was restored from a backup that is older than the ServiceExport of this Service";

/// Looks at the CRD of ServiceExports: one that is gone, going, or younger than the export took the ServiceExport along.
pub(super) async fn why(client: &Client, exported_at: Option<&Time>) -> Result<Unexported, Error> {
    let name = format!("{}.{}", ServiceExport::plural(&()), ServiceExport::group(&()));
    let crds = Api::<Meta<CustomResourceDefinition>>::all(client.clone());
    match crds.get_opt(&name).await {
        Err(error) => Err(error.into()),
        Ok(None) => Ok(Unexported::Vanished),
        Ok(Some(crd)) => {
            let created = crd.metadata.creation_timestamp.as_ref();
            let younger = created.zip(exported_at).is_some_and(|(crd, export)| crd.0 > export.0);
            let going = crd.metadata.deletion_timestamp.is_some();
            Ok(if going || younger { Unexported::Vanished } else { Unexported::Decided })
        }
    }
}
