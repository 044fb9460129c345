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

    /// Waits until the member's ClusterSet `set` is Ready, wherever its daemon runs, and `leader` knows of it: where the ClusterSet did
    /// not change, it may have been Ready before.
    pub(crate) async fn member_is_connected(
        &mut self,
        set: &str,
        id: &str,
        leader: &Cluster,
    ) -> Result<(), Error> {
        let cluster = self.cluster;
        let probe = async || {
            let ready = member(cluster, set).await?;
            let is_known = is_alive(leader, set, &name::member_lease(id)).await?;
            let unknown = || format!("it does not hold its Lease at {} yet", leader.name);
            Ok(ready.and_then(|message| if is_known { Ok(message) } else { Err(unknown()) }))
        };
        self.answers("freeport-member", probe).await
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
        self.answers(daemon, probe).await
    }

    async fn answers(
        &mut self,
        daemon: &str,
        probe: impl AsyncFn() -> Result<Answer, Error>,
    ) -> Result<(), Error> {
        let limit = self.run.timeout;
        let waiting = |message: &str| self.say(&format!("waiting for {daemon}: {message}"));
        match rollout::wait(limit, probe, waiting).await? {
            Ok(message) => {
                self.say(&format!("{daemon} is ready: {message}"));
                Ok(())
            }
            Err(message) => Err(Error::NotReady {
                cluster: self.cluster.name.clone(),
                daemon: daemon.into(),
                message,
                limit,
            }),
        }
    }
}

async fn leader(cluster: &Cluster, set: &str) -> Result<Answer, Error> {
    let area = area::name(set);
    Ok(match is_alive(cluster, set, name::LEADER_LEASE).await? {
        true => Ok(format!("it serves Common Area {area}")),
        false => Err(format!("it does not hold its Lease in Common Area {area} yet")),
    })
}

/// Whether such a Lease in the Common Area of `set` is renewed.
async fn is_alive(leader: &Cluster, set: &str, lease: &str) -> Result<bool, Error> {
    let leases: Api<LeaseView> = Api::namespaced(leader.client.clone(), &area::name(set));
    let found = leader.request(format!("read Lease {lease}"), leases.get_opt(lease)).await?;
    Ok(found.is_some_and(|lease| matches!(sign(&lease, Timestamp::now()), Sign::Alive)))
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
