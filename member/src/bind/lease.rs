//! Lease `kube-bind/kube-bind`, for which Go's konnector competes: the two must never work at once.
//!
//! Watches nothing; reads and writes the Lease every two seconds. Who holds it is gone when it was not renewed for as long as it says, by our
//! own clock. A holder that cannot renew it stops before others may take it.

use std::time::{Duration, Instant};

use api::{label::MEMBER, lease::LeaseView};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kit::{
    boot::Env,
    write::{Error, Writer},
};
use kube::{Api, ResourceExt, core::ObjectMeta};
use serde_json::json;

use super::local::NAMESPACE;

const NAME: &str = "kube-bind";
/// How long it counts, as Go's konnector has it.
const LASTS: Duration = Duration::from_secs(15);
/// A holder that did not renew it for so long stops.
const GIVE_UP: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(2);

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Create,
    /// It is ours, or nobody's.
    Take,
    /// Somebody else has it.
    Wait,
}

/// What was last seen of the holder, and since when.
#[derive(Default)]
struct Seen(Option<((String, Option<Timestamp>), Instant)>);

impl Seen {
    fn turn(&mut self, lease: Option<&LeaseView>, us: &str, now: Instant) -> Turn {
        let Some(lease) = lease else { return Turn::Create };
        let Some(holder) = lease.holder().filter(|holder| *holder != us) else { return Turn::Take };
        let said = (holder.to_owned(), lease.renew_time());
        match &self.0 {
            Some((before, since)) if *before == said => {
                if now.saturating_duration_since(*since) > lease.stale() { Turn::Take } else { Turn::Wait }
            }
            _ => {
                self.0 = Some((said, now));
                Turn::Wait
            }
        }
    }
}

/// The Lease, as this process competes for it.
pub(super) struct Claim {
    leases: Api<LeaseView>,
    writer: Writer,
    us: String,
    seen: Seen,
}

impl Claim {
    pub(super) fn new(env: &Env) -> Self {
        Self {
            leases: Api::namespaced(env.client.clone(), NAMESPACE),
            writer: Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone()),
            us: env.holder.to_string(),
            seen: Seen::default(),
        }
    }

    /// Returns when the Lease is ours.
    pub(super) async fn acquire(&mut self) {
        let mut is_said = false;
        loop {
            match self.renew().await {
                Ok(true) => return,
                Ok(false) if !is_said => {
                    is_said = true;
                    tracing::info!("another konnector holds Lease {NAMESPACE}/{NAME}: waiting for it");
                }
                Ok(false) | Err(Error::Stale) => {}
                Err(error) => tracing::warn!(%error, "Lease {NAMESPACE}/{NAME} cannot be had, trying again"),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Renews it; returns when it is not ours any more.
    pub(super) async fn keep(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(EVERY).await;
            match self.renew().await {
                Ok(true) => renewed = Instant::now(),
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "Lease {NAMESPACE}/{NAME} was not renewed"),
            }
            if renewed.elapsed() > GIVE_UP {
                return;
            }
        }
    }

    /// Lets others have it at once, if it is still ours.
    pub(super) async fn release(&self) {
        let released = async {
            let Some(lease) = self.leases.get_opt(NAME).await? else { return Ok(()) };
            if lease.holder() != Some(self.us.as_str()) {
                return Ok(());
            }
            let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": {"holderIdentity": ""}});
            self.writer.merge(&lease, None, patch).await.map(drop)
        };
        if let Ok(Err::<(), Error>(error)) = tokio::time::timeout(GIVE_UP, released).await {
            tracing::debug!(%error, "Lease {NAMESPACE}/{NAME} was not released: it counts for {LASTS:?} more");
        }
    }

    /// Whether it is ours now.
    async fn renew(&mut self) -> Result<bool, Error> {
        let lease = tokio::time::timeout(GIVE_UP, self.leases.get_opt(NAME)).await;
        let Ok(lease) = lease else { return Err(Error::Stale) };
        let lease = lease?;
        let now = Timestamp::now();
        match (self.seen.turn(lease.as_ref(), &self.us, Instant::now()), &lease) {
            (Turn::Wait, _) => Ok(false),
            (Turn::Take, Some(lease)) => {
                let is_new = lease.holder() != Some(self.us.as_str());
                let mut spec = json!({"holderIdentity": self.us, "leaseDurationSeconds": LASTS.as_secs(), "renewTime": MicroTime(now)});
                if is_new {
                    spec["acquireTime"] = json!(MicroTime(now));
                }
                let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": spec});
                self.writer.merge(lease, None, patch).await?;
                Ok(true)
            }
            _ => {
                let metadata = ObjectMeta {
                    name: Some(NAME.to_owned()),
                    namespace: Some(NAMESPACE.to_owned()),
                    ..ObjectMeta::default()
                };
                let spec = LeaseSpec {
                    holder_identity: Some(self.us.clone()),
                    lease_duration_seconds: i32::try_from(LASTS.as_secs()).ok(),
                    acquire_time: Some(MicroTime(now)),
                    renew_time: Some(MicroTime(now)),
                    ..LeaseSpec::default()
                };
                self.writer.put(None, &Lease { metadata, spec: Some(spec) }).await?;
                Ok(true)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: i64) -> LeaseView {
        let at = Timestamp::from_second(renewed).unwrap();
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": MicroTime(at)});
        serde_json::from_value(json!({"metadata": {"name": NAME}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_lease_is_taken_when_nobody_renews_it_by_our_own_clock() {
        let (mut seen, begun) = (Seen::default(), Instant::now());
        let mut turn = |lease: Option<LeaseView>, after: u64| {
            seen.turn(lease.as_ref(), "us", begun + Duration::from_secs(after))
        };
        assert_eq!(turn(None, 0), Turn::Create);
        assert_eq!(turn(Some(lease("us", 1)), 0), Turn::Take);
        assert_eq!(turn(Some(lease("", 1)), 0), Turn::Take);
        assert_eq!(turn(Some(lease("go", 1)), 0), Turn::Wait, "however old it says that it is");
        assert_eq!(turn(Some(lease("go", 1)), 15), Turn::Wait);
        assert_eq!(turn(Some(lease("go", 2)), 16), Turn::Wait, "it lives");
        assert_eq!(turn(Some(lease("go", 2)), 30), Turn::Wait);
        assert_eq!(turn(Some(lease("go", 2)), 32), Turn::Take);
    }
}
