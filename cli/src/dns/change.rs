//! What changes CoreDNS: its Corefile is written and its Pods are replaced, or both are only shown.

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
    jiff::Timestamp,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use picture::dns::{KEY, corefile::ZONE};
use serde_json::json;
use similar::TextDiff;

use super::{DnsOptions, server::Server};
use crate::{Error, cluster::Cluster, eraser::Say, install::MANAGER, rollout};

/// Annotation of the Deployment: uid of the CRD of ServiceImports that it was restarted for. CoreDNS notices late that a CRD was
/// created, and a command that failed before the restart left none.
const RESTARTED_FOR: &str = "multicluster.freeport.dev/dns";
/// Annotation of a Pod template by which `kubectl rollout restart` replaces all Pods.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// uid of the CRD that CoreDNS was restarted for.
pub(super) fn restarted_for(deployment: &ObjectMeta) -> Option<&str> {
    deployment.annotations.as_ref()?.get(RESTARTED_FOR).map(String::as_str)
}

/// Changes one CoreDNS, or shows how.
pub(super) struct Change<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) server: &'a Server,
    pub(super) options: &'a DnsOptions,
    pub(super) say: Say<'a>,
}

impl Change<'_> {
    /// Reports one thing about this cluster.
    pub(super) fn say(&mut self, line: &str) {
        (self.say)(&format!("{}: {line}", self.cluster.name));
    }

    /// Writes the Corefile; the API server refuses it if somebody has changed the ConfigMap since it was read.
    pub(super) async fn corefile(&mut self, to: &str) -> Result<(), Error> {
        let Server { name, corefile, resource_version, .. } = self.server;
        if !self.options.apply {
            let diff = TextDiff::from_lines(corefile.as_str(), to);
            let [old, new] = ["now", "then"].map(|when| format!("ConfigMap {name}: {KEY} ({when})"));
            (self.say)(&format!(
                "\n{}",
                diff.unified_diff().header(&old, &new).to_string().trim_end_matches('\n')
            ));
            return Ok(());
        }
        let config_maps: Api<ConfigMap> = Api::namespaced(self.cluster.client.clone(), &name.namespace);
        let patch = json!({"metadata": {"resourceVersion": resource_version}, "data": {KEY: to}});
        let (patch, params) = (Patch::Merge(&patch), by_us());
        let write = config_maps.patch(&name.name, &params, &patch);
        self.cluster.request(format!("change ConfigMap {name}"), write).await?;
        let has = if self.options.remove { "no longer has" } else { "has" };
        self.say(&format!("changed ConfigMap {name}: {KEY} {has} {ZONE}"));
        if self.server.deployment.is_none() {
            (self.say)(&format!(
                "next: restart CoreDNS in {}, which reads its {KEY} when it starts",
                self.cluster.name
            ));
        }
        Ok(())
    }

    /// Replaces all Pods, as `kubectl rollout restart` does, and notes for which CRD.
    pub(super) async fn restart(&mut self, crd: Option<&str>) -> Result<(), Error> {
        let name = &self.server.name;
        if !self.options.apply {
            self.say(&format!("would restart Deployment {name}"));
            return Ok(());
        }
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), &name.namespace);
        let patch = json!({
            "metadata": {"annotations": {RESTARTED_FOR: crd}},
            "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: Timestamp::now().to_string()}}}},
        });
        let (patch, params) = (Patch::Merge(&patch), by_us());
        let restart = deployments.patch(&name.name, &params, &patch);
        self.cluster.request(format!("restart Deployment {name}"), restart).await?;
        self.say(&format!("restarted Deployment {name}"));
        Ok(())
    }

    /// Waits until all Pods are new, and says what is missing. `next` ends the error when the time is up.
    pub(super) async fn rolled_out(&mut self, next: &str) -> Result<(), Error> {
        let (cluster, name, limit) = (self.cluster, &self.server.name, self.options.timeout);
        let probe = async || {
            let missing = rollout::missing(cluster, &name.namespace, &name.name).await?;
            Ok(missing.map_or(Ok(()), Err))
        };
        let waiting = |message: &str| self.say(&format!("waiting for CoreDNS: {message}"));
        rollout::wait(limit, probe, waiting).await?.map_err(|message| Error::NotRolledOut {
            cluster: cluster.name.clone(),
            message,
            limit,
            next: format!("{next}: {}", self.options.command("--remove --apply")),
        })
    }
}

fn by_us() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() }
}
