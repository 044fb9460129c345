//! Waiting until a daemon says that it is ready, and telling meanwhile what it says.

use std::time::{Duration, Instant};

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

const PAUSE: Duration = Duration::from_millis(500);
/// A Lease renewed within this time has somebody behind it.
const FRESH: Duration = Duration::from_secs(30);

/// What a daemon says of itself.
enum Said {
    Ready(String),
    NotReady(String),
}

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
        ask: impl AsyncFn(&Cluster) -> Result<Said, Error>,
    ) -> Result<(), Error> {
        let (begun, mut told) = (Instant::now(), String::new());
        loop {
            // Until then an older daemon may be the one that says something.
            let message = match rollout::missing(self.cluster, SYSTEM, daemon).await? {
                Some(missing) => missing,
                None => match ask(self.cluster).await? {
                    Said::Ready(message) => {
                        self.say(&format!("{daemon} is ready: {message}"));
                        return Ok(());
                    }
                    Said::NotReady(message) => message,
                },
            };
            if message != told {
                self.say(&format!("waiting for {daemon}: {message}"));
                told.clone_from(&message);
            }
            if begun.elapsed() >= self.run.timeout {
                return Err(Error::NotReady {
                    cluster: self.cluster.name.clone(),
                    daemon: daemon.into(),
                    message,
                    limit: self.run.timeout,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn leader(cluster: &Cluster, set: &str) -> Result<Said, Error> {
    let area = area::name(set);
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), &area);
    let lease = cluster.request("read the leader's Lease", leases.get_opt(name::LEADER_LEASE)).await?;
    let renewed = lease.and_then(|lease| lease.spec?.renew_time);
    let fresh = renewed.is_some_and(|at| Timestamp::now().duration_since(at.0).unsigned_abs() < FRESH);
    Ok(if fresh {
        Said::Ready(format!("it serves Common Area {area}"))
    } else {
        Said::NotReady(format!("it has not taken up Common Area {area} yet"))
    })
}

async fn member(cluster: &Cluster, set: &str) -> Result<Said, Error> {
    let resource = ApiResource::erase::<ClusterSet>(&());
    let sets: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), SYSTEM, &resource);
    let found = cluster.request(format!("read ClusterSet {SYSTEM}/{set}"), sets.get(set)).await?;
    let of_now = found.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64);
    let conditions = found.data.pointer("/status/conditions").and_then(serde_json::Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
    let text = |field: &str| ready.and_then(|c| c[field].as_str()).unwrap_or_default().to_owned();
    Ok(match (of_now == found.metadata.generation, text("status").as_str()) {
        (true, "True") => Said::Ready(text("message")),
        (true, _) => Said::NotReady(format!("{}: {}", text("reason"), text("message"))),
        (false, _) => Said::NotReady("it has not looked at its ClusterSet yet".into()),
    })
}
