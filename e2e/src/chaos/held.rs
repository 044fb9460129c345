//! What the clusters hold of a run, users' objects and daemons' alike.

use std::{collections::BTreeMap, fmt::Debug};

use api::{
    mcs::{ServiceExport, ServiceImport},
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use futures::future::try_join_all;
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::places::{FOREIGN, Places};
use crate::{
    cluster::Cluster,
    fixture::{AREA, World},
};

/// What one cluster holds.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Namespaces that are not being deleted.
    pub namespaces: Vec<String>,
    pub services: Vec<Service>,
    pub slices: Vec<EndpointSlice>,
    pub exports: Vec<ServiceExport>,
    pub imports: Vec<ServiceImport>,
}

/// What all clusters hold, by name, and the Common Area.
#[derive(Clone, Debug, Default)]
pub struct All {
    pub clusters: BTreeMap<String, Held>,
    /// ResourceExports and ResourceImports.
    pub records: Vec<Value>,
}

/// What is held of a run, or why that cannot be read now.
pub async fn held(world: &World, places: &Places) -> Result<All, String> {
    let clusters = world.clusters().iter().map(async |cluster| {
        let held = of_cluster(cluster, places).await?;
        Ok::<_, String>((cluster.name.clone(), held))
    });
    let clusters = try_join_all(clusters).await?.into_iter().collect();
    let mut records = world.leader().listed::<ResourceExport>(AREA).await?;
    records.extend(world.leader().listed::<ResourceImport>(AREA).await?);
    let is_of_the_run = |record: &Value| {
        record["spec"]["namespace"].as_str().is_some_and(|namespace| namespace.starts_with(&places.prefix))
    };
    records.retain(is_of_the_run);
    Ok(All { clusters, records })
}

async fn of_cluster(cluster: &Cluster, places: &Places) -> Result<Held, String> {
    let namespaces: Vec<Namespace> = listed(cluster).await?;
    let is_live = |namespace: &Namespace| {
        namespace.metadata.deletion_timestamp.is_none() && namespace.name_any().starts_with(&places.prefix)
    };
    let namespaces = namespaces.into_iter().filter(is_live).map(|namespace| namespace.name_any()).collect();
    Ok(Held {
        namespaces,
        services: of_run(cluster, places).await?,
        slices: of_run(cluster, places).await?,
        exports: of_run(cluster, places).await?,
        imports: of_run(cluster, places).await?,
    })
}

async fn of_run<K>(cluster: &Cluster, places: &Places) -> Result<Vec<K>, String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let mut all: Vec<K> = listed(cluster).await?;
    all.retain(|object| {
        let is_of_the_run = object.namespace().is_some_and(|namespace| namespace.starts_with(&places.prefix));
        is_of_the_run && !object.name_any().contains(FOREIGN)
    });
    Ok(all)
}

async fn listed<K>(cluster: &Cluster) -> Result<Vec<K>, String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let listed = Api::<K>::all(cluster.client.clone()).list(&ListParams::default()).await;
    listed.map(|listed| listed.items).map_err(|error| format!("{}: {error}", cluster.name))
}
