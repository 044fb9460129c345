//! Clusters from folders: `kubectl get -o yaml` of the kinds that `freeport plan` reads.

use std::{collections::BTreeMap, fs, path::Path};

use api::view::Meta;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace, networking::v1::ServiceCIDR};
use kube::ResourceExt;
use picture::{
    gap::Gap,
    plan::{Area, Cluster},
};

use super::{
    files::{self, Found},
    look::families_of,
};
use crate::{Error, objects::SYSTEM};

/// The clusters of which the folder has a folder each, by name. `at` has to be said where there are several.
pub(super) fn read(folder: &Path, at: Option<&str>) -> Result<Vec<Cluster>, Error> {
    let failed = |source| {
        Error::Argument(format!("{}: {source}. try: --offline with a folder of folders", folder.display()))
    };
    let mut clusters = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_dir()) {
            clusters.insert(name.to_owned(), cluster(name, &files::read(&path)?)?);
        }
    }
    let names: Vec<_> = clusters.keys().cloned().collect();
    match (names.as_slice(), at) {
        ([], _) => {
            let folder = folder.display();
            Err(Error::Argument(format!("{folder}: no folder of a cluster. try: mkdir {folder}/east")))
        }
        ([_, _, ..], None) => Err(Error::Argument(format!(
            "{}: it has clusters {}. try: --in {}",
            folder.display(),
            names.join(", "),
            names[0]
        ))),
        _ => Ok(clusters.into_values().collect()),
    }
}

/// Makes a cluster of the objects of a folder. Objects of other kinds are ignored.
fn cluster(context: &str, found: &[Found]) -> Result<Cluster, Error> {
    let mut known = Cluster {
        deployment: Ok(None),
        sets: Ok(vec![]),
        namespaces: Ok(vec![]),
        exports: Ok(vec![]),
        services: Ok(vec![]),
        target_ports: Ok(vec![]),
        slices: Ok(vec![]),
        imports: Ok(vec![]),
        ..Cluster::unknown(context, &Gap::NotLooked)
    };
    let mut areas = BTreeMap::<String, Area>::new();
    for found in found {
        let text =
            |pointer| found.value.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let area = || Area {
            namespace: namespace.to_owned(),
            sets: Ok(vec![]),
            leases: Ok(vec![]),
            records: Ok(vec![]),
            reports: Err(Gap::NoKind),
        };
        match found.kind.as_str() {
            "Namespace" => {
                let namespace: Meta<Namespace> = found.decode()?;
                if name == "kube-system" {
                    known.uid = namespace.uid().ok_or(Gap::NotLooked);
                }
                push(&mut known.namespaces, namespace);
            }
            "ServiceExport" => push(&mut known.exports, found.decode()?),
            "Service" => {
                push(&mut known.services, found.decode()?);
                push(&mut known.target_ports, found.decode()?);
            }
            "EndpointSlice" => push(&mut known.slices, found.decode()?),
            "ServiceImport" => push(&mut known.imports, found.decode()?),
            "ServiceCIDR" if name == "kubernetes" => {
                let ranges = found.decode::<ServiceCIDR>()?.spec.and_then(|spec| spec.cidrs);
                known.families = Ok(families_of(&ranges.unwrap_or_default()));
            }
            "Deployment" if (namespace, name) == (SYSTEM, api::label::MEMBER) => {
                known.deployment = Ok(Some(found.decode::<Deployment>()?));
            }
            "ClusterSet" if namespace == SYSTEM => push(&mut known.sets, found.decode()?),
            "ClusterSet" => {
                push(&mut areas.entry(namespace.into()).or_insert_with(area).sets, found.decode()?)
            }
            "Lease" if namespace != SYSTEM => {
                push(&mut areas.entry(namespace.into()).or_insert_with(area).leases, found.decode()?);
            }
            "ResourceExport" => {
                push(&mut areas.entry(namespace.into()).or_insert_with(area).records, found.decode()?);
            }
            "ClusterReport" => {
                let reports = &mut areas.entry(namespace.into()).or_insert_with(area).reports;
                let mut all = reports.clone().unwrap_or_default();
                all.push(found.decode()?);
                *reports = Ok(all);
            }
            _ => {}
        }
    }
    known.areas = Ok(areas.into_values().collect());
    Ok(known)
}

fn push<K>(all: &mut Result<Vec<K>, Gap>, object: K) {
    if let Ok(all) = all {
        all.push(object);
    }
}
