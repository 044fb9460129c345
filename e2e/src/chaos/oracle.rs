//! What has to be in every cluster, by what users have there, and what is. Pure, and made of the rules of the Multi-Cluster Services API
//! alone: nothing of how the daemons come to it.
//!
//! A cluster exports what has a Service and a ServiceExport. Where the Namespace is, there is an import of what anybody exports, with
//! the ports of all exporters, and the endpoints of each cluster behind those ports that its own Service has.

use std::collections::{BTreeMap, BTreeSet};

use api::label;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use super::held::{All, Held};
use crate::seen::is_ready;

/// What there is: what it is called, and what it is like.
type Everywhere = BTreeMap<String, String>;

/// What one cluster exports under a name.
#[derive(Clone, Debug, Default, PartialEq)]
struct Exported {
    ports: BTreeSet<(String, i32)>,
    /// `port name=address:port`.
    endpoints: BTreeSet<String>,
}

/// An import.
#[derive(Clone, Debug, Default, PartialEq)]
struct Import {
    ports: BTreeSet<(String, i32)>,
    clusters: BTreeSet<String>,
    /// `cluster port name=address:port`, of endpoints that are ready.
    endpoints: BTreeSet<String>,
    /// What is wrong with its objects.
    wrong: Vec<String>,
}

impl Import {
    fn said(&self) -> String {
        format!(
            "ports {:?}, clusters {:?}, endpoints {:?}, {:?}",
            self.ports, self.clusters, self.endpoints, self.wrong
        )
    }
}

/// Where what there is differs from what has to be there: a line each.
pub fn differences(all: &All) -> Vec<String> {
    let (wanted, found) = (wanted(all), found(all));
    let names: BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    let nothing = || "nothing".to_owned();
    let differing = names.into_iter().filter_map(|name| {
        let (want, have) = (wanted.get(name), found.get(name));
        (want != have).then(|| {
            let said = |state: Option<&String>| state.cloned().unwrap_or_else(nothing);
            format!("{name}: {}\n    and not: {}", said(have), said(want))
        })
    });
    differing.collect()
}

fn wanted(all: &All) -> Everywhere {
    let exported: BTreeMap<&String, BTreeMap<String, Exported>> =
        all.clusters.iter().map(|(cluster, held)| (cluster, exported(held))).collect();
    let mut imports = BTreeMap::<&String, Import>::new();
    let mut wanted = Everywhere::new();
    for (cluster, services) in &exported {
        for (service, exported) in services {
            let import = imports.entry(service).or_default();
            import.ports.extend(exported.ports.clone());
            import.clusters.insert((*cluster).clone());
            import
                .endpoints
                .extend(exported.endpoints.iter().map(|endpoint| format!("{cluster} {endpoint}")));
            wanted.insert(record_of(cluster, service), "there".into());
        }
    }
    wanted.extend(imports.keys().map(|service| (merged_of(service), "there".into())));
    for (cluster, held) in &all.clusters {
        for export in &held.exports {
            let service = named(export);
            let is_exported = exported.get(cluster).is_some_and(|services| services.contains_key(&service));
            let said = if is_exported { "exported" } else { "not valid" };
            wanted.insert(export_of(cluster, &service), said.into());
        }
        for (service, import) in &imports {
            let is_here =
                held.namespaces.iter().any(|namespace| service.starts_with(&format!("{namespace}/")));
            if is_here {
                wanted.insert(import_of(cluster, service), import.said());
            }
        }
    }
    wanted
}

/// What a cluster exports, by the Services' names.
fn exported(held: &Held) -> BTreeMap<String, Exported> {
    let mut all = BTreeMap::new();
    for export in &held.exports {
        let service = named(export);
        let Some(local) = held.services.iter().find(|local| named(*local) == service) else { continue };
        let ports = local.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        let ports: BTreeSet<_> =
            ports.map(|port| (port.name.clone().unwrap_or_default(), port.port)).collect();
        let of_it = |slice: &&EndpointSlice| {
            slice.namespace() == export.namespace()
                && labelled(slice, label::SERVICE_NAME) == Some(&export.name_any())
        };
        let endpoints = held.slices.iter().filter(of_it).flat_map(behind).filter(|endpoint| {
            ports
                .iter()
                .any(|(port, _)| endpoint.strip_prefix(port).is_some_and(|rest| rest.starts_with('=')))
        });
        let endpoints = endpoints.collect();
        all.insert(service, Exported { ports, endpoints });
    }
    all
}

/// `port name=address:port` of each ready endpoint of a slice.
fn behind(slice: &EndpointSlice) -> Vec<String> {
    let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| is_ready(endpoint));
    let addresses: Vec<_> = endpoints.flat_map(|endpoint| &endpoint.addresses).collect();
    let ports = slice.ports.iter().flatten();
    ports
        .flat_map(|port| {
            let (name, number) = (port.name.as_deref().unwrap_or_default(), port.port.unwrap_or_default());
            addresses.iter().map(move |address| format!("{name}={address}:{number}"))
        })
        .collect()
}

fn found(all: &All) -> Everywhere {
    let mut found = Everywhere::new();
    for (cluster, held) in &all.clusters {
        for export in &held.exports {
            found.insert(export_of(cluster, &named(export)), said_of(export));
        }
        found.extend(
            imports(held).into_iter().map(|(service, import)| (import_of(cluster, &service), import.said())),
        );
    }
    for record in &all.records {
        let text = |field: &str| record["spec"][field].as_str().unwrap_or_default();
        let service = format!("{}/{}", text("namespace"), text("name"));
        match (text("kind"), text("clusterID")) {
            ("Service", cluster) if !cluster.is_empty() => {
                found.insert(record_of(cluster, &service), "there".into());
            }
            ("ServiceImport", _) => drop(found.insert(merged_of(&service), "there".into())),
            _ => {}
        }
    }
    found
}

/// The imports of a cluster, by their names.
fn imports(held: &Held) -> BTreeMap<String, Import> {
    let mut imports = BTreeMap::<String, Import>::new();
    for import in &held.imports {
        let of = imports.entry(named(import)).or_default();
        of.ports =
            import.spec.ports.iter().map(|port| (port.name.clone().unwrap_or_default(), port.port)).collect();
        of.clusters =
            import.status.iter().flat_map(|status| &status.clusters).map(|of| of.cluster.clone()).collect();
        let derived = format!(
            "{}/{}{}",
            import.namespace().unwrap_or_default(),
            label::IMPORTED_PREFIX,
            import.name_any()
        );
        let derived = held.services.iter().find(|service| named(*service) == derived);
        let spec = derived.and_then(|service| service.spec.as_ref());
        let ports = spec.iter().flat_map(|spec| spec.ports.iter().flatten());
        let ports: BTreeSet<_> =
            ports.map(|port| (port.name.clone().unwrap_or_default(), port.port)).collect();
        let address = spec.and_then(|spec| spec.cluster_ip.clone());
        if (&ports, address.as_ref()) != (&of.ports, import.spec.ips.first()) {
            of.wrong
                .push(format!("its Service has {ports:?} and {address:?}, it says {:?}", import.spec.ips));
        }
    }
    for service in &held.services {
        if let Some(of) = service.name_any().strip_prefix(label::IMPORTED_PREFIX) {
            let name = format!("{}/{of}", service.namespace().unwrap_or_default());
            imports.entry(name).or_insert_with(|| without_import("a Service"));
        }
    }
    for slice in &held.slices {
        let Some(of) = labelled(slice, label::MCS_SERVICE_NAME) else { continue };
        let name = format!("{}/{of}", slice.namespace().unwrap_or_default());
        let import = imports.entry(name).or_insert_with(|| without_import("a slice"));
        let from = labelled(slice, label::MCS_SOURCE_CLUSTER).cloned().unwrap_or_default();
        import.endpoints.extend(behind(slice).into_iter().map(|endpoint| format!("{from} {endpoint}")));
    }
    imports
}

fn without_import(what: &str) -> Import {
    Import { wrong: vec![format!("{what} without a ServiceImport")], ..Import::default() }
}

/// What a ServiceExport says of itself.
fn said_of(export: &api::mcs::ServiceExport) -> String {
    let conditions = export.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let says = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    let is = |type_: &str, status: &str| says(type_).is_some_and(|condition| condition.status == status);
    if is(api::mcs::VALID, "True") && is(api::mcs::READY, "True") {
        return "exported".into();
    }
    if is(api::mcs::VALID, "False") {
        return "not valid".into();
    }
    let words = conditions.iter().map(|c| format!("{}={} {}: {}", c.type_, c.status, c.reason, c.message));
    format!("neither exported nor invalid: {:?}", words.collect::<Vec<_>>())
}

fn labelled<'a>(slice: &'a EndpointSlice, key: &str) -> Option<&'a String> {
    slice.metadata.labels.as_ref()?.get(key)
}

fn named<K: kube::Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn import_of(cluster: &str, service: &str) -> String {
    format!("import {service} in {cluster}")
}

fn export_of(cluster: &str, service: &str) -> String {
    format!("export {service} in {cluster}")
}

fn record_of(cluster: &str, service: &str) -> String {
    format!("record of {service} by {cluster}")
}

fn merged_of(service: &str) -> String {
    format!("record of import {service}")
}

#[cfg(test)]
mod tests;
