//! This cluster's own API server: keeps Lease `freeport-member` in the daemon's Namespace. It shows that the daemon lives, whether
//! the leader answers or not; that this process is the newest of its cluster; and by its age that the API server was restored from
//! a backup. Then everything is read again: watches go on as if nothing had happened, but hear nothing until the API server has
//! come to the version they are at.
//!
//! What a restored API server does not have was not deleted by anybody. So of the time between the backup and its restore it is
//! noted, on the same Lease, that what was made in it is missing. Where the cluster was restored while no daemon ran, our records show
//! it: one that was exported since the Lease was last renewed was written by a process of which this cluster knows nothing.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use api::{
    label,
    lease::{LeaseView, Pace, Settled},
};
use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kit::{boot::Env, failure::classify, index::Shared, watch::Guard};
use kube::{Api, Resource, ResourceExt};
use presence::{
    kin::Kinship,
    lease::{Annotations, Keeper, Presence},
    restore::RestoreDetector,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// How long to wait for one answer about the Lease.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon the API server is asked again that did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The time between a backup and its restore: what was made in it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    from: Timestamp,
    until: Timestamp,
}

impl Lost {
    pub(crate) fn between(from: Timestamp, until: Timestamp) -> Self {
        Self { from, until }
    }

    /// When the backup was restored.
    pub(crate) fn until(self) -> Timestamp {
        self.until
    }

    /// Whether an object of this age is missing for that alone.
    pub(crate) fn has(self, created: Timestamp) -> bool {
        self.may_have(created, Duration::ZERO)
    }

    /// [`has`](Self::has), where the clock that says its age may be ahead of ours by so much.
    pub(crate) fn may_have(self, created: Timestamp, ahead: Duration) -> bool {
        let until = self.until.checked_add(ahead).unwrap_or(Timestamp::MAX);
        // API servers note ages in whole seconds.
        self.from.as_second() <= created.as_second() && created <= until
    }

    fn parse(text: &str) -> Option<Self> {
        let (from, until) = text.split_once('/')?;
        Some(Self { from: from.parse().ok()?, until: until.parse().ok()? })
    }

    fn text(self) -> String {
        format!("{}/{}", self.from, self.until)
    }
}

/// This cluster's API server, until it turns out to be restored. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Home {
    detector: RestoreDetector,
    kinship: Kinship,
    lost: Option<Lost>,
    /// From the last renewal of the Lease to the start of this process: nobody wrote anything meanwhile.
    unattended: Option<Lost>,
    /// Something was written meanwhile, by a later process: the cluster was restored before this one began.
    was_restored: Arc<AtomicBool>,
    presence: Arc<watch::Sender<Presence>>,
    restored: CancellationToken,
    /// Our Lease in the Common Area, and where that is: it must not be forgotten there how new it was.
    hub: Shared<Option<(String, RestoreDetector)>>,
}

impl Home {
    /// Reads the Lease as it is. `before`: what was known of this cluster until it was restored.
    pub(crate) async fn begin(env: &Env, before: Option<&Self>) -> Self {
        let leases = Api::<LeaseView>::namespaced(env.client.clone(), &env.namespace);
        let found = read(env, &leases).await;
        let detector = RestoreDetector::new(leases, label::MEMBER.to_owned());
        let predecessors: BTreeSet<_> =
            found.iter().filter_map(LeaseView::holder).map(str::to_owned).collect();
        let noted = found.as_ref().and_then(|lease| Lost::parse(lease.annotations().get(label::RESTORED)?));
        let backed_up = found.as_ref().and_then(LeaseView::renew_time);
        let now = Timestamp::now();
        let now_lost = before.and(backed_up).map(|from| Lost { from, until: now });
        let known_lost = noted.or_else(|| before.and_then(Self::lost));
        Self {
            kinship: match before {
                Some(before) => before.kinship.of_home(detector.clone()),
                None => Kinship::abroad(detector.clone(), predecessors),
            },
            detector,
            lost: both(now_lost, known_lost),
            unattended: backed_up
                .filter(|_| before.is_none())
                .and_then(|last| unattended(last, env.pace, now)),
            was_restored: Arc::default(),
            presence: Arc::new(watch::Sender::new(Presence::Unknown)),
            restored: CancellationToken::new(),
            hub: before.map(|before| before.hub.clone()).unwrap_or_default(),
        }
    }

    /// Of an API server that was never asked.
    #[cfg(test)]
    pub(crate) fn of(env: &Env) -> Self {
        let leases = Api::<LeaseView>::namespaced(env.client.clone(), &env.namespace);
        let detector = RestoreDetector::new(leases, label::MEMBER.to_owned());
        Self {
            kinship: Kinship::abroad(detector.clone(), BTreeSet::new()),
            detector,
            lost: None,
            unattended: None,
            was_restored: Arc::default(),
            presence: Arc::new(watch::Sender::new(Presence::Unknown)),
            restored: CancellationToken::new(),
            hub: Shared::default(),
        }
    }

    /// Keeps the Lease until the API server was restored.
    pub(crate) async fn keep(&self, env: &Env) {
        let keeper = Keeper {
            detector: self.detector.clone(),
            us: env.holder.clone(),
            kinship: Kinship::at_home(),
            pace: env.pace,
        };
        let also = |_| -> Annotations {
            self.lost().into_iter().map(|lost| (label::RESTORED.to_owned(), lost.text())).collect()
        };
        let no_news = Notify::new();
        tokio::select! {
            () = keeper.keep_saying(also, &no_news, || Settled::Yes, (*self.presence).clone()) => {}
            () = self.restored.cancelled() => {}
        }
    }

    /// Returns once the Lease is ours, or it has shown that it cannot be.
    pub(crate) async fn known(&self) {
        let mut presence = self.presence.subscribe();
        let known = presence.wait_for(|now| *now != Presence::Unknown);
        drop(tokio::time::timeout(PATIENCE, known).await);
    }

    /// Waits until another process of this cluster has taken over.
    pub(crate) async fn replaced(&self) {
        let mut presence = self.presence.subscribe();
        if presence.wait_for(|now| *now == Presence::Replaced).await.is_err() {
            std::future::pending().await
        }
    }

    /// What this process knows of others with the uid of this cluster.
    pub(crate) fn kinship(&self) -> Kinship {
        self.kinship.clone()
    }

    /// What is missing because this cluster was restored from a backup.
    pub(crate) fn lost(&self) -> Option<Lost> {
        both(self.unattended.filter(|_| self.was_restored.load(Ordering::Relaxed)), self.lost)
    }

    /// Whether an object of this age, about which a daemon of this cluster has written something, is missing for that alone. If it was
    /// written about before this process began, that is noted: it shows that the cluster was restored.
    pub(crate) fn has_lost(&self, created: Timestamp) -> bool {
        if self.unattended.is_some_and(|unattended| unattended.has(created)) {
            self.was_restored.store(true, Ordering::Relaxed);
        }
        self.lost().is_some_and(|lost| lost.has(created))
    }

    /// Notices that the API server at `server` was restored, by our Lease there: also if it was while this cluster was read again,
    /// which may be the same.
    pub(crate) fn hub(&self, server: &str, leases: Api<LeaseView>, lease: String) -> RestoreDetector {
        let place = format!("{server}{}/{lease}", leases.resource_url());
        self.hub.with(|hub| match hub {
            Some((known, detector)) if *known == place => detector.by(leases),
            _ => {
                let detector = RestoreDetector::new(leases, lease);
                *hub = Some((place, detector.clone()));
                detector
            }
        })
    }

    /// That the Common Area was restored is known: from now on its Lease is as new as it is.
    pub(crate) fn forget_hub(&self) {
        self.hub.with(|hub| *hub = None);
    }

    /// Notices that the API server was restored.
    pub(crate) fn guard(&self) -> Arc<dyn Guard> {
        Arc::new(self.clone())
    }

    /// Says that this cluster was restored.
    pub(crate) fn tell_restored(&self, env: &Env) {
        let message = "the API server of this cluster was restored from a backup, or Lease freeport-member was deleted: reading \
                       everything again. Exports and imports of before stay";
        tracing::warn!("{message}");
        env.metrics.restored("");
        let mut lease = k8s_openapi::api::coordination::v1::Lease::default();
        lease.metadata.name = Some(label::MEMBER.to_owned());
        lease.metadata.namespace = Some(env.namespace.clone());
        env.events.warn(lease.object_ref(&()), "Restore", "ClusterRestored", message);
    }
}

/// Reads the Lease. Tries until there is an answer: without it, it is not known what a restore has lost, and nothing else of this
/// cluster can be read either.
async fn read(env: &Env, leases: &Api<LeaseView>) -> Option<LeaseView> {
    while !env.stop.is_cancelled() {
        match tokio::time::timeout(PATIENCE, leases.get_opt(label::MEMBER)).await {
            Ok(Ok(found)) => return found,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read Lease {} of this cluster", label::MEMBER);
                if classify(&error).is_refusal() {
                    return None;
                }
            }
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            () = env.stop.cancelled() => {}
        }
    }
    None
}

/// The time before `now` in which no daemon ran that renewed its Lease last at `last`. It may have run until it was to renew again.
fn unattended(last: Timestamp, pace: Pace, now: Timestamp) -> Option<Lost> {
    let from = last.checked_add(pace.renew()).ok()?;
    (from < now).then_some(Lost { from, until: now })
}

/// What is lost by either restore: nothing is noted of the time between them.
fn both(new: Option<Lost>, old: Option<Lost>) -> Option<Lost> {
    match (new, old) {
        (Some(a), Some(b)) => Some(Lost { from: a.from.min(b.from), until: a.until.max(b.until) }),
        (one, other) => one.or(other),
    }
}

impl Guard for Home {
    fn still_holds(&self) -> BoxFuture<'_, kube::Result<bool>> {
        async move {
            let holds = match self.detector.still_holds().await {
                // Who may not read the Lease has never known how new it was.
                Err(error) if classify(&error).is_refusal() => true,
                answer => answer?,
            };
            if !holds {
                self.restored.cancel();
            }
            Ok(holds)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::fixture::access;

    #[test]
    fn a7_what_was_made_between_backup_and_restore_is_lost() {
        let at = |minute: u8| format!("2026-11-01T12:{minute:02}:00Z").parse::<Timestamp>().unwrap();
        let lost = Lost { from: at(10), until: at(30) };
        assert_eq!([9, 10, 30, 31].map(|minute| lost.has(at(minute))), [false, true, true, false]);
        assert_eq!(Lost::parse(&lost.text()), Some(lost));
        assert_eq!(Lost::parse("yesterday"), None);
        let later = Lost { from: at(45), until: at(59) };
        assert_eq!(both(Some(later), Some(lost)), Some(Lost { from: at(10), until: at(59) }));
        assert_eq!((both(None, Some(lost)), both(Some(later), None)), (Some(lost), Some(later)));
    }

    #[tokio::test]
    async fn a7_a_record_of_the_time_before_a_start_shows_that_the_cluster_was_restored() {
        let at = |second: u8| format!("2026-11-01T12:00:{second:02}Z").parse::<Timestamp>().unwrap();
        let unattended = |last| unattended(at(last), Pace::lasting(30), at(50));
        assert_eq!(unattended(41), None, "it ran until now");
        let mut home = Home::of(&access().env);
        home.unattended = unattended(20);
        assert_eq!((home.has_lost(at(29)), home.lost()), (false, None), "it may have run then");
        assert!(home.has_lost(at(30)) && !home.has_lost(at(51)));
        assert_eq!(home.lost(), unattended(20), "from now on it is noted");
    }
}
