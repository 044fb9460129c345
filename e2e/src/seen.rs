//! What a user of a cluster sees of an import or an export.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    condition::Condition,
    mcs::{ServiceExport, ServiceImport, ServiceImportType},
    name,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointSlice},
    events::v1::Event,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::Value;

use crate::{
    cluster::Cluster,
    fixture::{AREA, World},
};

/// A complete import: Service, ServiceImport and slices that agree with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub vip: String,
    /// Name and number of each port.
    pub ports: Vec<(String, i32)>,
    pub clusters: BTreeSet<String>,
    /// Addresses behind each port's name, by cluster.
    pub endpoints: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// Addresses of endpoints that are not ready.
    pub not_ready: BTreeSet<String>,
    pub import_uid: String,
}

impl Imported {
    /// Addresses of a cluster behind any port.
    pub fn addresses(&self, cluster: &str) -> Vec<&str> {
        let ports = self.endpoints.get(cluster).into_iter().flat_map(BTreeMap::values);
        ports.flatten().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The import in `cluster`, or what is missing.
pub async fn imported(cluster: &Cluster, namespace: &str, service: &str) -> Result<Imported, String> {
    let derived = name::imported_service(service);
    let found = cluster.api::<Service>(namespace).get_opt(&derived).await.map_err(|e| e.to_string())?;
    let derived_service = found.ok_or_else(|| format!("no Service {derived} in {}", cluster.name))?;
    let import = import(cluster, namespace, service).await?;
    let status = import.status.unwrap_or_default();
    let vip = import.spec.ips.first().cloned().ok_or("the ServiceImport has no address")?;

    let spec = derived_service.spec.clone().unwrap_or_default();
    if spec.cluster_ip.as_ref() != Some(&vip) {
        return Err(format!("the ServiceImport tells {vip}, the Service has {:?}", spec.cluster_ip));
    }
    assert_eq!(import.spec.ip_families, ["IPv4"]);
    assert_eq!(import.spec.type_, ServiceImportType::ClusterSetIP);
    assert_eq!(derived_service.annotations()["multicluster.antrea.io/imported-service"], "true");
    assert_eq!(spec.selector, None);
    let ports = |port: &api::mcs::ServicePort| (port.name.clone().unwrap_or_default(), port.port);
    let import_ports: Vec<_> = import.spec.ports.iter().map(ports).collect();
    let service_ports: Vec<_> =
        spec.ports.iter().flatten().map(|p| (p.name.clone().unwrap_or_default(), p.port)).collect();
    if import_ports != service_ports {
        return Err(format!("ServiceImport has ports {import_ports:?}, the Service {service_ports:?}"));
    }
    let clusters = status.clusters.into_iter().map(|c| c.cluster).collect();
    let ready = status.conditions.iter().find(|c| c.type_ == "Ready").ok_or("no Ready condition")?;
    if ready.status != "True" {
        return Err(format!("Ready is {ready:?}"));
    }
    let slices = imported_slices(cluster, namespace, service).await;
    Ok(Imported {
        vip,
        ports: import_ports,
        clusters,
        endpoints: endpoints(&cluster.name, service, &slices),
        not_ready: not_ready(&slices),
        import_uid: import.metadata.uid.unwrap_or_default(),
    })
}

async fn import(cluster: &Cluster, namespace: &str, service: &str) -> Result<ServiceImport, String> {
    let found = cluster.api::<ServiceImport>(namespace).get_opt(service).await.map_err(|e| e.to_string())?;
    found.ok_or_else(|| format!("no ServiceImport in {}", cluster.name))
}

/// The EndpointSlices of an import, by name.
pub async fn imported_slices(cluster: &Cluster, namespace: &str, service: &str) -> Vec<EndpointSlice> {
    let selector = format!("multicluster.kubernetes.io/service-name={service}");
    cluster
        .api::<EndpointSlice>(namespace)
        .list(&ListParams::default().labels(&selector))
        .await
        .unwrap()
        .items
}

/// Whether an endpoint gets traffic. One that says nothing of it does.
pub fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
}

fn not_ready(slices: &[EndpointSlice]) -> BTreeSet<String> {
    let endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
    let not_ready = endpoints.filter(|endpoint| !is_ready(endpoint));
    not_ready.flat_map(|endpoint| endpoint.addresses.clone()).collect()
}

fn endpoints(
    cluster: &str,
    service: &str,
    slices: &[EndpointSlice],
) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut endpoints = BTreeMap::<String, BTreeMap<String, BTreeSet<String>>>::new();
    for slice in slices {
        assert_eq!(slice.labels()["kubernetes.io/service-name"], name::imported_service(service));
        assert_eq!(slice.labels()["endpointslice.kubernetes.io/managed-by"], "freeport");
        let from = slice.labels()["multicluster.kubernetes.io/source-cluster"].clone();
        for endpoint in slice.endpoints.iter().flatten() {
            // In tests a cluster's ID is its name, or ends with it.
            if from.rsplit('.').next() != Some(cluster) {
                assert_eq!(
                    (&endpoint.node_name, &endpoint.target_ref),
                    (&None, &None),
                    "mean nothing elsewhere"
                );
            }
            for port in slice.ports.iter().flatten() {
                let behind = endpoints.entry(from.clone()).or_default();
                let behind = behind.entry(port.name.clone().unwrap_or_default()).or_default();
                behind.extend(
                    endpoint.addresses.iter().map(|a| format!("{a}:{}", port.port.unwrap_or_default())),
                );
            }
        }
    }
    endpoints
}

/// `Ok` if nothing of the import is in `cluster`, else what is left of it.
pub async fn not_imported(cluster: &Cluster, namespace: &str, service: &str) -> Result<(), String> {
    let derived = name::imported_service(service);
    if cluster.api::<Service>(namespace).get_opt(&derived).await.map_err(|e| e.to_string())?.is_some() {
        return Err(format!("Service {derived} in {}", cluster.name));
    }
    if import(cluster, namespace, service).await.is_ok() {
        return Err(format!("a ServiceImport in {}", cluster.name));
    }
    match imported_slices(cluster, namespace, service).await.len() {
        0 => Ok(()),
        slices => Err(format!("{slices} slices in {}", cluster.name)),
    }
}

/// Names of what the Common Area holds about a Service.
pub async fn records(world: &World, namespace: &str, service: &str) -> Vec<String> {
    // Other tests write what our types do not hold.
    let exports = world.leader().listed::<ResourceExport>(AREA).await.unwrap();
    let imports = world.leader().listed::<ResourceImport>(AREA).await.unwrap();
    let is_of = |object: &Value| {
        let spec = &object["spec"];
        spec["namespace"] == namespace && spec["name"] == service
    };
    let of_it = exports.into_iter().chain(imports).filter(is_of);
    let mut names: Vec<_> =
        of_it.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names
}

/// Conditions of a ServiceExport, by type.
pub async fn conditions(cluster: &Cluster, namespace: &str, service: &str) -> BTreeMap<String, Condition> {
    let export = cluster.api::<ServiceExport>(namespace).get(service).await.unwrap();
    let conditions = export.status.unwrap_or_default().conditions;
    conditions.into_iter().map(|condition| (condition.type_.clone(), condition)).collect()
}

/// `Ok` if a ServiceExport's condition has this status and reason, else the condition.
pub async fn says(
    cluster: &Cluster,
    (namespace, service): (&str, &str),
    type_: &str,
    status: &str,
    reason: &str,
) -> Result<(), String> {
    let conditions = conditions(cluster, namespace, service).await;
    match conditions.get(type_) {
        Some(c) if c.status == status && c.reason == reason => {
            assert_eq!(c.observed_generation, Some(1));
            Ok(())
        }
        other => Err(format!("{type_} is {other:?}")),
    }
}

/// `Ok` if there is an Event with this reason about an object with this name.
pub async fn event(cluster: &Cluster, namespace: &str, about: &str, reason: &str) -> Result<(), String> {
    let events = cluster.api::<Event>(namespace).list(&ListParams::default()).await.unwrap().items;
    let about =
        |event: &&Event| event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about);
    let reasons: Vec<_> = events.iter().filter(about).filter_map(|event| event.reason.as_deref()).collect();
    if reasons.contains(&reason) { Ok(()) } else { Err(format!("Events: {reasons:?}")) }
}

/// `Ok` if the Common Area holds this many records about a Service, else their names.
pub async fn holds(world: &World, namespace: &str, service: &str, count: usize) -> Result<(), String> {
    let records = records(world, namespace, service).await;
    if records.len() == count { Ok(()) } else { Err(format!("{records:?}")) }
}

/// The import if `right` accepts it, else a description of it.
pub fn right(
    imported: Result<Imported, String>,
    right: impl FnOnce(&Imported) -> bool,
) -> Result<Imported, String> {
    imported.and_then(|imported| if right(&imported) { Ok(imported) } else { Err(format!("{imported:?}")) })
}
