//! A ServiceExport that is not there any more: somebody deleted it, or somebody deleted its CRD, and it along with it. Only the
//! first ends the export.

use api::{mcs::ServiceExport, resource_export::ServicePayload};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Time,
};
use kit::write::Error;
use kube::{Api, Client, Resource};

use crate::service::{
    entry::{ServiceEntry, Unexported},
    import::plan::imported_from,
};

/// What we told the leader of an export whose ServiceExport is gone, if it is not known that somebody decided that.
///
/// The record may have vanished as well, where this cluster leads and all CRDs were deleted. Then our own part in what is
/// imported here tells that there was one: it is no younger than the export.
pub(super) fn still_exported(us: &str, entry: &ServiceEntry) -> Option<ServicePayload> {
    if entry.export.is_some() || entry.unexported == Some(Unexported::Decided) {
        return None;
    }
    let record = entry.own_service.as_ref();
    let said = record.and_then(|record| record.spec.0.as_ref().ok()?.service.as_ref());
    match (said, &entry.said) {
        (Some(said), _) => (!said.withdrawn).then(|| {
            // Antrea's records do not say it: the record is hardly younger than the export.
            let created = record.and_then(|record| record.metadata.creation_timestamp.clone());
            ServicePayload { exported_at: said.exported_at.clone().or(created), ..said.clone() }
        }),
        (None, Some(said)) => Some(said.clone()),
        (None, None) => {
            let slices = imported_from(entry, us).filter_map(|name| entry.imported_slices.get(name));
            let age = slices
                .filter_map(|slice| slice.metadata.creation_timestamp.clone())
                .min_by_key(|time| time.0)?;
            Some(ServicePayload { exported_at: Some(age), ..ServicePayload::default() })
        }
    }
}

/// Looks at the CRD of ServiceExports: one that is gone, going, or younger than the export took the ServiceExport along.
pub(super) async fn why(client: &Client, exported_at: Option<&Time>) -> Result<Unexported, Error> {
    let name = format!("{}.{}", ServiceExport::plural(&()), ServiceExport::group(&()));
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    match crds.get_metadata_opt(&name).await {
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
