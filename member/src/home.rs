//! This cluster's own API server: keeps Lease `freeport-member` in the daemon's Namespace. It shows that the daemon lives, whether
//! the leader answers or not; that this process is the newest of its cluster; and by its age that the API server was restored from
//! a backup. Then everything is read again: what is known may not be there any more.
//!
//! What a restored API server does not have was not deleted by anybody. So of the time between the backup and its restore it is
//! noted, on the same Lease, that what was made in it is missing. Where the cluster was restored while no daemon ran, our records show
//! it: one that was exported since the Lease was last renewed was written by a process of which this cluster knows nothing.
//!
//! Which clusters' endpoints have answered from here is noted there as well, at the renewals: a process that takes over, or starts again, must
//! not take for a way that never was one that went meanwhile.

mod missing;
mod reached;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use api::{
    label,
    lease::{LeaseView, Settled},
};
use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kit::{boot::Env, failure::classify, index::Shared, watch::Guard};
use kube::{Api, Resource};
use presence::{
    kin::Kinship,
    lease::{Annotations, Keeper, Presence},
    restore::RestoreDetector,
};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::missing::Lost;
use self::missing::{Missing, both};

/// How long to wait for one answer about the Lease.
const PATIENCE: Duration = Duration::from_secs(5);
/// So long it counts that somebody took a connection: each endpoint is asked several times in that.
const FRESH: Duration = Duration::from_secs(60);
/// How soon the API server is asked again that did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// This cluster's API server, until it turns out to be restored. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Home {
    detector: RestoreDetector,
    kinship: Kinship,
    missing: Shared<Missing>,
    /// Clusters whose endpoints have answered from here.
    reached: Shared<BTreeSet<String>>,
    /// There are more of them: the Lease is to say so at once, since a process that starts later judges only clusters that answered once.
    more_reached: Arc<Notify>,
    /// When endpoints of clusters took a connection from here last.
    connected: Shared<BTreeMap<String, Instant>>,
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
        let missing = Missing::of(found.as_ref(), before, env.pace, Timestamp::now());
        Self {
            kinship: match before {
                Some(before) => before.kinship.of_home(detector.clone()),
                None => Kinship::abroad(detector.clone(), predecessors),
            },
            detector,
            missing: Shared::new(missing),
            reached: match before {
                Some(before) => before.reached.clone(),
                None => Shared::new(reached::noted(found.as_ref())),
            },
            more_reached: Arc::default(),
            connected: Shared::default(),
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
            missing: Shared::default(),
            reached: Shared::default(),
            more_reached: Arc::default(),
            connected: Shared::default(),
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
            hold: env.hold.clone(),
            kinship: Kinship::at_home(),
            pace: env.pace,
        };
        let also = |_| -> Annotations {
            let lost = self.lost().map(|lost| (label::RESTORED.to_owned(), lost.text()));
            let reached = reached::text(self.reached());
            // The ClusterSet reports it, unless the status of the ClusterSet is what is refused.
            let refused = env.metrics.refusals().message(&env.metrics.area()).unwrap_or_default();
            let known = [(label::REACHED, reached), (label::REFUSED, refused)];
            let known = known.into_iter().map(|(key, text)| (key.to_owned(), text));
            lost.into_iter().chain(known).collect()
        };
        let keep = async {
            if !env.hold.is_active() {
                if !keeper.stand_by().await {
                    return;
                }
                self.succeed(env).await;
            }
            keeper.keep_saying(also, &self.more_reached, || Settled::Yes, (*self.presence).clone()).await;
        };
        tokio::select! {
            () = keep => {}
            () = self.restored.cancelled() => {}
        }
    }

    /// Takes the place of the replica that kept the Lease until now.
    async fn succeed(&self, env: &Env) {
        let found = read(env, self.detector.leases()).await;
        if let Some(predecessor) = found.as_ref().and_then(LeaseView::holder) {
            self.kinship.follows(predecessor);
        }
        let missing = Missing::of(found.as_ref(), None, env.pace, Timestamp::now());
        self.missing.with(|known| *known = Missing { lost: both(missing.lost, known.lost), ..missing });
        self.note_reached(reached::noted(found.as_ref()));
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

    /// Clusters whose endpoints have answered from here, this process or one before it.
    pub(crate) fn reached(&self) -> BTreeSet<String> {
        self.reached.with(|reached| reached.clone())
    }

    /// Has these noted on the Lease, beside those that are noted: whoever answered once has answered, whatever this process has found out so far.
    pub(crate) fn note_reached(&self, clusters: BTreeSet<String>) {
        let is_more = self.reached.with(|reached| {
            let before = reached.len();
            reached.extend(clusters);
            reached.len() > before
        });
        if is_more {
            self.more_reached.notify_one();
        }
    }

    /// Clusters whose endpoints take connections from here.
    pub(crate) fn connected(&self, now: Instant) -> BTreeSet<String> {
        let is_fresh = |at: &Instant| now.saturating_duration_since(*at) < FRESH;
        let all = self.connected.with(|connected| connected.clone()).into_iter();
        all.filter(|(_, at)| is_fresh(at)).map(|(cluster, _)| cluster).collect()
    }

    /// Has our Lease in the Common Area say so of those that are silent.
    pub(crate) fn note_connected(&self, clusters: BTreeMap<String, Instant>) {
        self.connected.with(|connected| *connected = clusters);
    }

    /// What is missing because this cluster was restored from a backup.
    pub(crate) fn lost(&self) -> Option<Lost> {
        let Missing { lost, unattended } = self.missing.with(|missing| *missing);
        both(unattended.filter(|_| self.was_restored.load(Ordering::Relaxed)), lost)
    }

    /// Whether an object of this age, about which a daemon of this cluster has written something, is missing for that alone. If it was
    /// written about before this process began, that is noted: it shows that the cluster was restored.
    pub(crate) fn has_lost(&self, created: Timestamp) -> bool {
        let Missing { unattended, .. } = self.missing.with(|missing| *missing);
        if unattended.is_some_and(|unattended| unattended.has(created)) {
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
    use api::lease::Pace;

    use super::{missing::unattended, *};
    use crate::feature::fixture::access;

    #[tokio::test(start_paused = true)]
    async fn who_answers_for_the_first_time_is_noted_at_once() {
        let home = Home::of(&access().env);
        let is_told = async || tokio::time::timeout(ASK_AGAIN, home.more_reached.notified()).await.is_ok();
        home.note_reached(["east".to_owned()].into());
        assert!(is_told().await);
        home.note_reached(["east".to_owned()].into());
        assert!(!is_told().await, "that was noted");
    }

    #[tokio::test]
    async fn a7_a_record_of_the_time_before_a_start_shows_that_the_cluster_was_restored() {
        let at = |second: u8| format!("2026-11-01T12:00:{second:02}Z").parse::<Timestamp>().unwrap();
        let unattended = |last| unattended(at(last), Pace::lasting(30), at(50));
        assert_eq!(unattended(41), None, "it ran until now");
        let home = Home::of(&access().env);
        home.missing.with(|missing| missing.unattended = unattended(20));
        assert_eq!((home.has_lost(at(29)), home.lost()), (false, None), "it may have run then");
        assert!(home.has_lost(at(30)) && !home.has_lost(at(51)));
        assert_eq!(home.lost(), unattended(20), "from now on it is noted");
    }
}
