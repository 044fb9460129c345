//! The DNS server of a cluster as it is found: its ConfigMap, and the Deployment of the same name.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, PodSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Api;

use super::{
    Namespaced,
    corefile::{self, Claim},
    version::{self, Version},
};
use crate::{
    Error,
    cluster::{Cluster, list},
};

/// Where a ConfigMap has the Corefile.
pub(super) const KEY: &str = "Corefile";

/// What CoreDNS' container and ServiceAccount are called nearly everywhere.
const USUAL: &str = "coredns";

/// What runs CoreDNS, and with what.
pub(super) struct Server {
    /// Of the ConfigMap, and of the Deployment if there is one.
    pub(super) name: Namespaced,
    pub(super) corefile: String,
    /// The ConfigMap that was read, and no later one.
    pub(super) resource_version: Option<String>,
    /// None where something else runs it.
    pub(super) deployment: Option<ObjectMeta>,
    pod: PodSpec,
}

impl Server {
    pub(super) async fn read(cluster: &Cluster, name: &Namespaced) -> Result<Self, Error> {
        let (config_map, corefile) = corefile(cluster, name).await?;
        let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &name.namespace);
        let read = deployments.get_opt(&name.name);
        let found = cluster.request(format!("read Deployment {name}"), read).await?;
        let (deployment, spec) = found.map(|found| (found.metadata, found.spec)).unzip();
        Ok(Self {
            name: name.clone(),
            corefile,
            resource_version: config_map.metadata.resource_version,
            deployment,
            pod: spec.and_then(|spec| spec.template.spec).unwrap_or_default(),
        })
    }

    /// The ServiceAccount that CoreDNS is.
    pub(super) fn account(&self) -> Namespaced {
        let named = self.pod.service_account_name.clone().filter(|name| !name.is_empty());
        let unnamed = if self.deployment.is_some() { "default" } else { USUAL };
        let name = named.unwrap_or_else(|| unnamed.into());
        Namespaced { namespace: self.name.namespace.clone(), name }
    }

    /// The image of CoreDNS, and the version it says.
    pub(super) fn image(&self) -> Option<(&str, Option<Version>)> {
        let containers = || self.pod.containers.iter();
        let of_its_name = containers().find(|container| container.name == USUAL);
        let image = of_its_name.or_else(|| containers().next())?.image.as_deref()?;
        Some((image, version::of_image(image)))
    }

    /// Who has the zone in a file that CoreDNS may import: another ConfigMap that its Pods mount.
    pub(super) async fn claim_elsewhere(
        &self,
        cluster: &Cluster,
        zone: &str,
    ) -> Result<Option<(Namespaced, Claim)>, Error> {
        let volumes = self.pod.volumes.iter().flatten();
        for name in volumes.filter_map(|volume| volume.config_map.as_ref().map(|map| &map.name)) {
            if *name == self.name.name {
                continue;
            }
            let name = Namespaced { namespace: self.name.namespace.clone(), name: name.clone() };
            let files = read(cluster, &name).await?.and_then(|found| found.data).unwrap_or_default();
            if let Some(claim) = files.values().find_map(|text| corefile::claim(text, zone)) {
                return Ok(Some((name, claim)));
            }
        }
        Ok(None)
    }
}

async fn corefile(cluster: &Cluster, name: &Namespaced) -> Result<(ConfigMap, String), Error> {
    let Some(found) = read(cluster, name).await? else {
        return Err(cluster.refuse(format!(
            "there is no ConfigMap {name}, in which CoreDNS has its Corefile nearly everywhere: name another with \
             --config-map NAMESPACE/NAME"
        )));
    };
    match found.data.as_ref().and_then(|data| data.get(KEY)).cloned() {
        Some(text) => Ok((found, text)),
        None => {
            let keys: Vec<&String> = found.data.iter().flat_map(|data| data.keys()).collect();
            Err(cluster.refuse(format!(
                "ConfigMap {name} has no key {KEY} (keys: {}): name another with --config-map NAMESPACE/NAME",
                list(&keys)
            )))
        }
    }
}

async fn read(cluster: &Cluster, name: &Namespaced) -> Result<Option<ConfigMap>, Error> {
    let config_maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &name.namespace);
    cluster.request(format!("read ConfigMap {name}"), config_maps.get_opt(&name.name)).await
}
