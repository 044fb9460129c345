//! Which of several replicas of a daemon is active: the one that holds a Lease of their own in the daemon's Namespace. All others stand
//! by, look at it each second, and one of them takes it when it was not renewed for [`LASTS`], by its own clock, or at once when it is
//! given up.
//!
//! Reads and writes that Lease only, past the [`Hold`](crate::hold::Hold) that comes of it. A holder stops to write [`GIVE_UP`] after it last
//! began a renewal that was answered, which is before others may take the Lease, whatever its requests do meanwhile. Who finds that another
//! one holds it ends, and begins anew as one that stands by: what it had decided counts no more. One that is told to end gives the Lease up
//! when its last write is done.
//!
//! A holder is `<replica>_<something random>`: a container that starts again in its Pod takes the Lease of the process before it at once.
//!
//! Somebody may delete the Lease, or restore it from a backup, under a holder that lives: who has seen another one hold it waits as if that one
//! had just renewed it.

mod turn;

use std::time::Duration;

use api::lease::{LeaseView, replica_of};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, Client, Resource, ResourceExt, core::ObjectMeta};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::turn::{Seen, Turn, Whose};
use crate::{
    events::Events,
    hold::Grant,
    metrics::Metrics,
    write::{Error, Writer},
};

/// How long the Lease counts without a renewal.
const LASTS: Duration = Duration::from_secs(10);
/// How often it is renewed.
const EVERY: Duration = Duration::from_secs(2);
/// How often it is looked at by who stands by, and tried again after a failure.
const LOOK: Duration = Duration::from_secs(1);
/// A holder that did not renew it for so long writes no more.
const GIVE_UP: Duration = Duration::from_secs(7);
/// For one answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the part of this process in the election ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As it was told to.
    Stopped,
    /// Another replica is active.
    Lost,
}

/// This process, as it competes for the Lease.
pub(crate) struct Election {
    leases: Api<LeaseView>,
    writer: Writer,
    namespace: String,
    name: String,
    /// Of the Pod, or of a process that somebody else starts.
    replica: String,
    us: String,
    seen: Seen,
    metrics: Metrics,
}

impl Election {
    /// Of replicas of `daemon` in this Namespace. `random` tells this process from others of the same `replica`.
    pub(crate) fn new(
        client: Client,
        daemon: &'static str,
        namespace: &str,
        (replica, random): (&str, &str),
        metrics: Metrics,
    ) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            writer: Writer::new(client, daemon, "local", metrics.clone()),
            namespace: namespace.to_owned(),
            name: api::name::active_lease(daemon),
            replica: replica.to_owned(),
            us: format!("{replica}_{random}"),
            seen: Seen::default(),
            metrics,
        }
    }

    /// Competes for the Lease, and keeps it until another replica has it; stands by until `stop`, and gives it up when the daemon has
    /// `ended`. `grant` says how long this process may write.
    pub(crate) async fn run(
        mut self,
        grant: Grant,
        events: Events,
        stop: CancellationToken,
        ended: CancellationToken,
    ) -> Ended {
        let active = self.metrics.active();
        active.set(0);
        tracing::info!(
            replica = self.replica,
            lease = self.name,
            "standing by until this replica is the active one"
        );
        let until = tokio::select! {
            until = self.acquire() => until,
            () = stop.cancelled() => return Ended::Stopped,
        };
        grant.until(until.into());
        active.set(1);
        tracing::info!(replica = self.replica, "this replica is the active one");
        events.tell(
            self.lease().object_ref(&()),
            "Elect",
            "LeaderElection",
            &format!("{} is active", self.replica),
        );
        drop(events);
        tokio::select! {
            () = self.keep(&grant, until) => {
                active.set(0);
                tracing::warn!(replica = self.replica, "another replica is the active one: ending, to begin anew as one that stands by");
                Ended::Lost
            }
            () = ended.cancelled() => {
                self.release().await;
                Ended::Stopped
            }
        }
    }

    /// Returns when the Lease is ours; until when this process may write.
    async fn acquire(&mut self) -> Instant {
        let mut trouble = None;
        loop {
            // Counts from the question on: nobody knows when the API server carried it out.
            let asked = Instant::now();
            let failed = match tokio::time::timeout(PATIENCE, self.compete()).await {
                Ok(Ok(true)) => return asked + GIVE_UP,
                // Another one was faster.
                Ok(Ok(false) | Err(Error::Stale)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            if let Some(error) = failed.as_ref().filter(|_| failed != trouble) {
                tracing::warn!(
                    error,
                    lease = self.name,
                    "the Lease of the active replica cannot be had, trying again"
                );
            }
            trouble = failed;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Renews the Lease; returns when another replica has it. While there is no answer nothing is known, and nothing is written once
    /// what was granted, `until` then, is over.
    async fn keep(&mut self, grant: &Grant, mut until: Instant) {
        let mut wait = EVERY;
        loop {
            tokio::time::sleep(wait).await;
            let asked = Instant::now();
            wait = match tokio::time::timeout(PATIENCE, self.renew(until)).await {
                Ok(Ok(true)) => {
                    until = asked + GIVE_UP;
                    grant.until(until.into());
                    EVERY
                }
                Ok(Ok(false)) => return grant.until(std::time::Instant::now()),
                Ok(Err(error)) => {
                    tracing::warn!(%error, lease = self.name, "the Lease of the active replica was not renewed");
                    LOOK
                }
                Err(_) => LOOK,
            };
        }
    }

    /// Whether the Lease is ours now.
    async fn compete(&mut self) -> Result<bool, Error> {
        let lease = self.leases.get_opt(&self.name).await?;
        let (us, replica) = (&self.us, &self.replica);
        let whose = |holder: &str| match holder {
            _ if holder == us => Whose::Ours,
            _ if replica_of(holder) == replica => Whose::Predecessors,
            _ => Whose::Anothers,
        };
        match (self.seen.turn(lease.as_ref(), whose, Instant::now()), lease) {
            (Turn::Wait, _) => Ok(false),
            (Turn::Take, Some(lease)) => self.write(&lease, true).await,
            _ => self.create().await,
        }
    }

    /// Whether the Lease is still ours, and renewed. Who holds it under our name is us: so nobody else was active meanwhile.
    async fn renew(&self, until: Instant) -> Result<bool, Error> {
        match self.leases.get_opt(&self.name).await? {
            Some(lease) if lease.holder() == Some(self.us.as_str()) => self.write(&lease, false).await,
            Some(_) => Ok(false),
            // Somebody deleted it, and others do not take it so soon.
            None if Instant::now() < until => self.create().await,
            None => Ok(false),
        }
    }

    async fn create(&self) -> Result<bool, Error> {
        let now = MicroTime(Timestamp::now());
        let spec = LeaseSpec {
            holder_identity: Some(self.us.clone()),
            lease_duration_seconds: i32::try_from(LASTS.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..LeaseSpec::default()
        };
        self.writer.put(None, &Lease { spec: Some(spec), ..self.lease() }).await.map(|_| true)
    }

    /// Renews it as it was read; if somebody has written it meanwhile, it is to be read again.
    async fn write(&self, lease: &LeaseView, is_new: bool) -> Result<bool, Error> {
        let now = MicroTime(Timestamp::now());
        let mut spec =
            json!({"holderIdentity": self.us, "leaseDurationSeconds": LASTS.as_secs(), "renewTime": now});
        if is_new {
            spec["acquireTime"] = json!(now);
        }
        let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": spec});
        self.writer.merge(lease, None, patch).await.map(|_| true)
    }

    /// Lets others have it at once, if it is still ours.
    async fn release(&self) {
        let released = async {
            let Some(lease) = self.leases.get_opt(&self.name).await? else { return Ok(()) };
            if lease.holder() != Some(self.us.as_str()) {
                return Ok(());
            }
            let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": {"holderIdentity": ""}});
            self.writer.merge(&lease, None, patch).await.map(drop)
        };
        match tokio::time::timeout(PATIENCE, released).await {
            Ok(Ok(())) => tracing::info!(replica = self.replica, "another replica can be the active one now"),
            Ok(Err::<(), Error>(error)) => {
                tracing::warn!(%error, "the Lease was not given up: it counts for {LASTS:?} more")
            }
            Err(_) => tracing::warn!("the Lease was not given up in time: it counts for {LASTS:?} more"),
        }
    }

    fn lease(&self) -> Lease {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: None }
    }
}

#[cfg(test)]
mod tests;
