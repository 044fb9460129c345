//! What the daemons are told of binding, in their environment.

use api::bind::resource::Isolation;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::EnvVar};
use kube::Api;

use crate::{
    Daemons, Error,
    install::Installer,
    objects::{SYSTEM, bind::TOLD},
};

/// How the leader keeps the objects of consumers apart.
pub(super) const ISOLATION: &str = "FREEPORT_BIND_ISOLATION";

/// As the API writes it.
pub(super) fn word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Prefixed => "Prefixed",
        Isolation::Namespaced => "Namespaced",
        Isolation::None => "None",
    }
}

impl Installer<'_> {
    /// What the Deployment of a daemon tells it of binding, so that other commands leave that as it is. Nothing outside.
    pub(crate) async fn told_of_binding(&self, daemon: &str) -> Result<Vec<EnvVar>, Error> {
        if matches!(self.run.daemons, Daemons::Outside(_)) {
            return Ok(Vec::new());
        }
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), SYSTEM);
        let doing = format!("read Deployment {SYSTEM}/{daemon}");
        let found = self.cluster.request(doing, deployments.get_opt(daemon)).await?;
        let pod = found.and_then(|deployment| deployment.spec.template.spec);
        let container = pod.and_then(|pod| pod.containers.into_iter().next());
        let told = container.and_then(|container| container.env).unwrap_or_default();
        Ok(told.into_iter().filter(|variable| variable.name.starts_with(TOLD)).collect())
    }
}
