//! Which image a daemon's Deployment gets.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;

use crate::{
    Daemons, Error,
    install::Installer,
    objects::{DEFAULT_IMAGE, SYSTEM},
};

impl Installer<'_> {
    /// The image asked for, else the one the Deployment has, so that running a command again keeps what was chosen, else that
    /// of this version. None for a daemon that runs outside.
    pub(crate) async fn image(&self, daemon: &str) -> Result<Option<String>, Error> {
        let Daemons::Inside { image, .. } = &self.run.daemons else { return Ok(None) };
        if image.is_some() {
            return Ok(image.clone());
        }
        let deployments: Api<Deployment> = Api::namespaced(self.cluster.client.clone(), SYSTEM);
        let doing = format!("read Deployment {SYSTEM}/{daemon}");
        let found = self.cluster.request(doing, deployments.get_opt(daemon)).await?;
        let pod = found.and_then(|deployment| deployment.spec.template.spec);
        let has = pod.and_then(|pod| pod.containers.into_iter().next()?.image);
        Ok(Some(has.unwrap_or_else(|| DEFAULT_IMAGE.into())))
    }
}
