//! Lease `kube-bind/kube-bind`, for which Go's konnector competes: the two must never work at once.
//!
//! One that is not told its Namespace holds `kube-system/kube-bind` instead: who renews that one is waited for as well.
//!
//! Watches nothing; reads and writes the Lease every two seconds, more often where it counts for less ([`Times`]). Who holds it is gone when it
//! was not renewed for as long as it says, by our own clock. A holder that cannot renew it stops before others may take it, whatever its requests do meanwhile; one that ends lets others
//! have it when its last write is done.

use std::time::Duration;

use api::{
    label::MEMBER,
    lease::{LeaseView, Pace},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kit::{
    boot::Env,
    election::{Seen, Turn, Whose},
    write::{Error, Writer},
};
use kube::{Api, ResourceExt, core::ObjectMeta};
use serde_json::json;
use tokio::time::Instant;

use super::{LAST_WRITES, local::NAMESPACE};

const NAME: &str = "kube-bind";
/// Where Go's konnector has it without `POD_NAMESPACE`.
const ELSEWHERE: &str = "kube-system";
/// How long it counts, as Go's konnector has it.
const LASTS: Duration = Duration::from_secs(15);

/// How the Lease is kept.
#[derive(Clone, Copy)]
struct Times {
    /// How long it counts without a renewal.
    lasts: Duration,
    /// How often it is renewed.
    every: Duration,
    /// A holder that did not renew it for so long stops. Its last writes end before another one may have the Lease.
    give_up: Duration,
}

impl Times {
    /// As Go's konnector has them, or shorter where the other Leases of this daemon count for less.
    fn of(pace: Pace) -> Self {
        let lasts = pace.stale().min(LASTS);
        let every = lasts * 2 / 15;
        Self { lasts, every, give_up: lasts.saturating_sub(LAST_WRITES + every * 3 / 2) }
    }
}

/// What was last seen of both Leases.
#[derive(Default)]
struct Both {
    ours: Seen,
    elsewhere: Seen,
}

impl Both {
    /// What to do about ours.
    fn turn(&mut self, leases: [Option<&LeaseView>; 2], us: &str, now: Instant) -> Turn {
        let [ours, elsewhere] = leases;
        let whose = |holder: &str| if holder == us { Whose::Ours } else { Whose::Anothers };
        match (self.ours.turn(ours, whose, now), self.elsewhere.turn(elsewhere, whose, now)) {
            (_, Turn::Wait) => Turn::Wait,
            (turn, _) => turn,
        }
    }
}

/// The Lease, as this process competes for it.
pub(super) struct Claim {
    leases: Api<LeaseView>,
    elsewhere: Api<LeaseView>,
    writer: Writer,
    us: String,
    times: Times,
    seen: Both,
    /// While it is ours: when we stop unless it is renewed.
    until: Instant,
    /// When the konnector before us renewed it last.
    signed: Option<Timestamp>,
}

impl Claim {
    pub(super) fn new(env: &Env) -> Self {
        Self {
            leases: Api::namespaced(env.client.clone(), NAMESPACE),
            elsewhere: Api::namespaced(env.client.clone(), ELSEWHERE),
            writer: Writer::new(env.client.clone(), MEMBER, "local", env.metrics.clone()),
            us: env.holder.to_string(),
            times: Times::of(env.pace),
            seen: Both::default(),
            until: Instant::now(),
            signed: None,
        }
    }

    /// The last sign of a konnector in this cluster when the Lease became ours; nothing where nothing is known of one.
    pub(super) fn signed(&self) -> Option<Timestamp> {
        self.signed
    }

    /// Returns when the Lease is ours.
    pub(super) async fn acquire(&mut self) {
        let mut is_said = false;
        loop {
            // Counts from the question on: nobody knows when the API server carried it out.
            self.until = Instant::now() + self.times.give_up;
            let renewed = tokio::time::timeout_at(self.until, self.renew()).await;
            match renewed.unwrap_or(Err(Error::Stale)) {
                Ok(true) => return,
                Ok(false) if !is_said => {
                    is_said = true;
                    tracing::info!(
                        "another konnector holds Lease {NAMESPACE}/{NAME}, or {ELSEWHERE}/{NAME}: waiting for it"
                    );
                }
                Ok(false) | Err(Error::Stale) => {}
                Err(error) => tracing::warn!(%error, "Lease {NAMESPACE}/{NAME} cannot be had, trying again"),
            }
            tokio::time::sleep(self.times.every).await;
        }
    }

    /// Renews it; returns when it is not ours any more, or may soon be somebody else's.
    pub(super) async fn keep(&mut self) {
        loop {
            tokio::time::sleep(self.times.every).await;
            let until = Instant::now() + self.times.give_up;
            match tokio::time::timeout_at(self.until, self.renew()).await {
                Ok(Ok(true)) => (self.until, self.signed) = (until, Some(Timestamp::now())),
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => tracing::warn!(%error, "Lease {NAMESPACE}/{NAME} was not renewed"),
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
            // The time says until when there were writes.
            let spec = json!({"holderIdentity": "", "renewTime": MicroTime(Timestamp::now())});
            let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": spec});
            self.writer.merge(&lease, None, patch).await.map(drop)
        };
        if let Ok(Err::<(), Error>(error)) = tokio::time::timeout(self.times.give_up, released).await {
            tracing::debug!(%error, "Lease {NAMESPACE}/{NAME} was not released: it counts for {:?} more", self.times.lasts);
        }
    }

    /// Whether it is ours now.
    async fn renew(&mut self) -> Result<bool, Error> {
        let lease = self.leases.get_opt(NAME).await?;
        let elsewhere = match self.elsewhere.get_opt(NAME).await {
            // Rights of an older Freeport lack it, and a konnector there is the exception.
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            answer => answer?,
        };
        let before = elsewhere.as_ref().and_then(LeaseView::renew_time);
        let now = Timestamp::now();
        let leases = [lease.as_ref(), elsewhere.as_ref()];
        match (self.seen.turn(leases, &self.us, Instant::now()), &lease) {
            (Turn::Wait, _) => Ok(false),
            (Turn::Take, Some(lease)) => {
                let is_new = lease.holder() != Some(self.us.as_str());
                let mut spec = json!({"holderIdentity": self.us, "leaseDurationSeconds": self.times.lasts.as_secs(), "renewTime": MicroTime(now)});
                if is_new {
                    // Before it is written: the answer may get lost.
                    self.signed = lease.renew_time().max(before);
                    spec["acquireTime"] = json!(MicroTime(now));
                }
                let patch = json!({"metadata": {"resourceVersion": lease.resource_version()}, "spec": spec});
                self.writer.merge(lease, None, patch).await?;
                Ok(true)
            }
            _ => {
                self.signed = before;
                let metadata = ObjectMeta {
                    name: Some(NAME.to_owned()),
                    namespace: Some(NAMESPACE.to_owned()),
                    ..ObjectMeta::default()
                };
                let spec = LeaseSpec {
                    holder_identity: Some(self.us.clone()),
                    lease_duration_seconds: i32::try_from(self.times.lasts.as_secs()).ok(),
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
    fn a_konnector_without_its_namespace_is_waited_for_as_well() {
        let (mut seen, begun) = (Both::default(), Instant::now());
        let mut turn = |ours: Option<LeaseView>, elsewhere: Option<LeaseView>, after: u64| {
            let leases = [ours.as_ref(), elsewhere.as_ref()];
            seen.turn(leases, "us", begun + Duration::from_secs(after))
        };
        assert_eq!(turn(None, None, 0), Turn::Create);
        assert_eq!(turn(None, Some(lease("go", 1)), 0), Turn::Wait);
        assert_eq!(
            turn(Some(lease("us", 1)), Some(lease("go", 2)), 10),
            Turn::Wait,
            "it comes while we hold ours"
        );
        assert_eq!(turn(Some(lease("us", 1)), Some(lease("go", 2)), 26), Turn::Take, "it has ended");
        assert_eq!(turn(Some(lease("other", 1)), Some(lease("", 3)), 27), Turn::Wait);
    }

    /// An API server that carries out so many writes, answers them after `late`, and never answers the next one.
    fn answers(mut writes: u32, late: Duration) -> Claim {
        let answer = move |request: http::Request<kube::client::Body>| {
            writes = writes.saturating_sub(u32::from(request.method() != http::Method::GET));
            let (is_silent, is_write) = (writes == 0, request.method() != http::Method::GET);
            async move {
                if is_silent {
                    std::future::pending::<()>().await;
                }
                if is_write {
                    tokio::time::sleep(late).await;
                }
                let lease = json!({"metadata": {"name": NAME, "uid": "u", "resourceVersion": "1"},
                    "spec": {"holderIdentity": "us", "leaseDurationSeconds": 15}});
                let body = kube::client::Body::from(lease.to_string().into_bytes());
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            }
        };
        let client = kube::Client::new(tower::service_fn(answer), "x");
        let writer = Writer::new(client.clone(), MEMBER, "local", kit::metrics::Metrics::new().unwrap());
        let elsewhere = Api::namespaced(client.clone(), ELSEWHERE);
        let leases = Api::namespaced(client, NAMESPACE);
        let times = Times::of(Pace::default());
        let (seen, until) = (Both::default(), Instant::now());
        Claim { leases, elsewhere, writer, us: "us".into(), times, seen, until, signed: None }
    }

    #[tokio::test(start_paused = true)]
    async fn c13_who_gets_no_answer_gives_up() {
        let mut claim = answers(4, Duration::ZERO);
        claim.acquire().await;
        let kept = tokio::time::timeout(Duration::from_secs(60), claim.keep()).await;
        assert!(kept.is_ok(), "it waits for an answer while others may take the Lease");
        assert!(claim.signed().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_lease_counts_from_the_question_on_also_for_its_first_holder() {
        let mut claim = answers(2, Duration::from_secs(5));
        let asked = Instant::now();
        claim.acquire().await;
        claim.keep().await;
        assert_eq!(asked.elapsed(), claim.times.give_up);
    }

    #[test]
    fn a_holder_has_written_its_last_before_another_one_may_have_the_lease() {
        for seconds in [6, 10, 15, 30, 3600] {
            let Times { lasts, every, give_up } = Times::of(Pace::lasting(seconds));
            assert!(give_up + LAST_WRITES + every <= lasts, "{seconds}: {give_up:?}");
            assert!(give_up >= 2 * every, "{seconds}: one renewal may fail");
        }
        let Times { lasts, every, give_up } = Times::of(Pace::default());
        assert_eq!([lasts, every, give_up].map(|time| time.as_secs()), [15, 2, 10]);
    }
}
