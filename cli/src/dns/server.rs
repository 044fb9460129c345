//! CoreDNS as the cluster has it: its ConfigMap, and the Deployment of the same name.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, PodSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::Api;
use picture::dns::{self, KEY, corefile};

use super::Namespaced;
use crate::{
    Error,
    cluster::{Cluster, list},
};

/// The first CoreDNS with the option `multicluster`. An older one does not start with it.
pub(super) const FIRST: Version = [1, 12, 2];

/// Major, minor, patch.
pub(super) type Version = [u32; 3];

/// As people write it.
pub(super) fn written(version: Version) -> String {
    version.map(|number| number.to_string()).join(".")
}

/// One CoreDNS.
pub(super) struct Server {
    /// Name of the ConfigMap, and of the Deployment if there is one.
    pub(super) name: Namespaced,
    pub(super) corefile: String,
    /// Version of the ConfigMap that was read.
    pub(super) resource_version: Option<String>,
    /// Metadata of the Deployment; none where something else runs CoreDNS.
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

    /// The ServiceAccount of CoreDNS.
    pub(super) fn account(&self) -> Namespaced {
        let name = dns::account(self.deployment.as_ref().map(|_| &self.pod));
        Namespaced { namespace: self.name.namespace.clone(), name: name.to_owned() }
    }

    /// The image of CoreDNS, and the version in its tag.
    pub(super) fn image(&self) -> Option<(&str, Option<Version>)> {
        let containers = || self.pod.containers.iter();
        let of_its_name = containers().find(|container| container.name == dns::NAME);
        let image = of_its_name.or_else(|| containers().next())?.image.as_deref()?;
        Some((image, of_image(image)))
    }

    /// Where somebody else names the zone: in the Corefile, or in another ConfigMap that its Pods mount, which it may import.
    pub(super) async fn claim(&self, cluster: &Cluster) -> Result<Option<String>, Error> {
        if let Some(claim) = corefile::claim(&self.corefile) {
            return Ok(Some(format!("ConfigMap {}, {KEY}, {claim}", self.name)));
        }
        for name in dns::mounted(&self.pod, &self.name.name) {
            let name = Namespaced { namespace: self.name.namespace.clone(), name: name.to_owned() };
            let files = read(cluster, &name).await?.and_then(|found| found.data).unwrap_or_default();
            if let Some(claim) = files.values().find_map(|text| corefile::claim(text)) {
                return Ok(Some(format!("ConfigMap {name}, {claim}, which CoreDNS' Pods mount,")));
            }
        }
        Ok(None)
    }

    /// What the Corefile does not allow.
    pub(super) fn refuse(&self, cluster: &Cluster, why: &impl std::fmt::Display) -> Error {
        cluster.refuse(format!("`freeport dns` does not change ConfigMap {}, {KEY}: {why}", self.name))
    }
}

async fn corefile(cluster: &Cluster, name: &Namespaced) -> Result<(ConfigMap, String), Error> {
    let Some(found) = read(cluster, name).await? else {
        return Err(cluster.refuse(format!(
            "there is no ConfigMap {name}, which holds the Corefile in most clusters: name another with --config-map NAMESPACE/NAME"
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

/// The version in an image's tag, behind which distributions add text. None for a digest, and for a tag that is something else.
fn of_image(image: &str) -> Option<Version> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    let mut parts = tag.strip_prefix('v').unwrap_or(tag).splitn(3, '.');
    let [major, minor, last] = [parts.next()?, parts.next()?, parts.next()?];
    let (patch, more) = last.split_at(last.find(|c: char| !c.is_ascii_digit()).unwrap_or(last.len()));
    let is_version = !more.starts_with(|c: char| c.is_alphanumeric());
    is_version.then_some([major.parse().ok()?, minor.parse().ok()?, patch.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_distributions_say_the_version() {
        for (image, version) in [
            ("registry.k8s.io/coredns/coredns:v1.11.3", Some([1, 11, 3])),
            (
                "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/coredns:v1.11.4-minimal-eksbuild.14",
                Some([1, 11, 4]),
            ),
            ("rancher/mirrored-coredns-coredns:1.12.3", Some([1, 12, 3])),
            ("registry:5000/coredns:1.13.1_custom@sha256:0123", Some([1, 13, 1])),
            ("registry:5000/coredns", None),
            ("registry/coredns@sha256:0123", None),
            ("coredns/coredns:latest", None),
            ("coredns/coredns:1.12", None),
            ("coredns/coredns:1.12.x", None),
            ("coredns/coredns:1.12.3rc1", None),
            ("mine/dns:build-1.11.3", None),
        ] {
            assert_eq!(of_image(image), version, "{image}");
        }
        assert!([1, 11, 4] < FIRST && [1, 14, 0] > FIRST && written(FIRST) == "1.12.2");
    }
}
