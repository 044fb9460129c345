//! What an importing cluster holds of the demo's Service.

use std::{collections::BTreeSet, time::Duration};

use api::{label, mcs::ServiceImport, name};
use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::Service, discovery::v1::EndpointSlice},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, CustomResourceExt, api::ListParams};
use tokio::time::sleep;

use super::{NAMESPACE, SERVICE};

/// An API server delays the creation of an object by 2 seconds if its CRD was established less than 2 seconds before, for the
/// sake of other API servers that do not know the CRD yet (`justCreated` in apiextensions-apiserver). Times are in whole
/// seconds, hence one more.
const NEW_CRD: Duration = Duration::from_secs(3);

/// A complete import.
pub(super) struct Import {
    /// Of the ServiceImport and of the Service.
    pub(super) ip: String,
    /// As `80/TCP`.
    pub(super) ports: String,
    /// Name of the Service.
    pub(super) service: String,
    pub(super) slices: Vec<Slice>,
}

pub(super) struct Slice {
    /// Where its endpoints are.
    pub(super) cluster: String,
    pub(super) addresses: String,
}

/// Waits until that delay is over, so that it is not measured.
pub(super) async fn may_begin(client: &Client) -> kube::Result<()> {
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let status = crds.get(ServiceImport::crd_name()).await?.status.unwrap_or_default();
    let mut conditions = status.conditions.into_iter().flatten();
    let established = conditions.find(|condition| condition.type_ == "Established");
    if let Some(since) = established.and_then(|condition| condition.last_transition_time) {
        let age = Timestamp::now().duration_since(since.0);
        sleep(NEW_CRD.saturating_sub(age.unsigned_abs())).await;
    }
    Ok(())
}

/// The import with at least these endpoints of `exporter`, or what is missing of it.
pub(super) async fn look(
    client: &Client,
    exporter: &str,
    wanted: &BTreeSet<String>,
) -> kube::Result<Result<Import, String>> {
    let import = Api::<ServiceImport>::namespaced(client.clone(), NAMESPACE).get_opt(SERVICE).await?;
    let Some(import) = import else { return Ok(Err("there is no ServiceImport".into())) };
    let Some(ip) = import.spec.ips.into_iter().next() else {
        return Ok(Err("the ServiceImport has no address".into()));
    };
    let derived = name::imported_service(SERVICE);
    let service = Api::<Service>::namespaced(client.clone(), NAMESPACE).get_opt(&derived).await?;
    let spec = service.and_then(|service| service.spec).unwrap_or_default();
    if spec.cluster_ip.as_ref() != Some(&ip) {
        return Ok(Err("there is no Service with the address of the ServiceImport".into()));
    }
    let slices = slices(client).await?;
    let of_exporter = slices.iter().filter(|slice| cluster(slice) == exporter);
    let there: BTreeSet<_> = of_exporter.flat_map(addresses).collect();
    if !wanted.is_subset(&there) {
        return Ok(Err("the EndpointSlices lack endpoints of the exporting cluster".into()));
    }
    let port = |p: k8s_openapi::api::core::v1::ServicePort| {
        format!("{}/{}", p.port, p.protocol.as_deref().unwrap_or("TCP"))
    };
    Ok(Ok(Import {
        ip,
        ports: spec.ports.into_iter().flatten().map(port).collect::<Vec<_>>().join(", "),
        service: derived,
        slices: slices
            .iter()
            .map(|slice| Slice { cluster: cluster(slice), addresses: addresses(slice).join(", ") })
            .collect(),
    }))
}

/// Ok if nothing of `exporter` is left, otherwise what is left.
pub(super) async fn gone(client: &Client, exporter: &str) -> kube::Result<Result<(), String>> {
    if slices(client).await?.iter().any(|slice| cluster(slice) == exporter) {
        return Ok(Err("there still are EndpointSlices of the cluster that exports no more".into()));
    }
    let import = Api::<ServiceImport>::namespaced(client.clone(), NAMESPACE).get_opt(SERVICE).await?;
    if let Some(import) = import {
        // If another cluster exports it as well, it stays and lists only that one.
        let others = import.status.map(|status| status.clusters).unwrap_or_default();
        let stays = !others.is_empty() && others.iter().all(|other| other.cluster != exporter);
        return Ok(if stays { Ok(()) } else { Err("the ServiceImport is still there".into()) });
    }
    let derived = name::imported_service(SERVICE);
    let service = Api::<Service>::namespaced(client.clone(), NAMESPACE).get_opt(&derived).await?;
    Ok(if service.is_none() { Ok(()) } else { Err("the imported Service is still there".into()) })
}

async fn slices(client: &Client) -> kube::Result<Vec<EndpointSlice>> {
    let selector = ListParams::default().labels(&format!("{}={SERVICE}", label::MCS_SERVICE_NAME));
    Ok(Api::namespaced(client.clone(), NAMESPACE).list(&selector).await?.items)
}

fn cluster(slice: &EndpointSlice) -> String {
    let labels = slice.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::MCS_SOURCE_CLUSTER)).cloned().unwrap_or_default()
}

fn addresses(slice: &EndpointSlice) -> Vec<String> {
    slice.endpoints.iter().flatten().flat_map(|endpoint| endpoint.addresses.clone()).collect()
}
