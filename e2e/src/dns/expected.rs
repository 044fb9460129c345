//! What the DNS specification of the Multi-Cluster Services API makes of a ServiceImport and its EndpointSlices.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    family,
    mcs::{ServiceImport, ServiceImportType},
};
use fleet::dns::clusterset_name;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use super::Type;
use crate::{
    cluster::Cluster,
    seen::{imported_slices, is_ready},
};

/// Records by name and type.
pub type Records = BTreeMap<(String, Type), BTreeSet<String>>;

/// All records of an import, from what the API server of the cluster has of it.
pub async fn records(cluster: &Cluster, namespace: &str, service: &str) -> Records {
    let import = cluster.api::<ServiceImport>(namespace).get(service).await.unwrap();
    let name = clusterset_name(namespace, service);
    match import.spec.type_ {
        ServiceImportType::ClusterSetIP => of_addresses(&name, &import),
        ServiceImportType::Headless => {
            of_endpoints(&name, &imported_slices(cluster, namespace, service).await)
        }
    }
}

fn type_of(address: &str) -> Type {
    if family::of(address) == family::IPV4 { Type::A } else { Type::AAAA }
}

fn of_addresses(name: &str, import: &ServiceImport) -> Records {
    let mut records = Records::new();
    let mut add = |name: String, type_, record: String| {
        records.entry((name, type_)).or_default().insert(record);
    };
    for ip in &import.spec.ips {
        add(name.to_owned(), type_of(ip), ip.clone());
    }
    for port in &import.spec.ports {
        let srv = format!("{} {name}.", port.port);
        let protocol = port.protocol.as_deref().unwrap().to_lowercase();
        if let Some(port) = &port.name {
            add(format!("_{port}._{protocol}.{name}"), Type::SRV, srv.clone());
        }
        add(name.to_owned(), Type::SRV, srv);
    }
    records
}

fn of_endpoints(name: &str, slices: &[EndpointSlice]) -> Records {
    let mut records = Records::new();
    let mut add = |name: String, type_, record: String| {
        records.entry((name, type_)).or_default().insert(record);
    };
    for slice in slices {
        let cluster = &slice.labels()["multicluster.kubernetes.io/source-cluster"];
        for endpoint in slice.endpoints.iter().flatten().filter(|endpoint| is_ready(endpoint)) {
            for address in &endpoint.addresses {
                let system = || address.replace(['.', ':'], "-");
                let target = format!("{}.{cluster}.{name}", endpoint.hostname.clone().unwrap_or_else(system));
                add(name.to_owned(), type_of(address), address.clone());
                add(target.clone(), type_of(address), address.clone());
                for port in slice.ports.iter().flatten() {
                    let srv = format!("{} {target}.", port.port.unwrap());
                    let protocol = port.protocol.as_deref().unwrap().to_lowercase();
                    if let Some(port) = port.name.as_deref().filter(|name| !name.is_empty()) {
                        add(format!("_{port}._{protocol}.{name}"), Type::SRV, srv.clone());
                    }
                    add(name.to_owned(), Type::SRV, srv);
                }
            }
        }
    }
    records
}
