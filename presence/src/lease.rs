//! Presence in a Common Area: a Lease that says who is there, that its watches are open, and which wire contract it speaks.
//!
//! The holder is `<uid of Namespace kube-system>/<instance>`. A newer instance of the same cluster takes over at once: it
//! replaces one that stopped or is about to, which stands by. A live holder of another cluster, or of a copy of ours ([`kin`]),
//! means that two clusters use the same ID: the newcomer keeps out and says on the Lease that it waits, so that the holder
//! learns of it. Whether a holder lives is judged by our own clock and by its renewals, never by its clock.
//!
//! [`kin`]: crate::kin

mod seen;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    label,
    lease::{LeaseView, Pace, Settled},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kit::{
    backoff,
    failure::{self, Failure},
    hold::Hold,
    holder::Holder,
};
use kube::{
    ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    core::Request,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use self::seen::{Seen, Step};
use crate::{
    kin::{Kinship, Relation},
    restore::RestoreDetector,
};

/// How soon a Lease that another cluster holds is looked at again.
const RECHECK: Duration = Duration::from_secs(2);

/// No two renewals are closer together, whatever news there is: all members hear of each.
const APART: Duration = Duration::from_secs(1);

/// How it stands with our Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not tried yet; or another process with our cluster's uid holds it, and it is not known whether that one lives.
    Unknown,
    /// Ours.
    Held {
        /// Another cluster, or a copy of ours, waits for it: its holder identity.
        rival: Option<String>,
    },
    /// A newer process of our cluster holds it.
    Replaced,
    /// Another cluster, or a copy of ours, holds it and lives: our ID is taken.
    Taken {
        /// Its holder identity.
        holder: String,
        /// Without a renewal for this long the Lease is stale, and ours.
        stale: Duration,
    },
    /// The API server holds an older Lease of ours than it told us of, or none: it was restored, or emptied.
    Restored,
    /// No answer, or a refusal.
    Failing {
        /// Which.
        failure: Failure,
    },
}

impl Presence {
    /// Whether the Lease is ours.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

/// Our Lease, and what it says.
pub struct Keeper {
    /// The Lease.
    pub detector: RestoreDetector,
    /// Who holds it.
    pub us: Holder,
    /// Whether we may keep it: a replica that stands by does not.
    pub hold: Hold,
    /// Other processes with our cluster's uid.
    pub kinship: Kinship,
    /// How often it is renewed.
    pub pace: Pace,
}

/// Annotations of a Lease.
pub type Annotations = BTreeMap<String, String>;

impl Keeper {
    /// Keeps our Lease, until it turns out that the API server was restored. `settled` is asked at each renewal; `presence` says
    /// how it stands.
    pub async fn keep(self, settled: impl Fn() -> Settled, presence: watch::Sender<Presence>) {
        self.keep_saying(|_| Annotations::new(), &Notify::new(), settled, presence).await;
    }

    /// [`keep`](Self::keep), with the annotations that `also` gives for a renewal at that time; others stay as they were. With `news`
    /// it is renewed before it is time.
    pub async fn keep_saying(
        self,
        also: impl Fn(Timestamp) -> Annotations,
        news: &Notify,
        settled: impl Fn() -> Settled,
        presence: watch::Sender<Presence>,
    ) {
        if !self.stand_by().await {
            presence.send_replace(Presence::Restored);
            return;
        }
        let (mut seen, mut failures) = (Seen::default(), 0);
        loop {
            let now = Timestamp::now();
            let was_read = self.has_to_read(&seen);
            let attempt = self.once(&mut seen, says(&settled(), also(now), now), now);
            let now = match tokio::time::timeout(self.pace.renew(), attempt).await {
                Ok(Ok(now)) => now,
                // Somebody else wrote it: no failure, but a reason to look who. Whoever waits for it writes it as often as we
                // do, so that a Lease we hold is late unless we look at once.
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                    if was_read {
                        tokio::time::sleep(RECHECK).await;
                    }
                    seen.doubtful = true;
                    continue;
                }
                Ok(Err(error)) => Presence::Failing { failure: failure::classify(&error) },
                Err(_) => Presence::Failing { failure: Failure::Unreachable("no answer in time") },
            };
            let failed = matches!(now, Presence::Failing { .. });
            seen.doubtful |= failed;
            failures = if failed { failures + 1 } else { 0 };
            let is_held = now.is_held();
            let wait = match now {
                Presence::Held { .. } => self.pace.renew(),
                // No longer than between renewals, or the Lease stays stale when the server answers again.
                Presence::Failing { .. } => backoff::LEADER.wait(failures).min(self.pace.renew()),
                Presence::Unknown | Presence::Restored | Presence::Taken { .. } | Presence::Replaced => {
                    RECHECK
                }
            };
            presence.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
            if now == Presence::Restored {
                return;
            }
            if is_held {
                tokio::time::sleep(APART).await;
                let rest = tokio::time::sleep(wait.saturating_sub(APART));
                tokio::select! {
                    () = rest => {}
                    () = news.notified() => {}
                }
            } else {
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Waits until this process is the active replica, and only reads the Lease, which that one keeps. False if it turns out meanwhile
    /// that the API server was restored.
    pub async fn stand_by(&self) -> bool {
        loop {
            tokio::select! {
                biased;
                () = self.hold.active() => return true,
                () = tokio::time::sleep(self.pace.renew()) => {}
            }
            // Who does not answer is asked again.
            if let Ok(lease) = self.detector.leases().get_opt(self.detector.name()).await
                && !self.detector.heard(lease.as_ref())
            {
                return false;
            }
        }
    }

    /// One renewal, at the time that `says` is of.
    async fn once(&self, seen: &mut Seen, says: Annotations, at: Timestamp) -> kube::Result<Presence> {
        let Self { detector, us, kinship, .. } = self;
        if self.has_to_read(seen) {
            let lease = detector.leases().get_opt(detector.name()).await?;
            if !detector.heard(lease.as_ref()) {
                return Ok(Presence::Restored);
            }
            seen.see(lease, Instant::now());
        }
        let relation = match seen.kin(us) {
            Some(holder) => Some(kinship.relation(holder, &us.to_string()).await),
            None => None,
        };
        let step = seen.step(us, relation, Instant::now());
        if matches!(step, Step::KeepOut | Step::StandBy) {
            // It is not ours, so that it goes or is made anew tells nothing of the API server.
            detector.forget();
        }
        let (taken, written) = match step {
            Step::StandBy => return Ok(Presence::Replaced),
            Step::KeepOut => {
                kinship.gave_way();
                self.wait_for(seen).await;
                // A process of this very cluster that has crashed holds it until it is stale, and is no copy.
                if relation.is_some() && !seen.renewed {
                    return Ok(Presence::Unknown);
                }
                let holder = seen.holder().unwrap_or_default().to_owned();
                return Ok(Presence::Taken { holder, stale: seen.stale() });
            }
            Step::Create => (None, self.create(says, at).await?),
            Step::Take | Step::Renew => {
                let was_before_us = step == Step::Take && relation != Some(Relation::Newcomer);
                let taken = was_before_us.then(|| seen.holder().map(str::to_owned)).flatten();
                (taken, self.renew(seen, step == Step::Take, says, at).await?)
            }
        };
        let held = detector.heard(Some(&written));
        seen.see(Some(written), Instant::now());
        kinship.held(taken.as_deref());
        let rival = seen.rival(us, Instant::now()).map(str::to_owned);
        Ok(if held { Presence::Held { rival } } else { Presence::Restored })
    }

    /// A Lease we hold is renewed without reading it first: one request each time. After a conflict it is read.
    fn has_to_read(&self, seen: &Seen) -> bool {
        seen.doubtful || seen.holder() != Some(self.us.to_string().as_str())
    }

    async fn create(&self, says: Annotations, at: Timestamp) -> kube::Result<LeaseView> {
        let leases = self.detector.leases();
        let mut lease =
            Lease { metadata: ObjectMeta::default(), spec: Some(spec(&self.us, self.pace, at, true)) };
        lease.metadata.name = Some(self.detector.name().to_owned());
        lease.metadata.annotations = Some(says);
        // Of the answer we read what is read of every Lease.
        let body = serde_json::to_vec(&lease).map_err(kube::Error::SerdeError)?;
        let request = Request::new(leases.resource_url()).create(&PostParams::default(), body);
        leases.clone().into_client().request(request.map_err(kube::Error::BuildRequest)?).await
    }

    async fn renew(
        &self,
        seen: &Seen,
        take: bool,
        says: Annotations,
        at: Timestamp,
    ) -> kube::Result<LeaseView> {
        let patch = json!({
            "metadata": {
                "annotations": says,
                "resourceVersion": seen.lease.as_ref().and_then(ResourceExt::resource_version),
            },
            "spec": spec(&self.us, self.pace, at, take),
        });
        self.patch(&patch).await
    }

    /// Says on a Lease that is not ours that we wait for it, as often as its holder renews it.
    async fn wait_for(&self, seen: &mut Seen) {
        let now = Instant::now();
        if seen.said.is_some_and(|at| now.saturating_duration_since(at) < self.pace.renew()) {
            return;
        }
        let annotations = json!({label::WAITING: seen::waiting(&self.us, Timestamp::now())});
        match self.patch(&json!({"metadata": {"annotations": annotations}})).await {
            Ok(_) => seen.said = Some(now),
            Err(error) => tracing::debug!(%error, "cannot say that we wait for the Lease"),
        }
    }

    async fn patch(&self, patch: &Value) -> kube::Result<LeaseView> {
        let leases = self.detector.leases();
        leases.patch(self.detector.name(), &PatchParams::default(), &Patch::Merge(patch)).await
    }
}

fn spec(us: &Holder, pace: Pace, now: Timestamp, take: bool) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(us.to_string()),
        lease_duration_seconds: Some(pace.seconds()),
        acquire_time: take.then_some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    }
}

fn says(settled: &Settled, also: Annotations, at: Timestamp) -> Annotations {
    // Whoever holds it is there, whatever was said of it before.
    let left = label::FALSE;
    let unwritten = settled.unwritten(at);
    [
        (label::SETTLED, settled.word()),
        (label::UNWRITTEN, &unwritten),
        (label::WIRE, label::WIRE_VERSION),
        (label::VERSION, env!("CARGO_PKG_VERSION")),
        (label::LEFT, left),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into_iter()
    .chain(also)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us() -> Holder {
        Holder { cluster_uid: "u1".into(), instance: "a".into() }
    }

    #[test]
    fn a_renewal_says_what_the_wire_contract_wants() {
        let now: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let patch = json!({"metadata": {"annotations": says(&Settled::Yes, Annotations::new(), now)}, "spec": spec(&us(), Pace::default(), now, false)});
        let want = json!({
            "metadata": {"annotations": {
                "multicluster.freeport.dev/left": "false",
                "multicluster.freeport.dev/settled": "true",
                "multicluster.freeport.dev/unwritten": "",
                "multicluster.freeport.dev/version": env!("CARGO_PKG_VERSION"),
                "multicluster.freeport.dev/wire": "1",
            }},
            "spec": {
                "holderIdentity": "u1/a",
                "leaseDurationSeconds": 30,
                "renewTime": "2026-11-01T12:00:00.000000Z",
            },
        });
        assert_eq!(patch, want);
    }
}
