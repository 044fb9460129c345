//! Waiting until a daemon says that it is ready, and telling meanwhile what it says.

use std::time::Duration;

use api::{cluster_set::ClusterSet, name};
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{Api, api::DynamicObject, core::discovery::ApiResource};

use crate::{
    Error,
    cluster::Cluster,
    install::Installer,
    objects::{SYSTEM, area},
    rollout,
};

/// A Lease renewed within this time has somebody behind it.
const FRESH: Duration = Duration::from_secs(30);

/// What a daemon says of itself: why it is ready, or why it is not.
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

    async fn is_ready(
        &mut self,
        daemon: &str,
        ask: impl AsyncFn(&Cluster) -> Result<Answer, Error>,
    ) -> Result<(), Error> {
        let cluster = self.cluster;
        let probe = async || {
            // Until then an older daemon may be the one that says something.
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
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &area);
    let lease = cluster.request("read the leader's Lease", leases.get_opt(name::LEADER_LEASE)).await?;
    let renewed = lease.and_then(|lease| lease.spec?.renew_time);
    let fresh = renewed.is_some_and(|at| Timestamp::now().duration_since(at.0).unsigned_abs() < FRESH);
    Ok(if fresh {
        Ok(format!("it serves Common Area {area}"))
    } else {
        Err(format!("it has not taken up Common Area {area} yet"))
    })
}

async fn member(cluster: &Cluster, set: &str) -> Result<Answer, Error> {
    let resource = ApiResource::erase::<ClusterSet>(&());
    let sets: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), SYSTEM, &resource);
    let found = cluster.request(format!("read ClusterSet {SYSTEM}/{set}"), sets.get(set)).await?;
    let of_now = found.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64);
    let conditions = found.data.pointer("/status/conditions").and_then(serde_json::Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let text = |field: &str| ready.and_then(|c| c[field].as_str()).unwrap_or_default().to_owned();
    Ok(match (of_now == found.metadata.generation, text("status").as_str()) {
        (true, "True") => Ok(text("message")),
        (true, _) => Err(format!("{}: {}", text("reason"), text("message"))),
        (false, _) => Err("it has not looked at its ClusterSet yet".into()),
    })
}
