//! Waits until a daemon is ready, and says what it reports meanwhile.

mod webhook;

use api::{label, lease::LeaseView, name};
use k8s_openapi::jiff::Timestamp;
use kube::Api;

use crate::{
    Error,
    cluster::Cluster,
    install::Installer,
    objects::{SYSTEM, area, offload::webhook::NAME},
    rollout,
    view::{ClusterSetView, Sign, sign},
};

/// Why a daemon is ready, or why it is not.
type Answer = Result<String, String>;

impl Installer<'_> {
    /// Waits until the Deployment has been rolled out and the leader holds its Lease in the Common Area of `set`.
    pub(crate) async fn leader_is_ready(&mut self, set: &str) -> Result<(), Error> {
        self.is_ready("freeport-leader", async |cluster| leader(cluster, set).await).await
    }

    /// Waits until the Deployment has been rolled out and the member's ClusterSet `set` is Ready.
    pub(crate) async fn member_is_ready(&mut self, set: &str) -> Result<(), Error> {
        self.is_ready("freeport-member", async |cluster| member(cluster, set).await).await
    }

    /// Waits until the Deployment of the webhook has been rolled out and API servers take its answers. Its Pods wait for the
    /// certificate that the member issues.
    pub(crate) async fn webhook_is_ready(&mut self) -> Result<(), Error> {
        self.is_ready(NAME, async |cluster| webhook::answers(cluster).await).await
    }

    /// Waits until the Deployment of a leader that provides APIs has been rolled out.
    pub(crate) async fn provider_is_ready(&mut self) -> Result<(), Error> {
        let answers = async |_: &Cluster| Ok(Ok("it serves consumers".into()));
        self.is_ready(label::LEADER, answers).await
    }

    async fn is_ready(
        &mut self,
        daemon: &str,
        ask: impl AsyncFn(&Cluster) -> Result<Answer, Error>,
    ) -> Result<(), Error> {
        let cluster = self.cluster;
        let probe = async || {
            // Before the rollout an older daemon may have written the status.
            match rollout::missing(cluster, SYSTEM, daemon).await? {
                Some(missing) => Ok(Err(missing)),
                None => ask(cluster).await,
            }
        };
        let limit = self.run.timeout;
        let waiting = |message: &str| self.say(&format!("waiting for {daemon}: {message}"));
        match rollout::wait(limit, probe, waiting).await? {
            Ok(message) => {
                self.say(&format!("{daemon} is ready: {message}"));
                Ok(())
            }
            Err(message) => {
                Err(Error::NotReady { cluster: cluster.name.clone(), daemon: daemon.into(), message, limit })
            }
        }
    }
}

async fn leader(cluster: &Cluster, set: &str) -> Result<Answer, Error> {
    let area = area::name(set);
    let leases: Api<LeaseView> = Api::namespaced(cluster.client.clone(), &area);
    let lease = cluster.request("read the leader's Lease", leases.get_opt(name::LEADER_LEASE)).await?;
    Ok(match lease {
        Some(lease) if matches!(sign(&lease, Timestamp::now()), Sign::Alive) => {
            Ok(format!("it serves Common Area {area}"))
        }
        _ => Err(format!("it does not hold its Lease in Common Area {area} yet")),
    })
}

async fn member(cluster: &Cluster, set: &str) -> Result<Answer, Error> {
    let sets: Api<ClusterSetView> = Api::namespaced(cluster.client.clone(), SYSTEM);
    let found = cluster.request(format!("read ClusterSet {SYSTEM}/{set}"), sets.get(set)).await?;
    if !found.is_observed() {
        return Ok(Err("it has not processed its ClusterSet yet".into()));
    }
    let ready = found.ready().cloned().unwrap_or_default();
    let [reason, message] = [ready.reason, ready.message].map(Option::unwrap_or_default);
    Ok(if ready.status.as_deref() == Some("True") {
        Ok(message)
    } else {
        Err(format!("{reason}: {message}"))
    })
}
