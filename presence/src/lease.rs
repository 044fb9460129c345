//! Presence in a Common Area: a Lease that says who is there, that its watches are open, and which wire contract it speaks.
//!
//! The holder is `<uid of Namespace kube-system>/<instance>`. A newer instance of the same cluster takes over at once: it
//! replaces one that stopped or is about to. A live holder of another cluster means two clusters use the same ID, and the
//! newcomer keeps out. Whether a holder lives is judged by our own clock and by its renewals, never by its clock.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    label,
    lease::{self, Pace, Settled},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kit::{
    backoff,
    failure::{self, Failure},
    holder::Holder,
};
use kube::{
    ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::watch;

use crate::restore::RestoreDetector;

/// How soon a Lease that another cluster holds is looked at again.
const RECHECK: Duration = Duration::from_secs(2);

/// How it stands with our Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not tried yet.
    Unknown,
    /// Ours.
    Held,
    /// Another cluster holds it and lives: our ID is taken.
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

/// What to do next about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Renew,
    Take,
    KeepOut,
}

/// The Lease as last seen, and since when it looks like that.
#[derive(Default)]
struct Seen {
    lease: Option<Lease>,
    since: Option<Instant>,
    /// A request failed, and what we think of the Lease may be why. It keeps its age: silence is not broken by our failures.
    doubtful: bool,
}

impl Seen {
    fn see(&mut self, lease: Option<Lease>, now: Instant) {
        let version = |lease: &Option<Lease>| lease.as_ref().and_then(ResourceExt::resource_version);
        if self.since.is_none() || version(&self.lease) != version(&lease) {
            self.since = Some(now);
        }
        self.lease = lease;
        self.doubtful = false;
    }

    fn holder(&self) -> Option<&str> {
        let spec = self.lease.as_ref()?.spec.as_ref()?;
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// After how long without a renewal the Lease is stale.
    fn stale(&self) -> Duration {
        lease::stale(self.lease.as_ref().and_then(|lease| lease.spec.as_ref()?.lease_duration_seconds))
    }

    fn step(&self, us: &Holder, now: Instant) -> Step {
        if self.lease.is_none() {
            return Step::Create;
        }
        let Some(holder) = self.holder() else {
            return Step::Take;
        };
        if holder == us.to_string() {
            return Step::Renew;
        }
        let same_cluster = holder.split_once('/').is_some_and(|(uid, _)| uid == us.cluster_uid);
        let age = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if same_cluster || age >= self.stale() { Step::Take } else { Step::KeepOut }
    }
}

/// Our Lease, and what it says.
pub struct Keeper {
    /// The Lease.
    pub detector: RestoreDetector,
    /// Who holds it.
    pub us: Holder,
    /// How often it is renewed.
    pub pace: Pace,
}

/// Annotations of a Lease.
pub type Annotations = BTreeMap<String, String>;

impl Keeper {
    /// Keeps our Lease, until it turns out that the API server was restored. `settled` is asked at each renewal; `presence` says
    /// how it stands.
    pub async fn keep(self, settled: impl Fn() -> Settled, presence: watch::Sender<Presence>) {
        self.keep_saying(Annotations::new, settled, presence).await;
    }

    /// [`keep`](Self::keep), with the annotations that `also` gives at each renewal; others stay as they were.
    pub async fn keep_saying(
        self,
        also: impl Fn() -> Annotations,
        settled: impl Fn() -> Settled,
        presence: watch::Sender<Presence>,
    ) {
        let (mut seen, mut failures) = (Seen::default(), 0);
        loop {
            let attempt = self.once(&mut seen, says(settled(), also()));
            let now = match tokio::time::timeout(self.pace.renew(), attempt).await {
                Ok(Ok(now)) => now,
                // Somebody else wrote it: no failure, but a reason to look who.
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                    seen.doubtful = true;
                    tokio::time::sleep(RECHECK).await;
                    continue;
                }
                Ok(Err(error)) => Presence::Failing { failure: failure::classify(&error) },
                Err(_) => Presence::Failing { failure: Failure::Unreachable("no answer in time") },
            };
            let failed = matches!(now, Presence::Failing { .. });
            seen.doubtful |= failed;
            failures = if failed { failures + 1 } else { 0 };
            let wait = match now {
                Presence::Held => self.pace.renew(),
                Presence::Failing { .. } => backoff::LEADER.wait(failures),
                Presence::Unknown | Presence::Restored | Presence::Taken { .. } => RECHECK,
            };
            presence.send_if_modified(|old| std::mem::replace(old, now.clone()) != now);
            if now == Presence::Restored {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(&self, seen: &mut Seen, says: Annotations) -> kube::Result<Presence> {
        // A Lease we hold is renewed without reading it first: one request each time. After a conflict it is read.
        let Self { detector, us, pace } = self;
        let (api, name) = (detector.leases(), detector.name());
        if seen.doubtful || seen.holder() != Some(us.to_string().as_str()) {
            let lease = api.get_opt(name).await?;
            if !detector.heard(lease.as_ref()) {
                return Ok(Presence::Restored);
            }
            seen.see(lease, Instant::now());
        }
        let step = seen.step(us, Instant::now());
        let written = match step {
            Step::KeepOut => {
                // It is not ours, so that it goes or is made anew tells nothing of the API server.
                detector.forget();
                let holder = seen.holder().unwrap_or_default().to_owned();
                return Ok(Presence::Taken { holder, stale: seen.stale() });
            }
            Step::Create => {
                let mut lease = Lease {
                    metadata: ObjectMeta::default(),
                    spec: Some(spec(us, *pace, Timestamp::now(), true)),
                };
                lease.metadata.name = Some(name.to_owned());
                lease.metadata.annotations = Some(says);
                api.create(&PostParams::default(), &lease).await
            }
            Step::Take | Step::Renew => {
                let patch = json!({
                    "metadata": {
                        "annotations": says,
                        "resourceVersion": seen.lease.as_ref().and_then(ResourceExt::resource_version),
                    },
                    "spec": spec(us, *pace, Timestamp::now(), step == Step::Take),
                });
                api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
            }
        };
        let written = Some(written?);
        let held = detector.heard(written.as_ref());
        seen.see(written, Instant::now());
        Ok(if held { Presence::Held } else { Presence::Restored })
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

fn says(settled: Settled, also: Annotations) -> Annotations {
    // Whoever holds it is there, whatever was said of it before.
    let left = label::FALSE;
    [
        (label::SETTLED, settled.word()),
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
    use api::lease::STALE;

    use super::*;

    fn us() -> Holder {
        Holder { cluster_uid: "u1".into(), instance: "a".into() }
    }

    fn lease(holder: &str, version: &str) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.resource_version = Some(version.into());
        lease.spec = Some(LeaseSpec { holder_identity: Some(holder.into()), ..LeaseSpec::default() });
        lease
    }

    #[test]
    fn our_cluster_takes_over_at_once_and_another_only_when_it_is_silent() {
        let t = Instant::now();
        let mut seen = Seen::default();
        assert_eq!(seen.step(&us(), t), Step::Create);
        seen.see(Some(lease("u1/a", "1")), t);
        assert_eq!(seen.step(&us(), t), Step::Renew);
        seen.see(Some(lease("u1/b", "2")), t);
        assert_eq!(seen.step(&us(), t), Step::Take);
        seen.see(Some(lease("", "3")), t);
        assert_eq!(seen.step(&us(), t), Step::Take);

        seen.see(Some(lease("u2/a", "4")), t);
        assert_eq!(seen.step(&us(), t + STALE / 2), Step::KeepOut);
        seen.see(Some(lease("u2/a", "5")), t + STALE / 2);
        assert_eq!(seen.step(&us(), t + STALE), Step::KeepOut, "it renewed");
        seen.doubtful = true;
        seen.see(Some(lease("u2/a", "5")), t + STALE);
        assert!(!seen.doubtful);
        assert_eq!(seen.step(&us(), t + STALE / 2 + STALE), Step::Take);
    }

    #[test]
    fn a_lease_that_says_something_odd_is_neither_free_at_once_nor_taken_for_ever() {
        let t = Instant::now();
        for (seconds, stale) in [(0, 30), (-1, 30), (6, 6), (i32::MAX, 3600)] {
            let mut odd = lease("u2/a", "1");
            odd.spec.as_mut().unwrap().lease_duration_seconds = Some(seconds);
            let mut seen = Seen::default();
            seen.see(Some(odd), t);
            let after = |seconds| t + Duration::from_secs(seconds);
            assert_eq!(seen.step(&us(), after(stale - 1)), Step::KeepOut, "{seconds}");
            assert_eq!(seen.step(&us(), after(stale)), Step::Take, "{seconds}");
        }
    }

    #[test]
    fn a_renewal_says_what_the_wire_contract_wants() {
        let now: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let patch = json!({"metadata": {"annotations": says(Settled::Yes, Annotations::new())}, "spec": spec(&us(), Pace::default(), now, false)});
        let want = json!({
            "metadata": {"annotations": {
                "multicluster.freeport.dev/left": "false",
                "multicluster.freeport.dev/settled": "true",
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
