//! How many replicas of a daemon run.

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};

use super::Installer;
use crate::{
    Daemons, Error,
    cluster::Cluster,
    objects::{Object, SYSTEM, anew, disruption_budget, is_of_replicas},
    rollout,
    run::Part,
};

impl Installer<'_> {
    /// As many replicas as were asked for, else as the Deployment has, else one.
    pub(crate) async fn replicas(&self, daemon: &str) -> Result<i32, Error> {
        if let Daemons::Inside { replicas: Some(replicas), .. } = &self.run.daemons {
            return Ok((*replicas).into());
        }
        let found = deployment(self.cluster, daemon).await?;
        Ok(found.and_then(|deployment| deployment.spec.replicas).unwrap_or(1).max(1))
    }

    /// Installs what runs a daemon inside its cluster. Where it is one Pod, no budget keeps a node from being drained.
    pub(crate) async fn run_daemon(
        &mut self,
        part: Part,
        daemon: &str,
        workload: &[Object],
    ) -> Result<(), Error> {
        if !self.run.dry_run && self.run.does(part) {
            self.end_the_one(daemon, workload).await?;
        }
        self.install(part, workload).await?;
        let budget = disruption_budget(daemon);
        let has_one = workload.iter().any(|object| object.to_string() == budget.to_string());
        if has_one || self.run.dry_run || !self.run.does(part) {
            return Ok(());
        }
        let Some(found) = self.cluster.read(&budget).await? else { return Ok(()) };
        if found.is_ours() {
            let preconditions = Preconditions { uid: found.metadata().uid, resource_version: None };
            let (api, params) = (self.api(&budget), DeleteParams::default().preconditions(preconditions));
            let deleted = api.delete(&budget.name, &params);
            self.cluster.request(format!("delete {budget}"), deleted).await?;
            self.say(&format!("deleted {budget}"));
        }
        Ok(())
    }
    /// Where one Pod becomes several, has it end before any of these starts: it was not told that there are others, and would write beside
    /// the one of them that is active.
    async fn end_the_one(&mut self, daemon: &str, workload: &[Object]) -> Result<(), Error> {
        let Some(wanted) = workload.iter().find(|object| object.resource.kind == "Deployment") else {
            return Ok(());
        };
        let is_several = serde_json::from_value(wanted.body.clone())
            .is_ok_and(|wanted: Deployment| is_of_replicas(&wanted));
        let there = deployment(self.cluster, daemon).await?;
        if !is_several || there.is_none_or(|there| is_of_replicas(&there)) {
            return Ok(());
        }
        if let Some(outcome) = self.apply(&anew(wanted)).await? {
            self.say(&format!("{outcome} {wanted}: its old Pod ends before new ones start"));
        }
        let missing = format!("the end of the old Pod of {wanted}");
        let probe = async |cluster: &Cluster| {
            let there = deployment(cluster, daemon).await?;
            Ok(there.is_none_or(|there| rollout::is_all_new(&there)).then_some(()))
        };
        self.until(&missing, probe).await
    }
}

async fn deployment(cluster: &Cluster, daemon: &str) -> Result<Option<Deployment>, Error> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), SYSTEM);
    cluster.request(format!("read Deployment {SYSTEM}/{daemon}"), deployments.get_opt(daemon)).await
}
