//! What runs in a Common Area from the beginning to an end: our Lease, everybody's Leases, the features, and what the ClusterSet
//! says about all of it.

use std::{sync::Arc, time::Instant};

use api::{
    antrea::Members,
    label,
    lease::{
        self, LeaseView, Settled,
        digest::{self, Digest},
    },
    name,
};
use jiff::Timestamp;
use kit::{
    boot::Env,
    drive::before,
    index::Shared,
    objects::{Change, Objects},
    watch::Watches,
};
use kube::{Api, ResourceExt};
use presence::{
    heartbeat::{Announce, Heartbeats},
    kin::Kinship,
    lease::{Keeper, Presence},
    leases::{Leases, News},
    restore::RestoreDetector,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Of, urgent::Urgent};
use crate::{
    account::Account,
    antrea::{leaving::Leaving, marked},
    bounds::Noted,
    cluster_set::ClusterSets,
    feature::{Access, Features},
    schemas,
    silences::Silences,
};

pub(crate) struct Session {
    access: Access,
    detector: RestoreDetector,
    kinship: Kinship,
    /// Of what the area itself needs; each feature has its own.
    watches: Watches,
    /// The members that are marked as running Antrea's controllers. We began with those of `access`.
    marked: watch::Sender<Members>,
    schemas: watch::Receiver<schemas::Said>,
    /// The Leases of members, of which ours tells.
    digest: Shared<Digest>,
    /// That ours has something to tell at once.
    news: Arc<Notify>,
    features: Arc<Features>,
    cluster_sets: ClusterSets,
    leaving: Leaving,
}

impl Session {
    /// Nothing runs before [`watch`](Self::watch).
    pub(crate) fn new(env: &Env, common_area: &str, of: &Of, antrea: Members, kinship: Kinship) -> Self {
        let own_lease = Api::<LeaseView>::namespaced(env.client.clone(), common_area);
        let detector = RestoreDetector::new(own_lease, name::LEADER_LEASE.into());
        let access = Access {
            env: env.clone(),
            common_area: common_area.to_owned(),
            quota: of.quota,
            leases: Shared::new(Leases::new(env.pace, Heartbeats::new(antrea.clone()), false)),
            silences: Shared::new(Silences::new(of.evict_after, env.pace.renew())),
            guard: Arc::new(detector.clone()),
            noted: Noted::default(),
            antrea,
        };
        let features = Arc::new(Features::new(of.table, &access));
        Self {
            watches: Watches::guarded(access.guard.clone()),
            marked: watch::Sender::new(access.antrea.clone()),
            schemas: of.schemas.clone(),
            digest: Shared::new(Digest::default()),
            news: Arc::default(),
            cluster_sets: ClusterSets::new(access.clone(), features.clone()),
            leaving: Leaving::new(access.clone()),
            access,
            detector,
            kinship,
            features,
        }
    }

    /// Begins all watches.
    pub(crate) fn watch(&self, tasks: &mut JoinSet<()>) {
        self.watch_accounts(tasks);
        self.watch_leases(tasks);
        self.features.watch(tasks);
        self.cluster_sets.watch(tasks);
    }

    fn watch_accounts(&self, tasks: &mut JoinSet<()>) {
        let (mut accounts, marks) = (Objects::<Account>::default(), self.marked.clone());
        let (noted, features, news) = (self.access.noted.clone(), self.features.clone(), self.news.clone());
        let mut is_first = true;
        self.access.watch(&self.watches, "ServiceAccount", tasks, move |change| {
            accounts.change(change);
            let now = marked(&accounts);
            marks.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
            // Before the first list of accounts no record has been judged.
            if noted.take_in(&accounts) && !is_first {
                tracing::info!("members may have other addresses than before: reading the records again");
                features.records_again();
                news.notify_one();
            }
            is_first = false;
        });
    }

    /// Watches Leases, and the announces that stand for the Leases of Antrea's members.
    fn watch_leases(&self, tasks: &mut JoinSet<()>) {
        let hear = {
            let (features, cluster_sets) = (self.features.clone(), self.cluster_sets.clone());
            let watches = self.watches.clone();
            move |news: &News| {
                cluster_sets.enqueue_all();
                features.hear(news);
                // At the word of our own Lease, as the members.
                if news.schemas {
                    tracing::info!("the CRDs of the records changed: reading the records again");
                    watches.list_again();
                    features.records_again();
                    cluster_sets.write_again();
                }
            }
        };
        let (leases, leaving, announced) = (self.access.leases.clone(), self.leaving.clone(), hear.clone());
        self.access.watch(&self.watches, "MemberClusterAnnounce", tasks, move |change: Change<Announce>| {
            leaving.change(change.clone());
            announced(&leases.with(|leases| leases.announced(change, Instant::now(), Timestamp::now())));
        });
        let leases = self.access.leases.clone();
        let (digest, news, mut urgent) = (self.digest.clone(), self.news.clone(), Urgent::default());
        let silences = self.access.silences.clone();
        self.access.watch(&self.watches, "Lease", tasks, move |change: Change<LeaseView>| {
            if let Some(ours) = ours(&change) {
                silences.with(|silences| silences.hear(ours.and_then(LeaseView::silent)));
            }
            let mut are_urgent = |lease: &LeaseView| urgent.are(&lease.name_any(), Instant::now());
            let has_news = digest.with(|digest| match &change {
                Change::Apply(lease) => digest.apply(lease) && are_urgent(lease),
                Change::Remove(lease) => digest.remove(lease) && are_urgent(lease),
                Change::Reset(leases) => digest.reset(leases),
            });
            if has_news {
                news.notify_one();
            }
            hear(&leases.with(|leases| leases.change(change, Instant::now(), Timestamp::now())));
        });
    }

    /// Begins to keep our Lease. How it stands with it.
    pub(crate) fn keep_lease(&self, tasks: &mut JoinSet<()>) -> watch::Receiver<Presence> {
        let Access { env, .. } = &self.access;
        let keeper = Keeper {
            detector: self.detector.clone(),
            us: env.holder.clone(),
            hold: env.hold.clone(),
            kinship: self.kinship.clone(),
            pace: env.pace,
        };
        let (watches, marked) = (self.watches.clone(), self.marked.subscribe());
        let (schemas, quota) = (self.schemas.clone(), self.access.quota.to_string());
        let (digest, silences) = (self.digest.clone(), self.access.silences.clone());
        let (noted, stale, metrics) = (self.access.noted.clone(), env.pace.stale(), env.metrics.clone());
        // What is not known is left out, and stays as it was said.
        let annotations = move |at| {
            let is_listed = watches.are_listed();
            let leases = if is_listed {
                digest.with(|digest| digest.annotation(at, stale))
            } else {
                digest::not_yet(at)
            };
            let known = [
                (label::MEMBERS, Some(leases)),
                (label::ANTREA_MEMBERS, is_listed.then(|| marked.borrow().annotation())),
                (label::SCHEMAS, schemas.borrow().clone()),
                (label::QUOTA, Some(quota.clone())),
                (label::MEMBER_RANGES, noted.annotation()),
                (
                    label::LACKING,
                    is_listed.then(|| lease::lacking(&digest.with(|digest| digest.lacking()), at)),
                ),
                (label::SILENT, silences.with(|silences| silences.annotation())),
                (label::REFUSED, Some(metrics.refusals().message(&metrics.area()).unwrap_or_default())),
            ];
            known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
        };
        let (watches, features) = (self.watches.clone(), self.features.clone());
        let settled = move || match watches.are_open(Instant::now()) {
            true => features.settled(Instant::now()),
            false => Settled::No,
        };
        let (presence, present) = watch::channel(Presence::Unknown);
        let news = self.news.clone();
        let keep = async move { keeper.keep_saying(annotations, &news, settled, presence).await };
        tasks.spawn(keep.in_current_span());
        present
    }

    /// The members that are marked as running Antrea's controllers, whenever they are others than we began with.
    pub(crate) fn marked(&self) -> watch::Receiver<Members> {
        self.marked.subscribe()
    }

    /// Runs all controllers until `stop`. A replica that stands by only watches.
    pub(crate) async fn run(&self, stop: &CancellationToken) {
        let listed = async {
            self.access.env.hold.active().await;
            self.watches.listed().await;
            self.access.silences.with(|silences| silences.begin(Timestamp::now()));
            if *self.marked.borrow() != self.access.antrea {
                // The session is about to end.
                std::future::pending::<()>().await;
            }
        };
        if before(stop, listed).await {
            tokio::join!(self.features.run(stop), self.leaving.run(stop), self.cluster_sets.run(stop));
        }
    }

    /// Waits until a watch has found that the Common Area was restored from a backup.
    pub(crate) async fn restored(&self) {
        tokio::select! {
            () = self.watches.restored() => {}
            () = self.features.restored() => {}
        }
    }

    /// Takes in how it stands with our Lease: without it the members take us for absent.
    pub(crate) fn present(&self, presence: &Presence) {
        let is_held = presence.is_held();
        self.access.env.metrics.present(&self.access.common_area).set(i64::from(is_held));
        match presence {
            Presence::Unknown => {}
            Presence::Held { .. } => {
                tracing::info!("holding the Lease");
                self.features.retry_failed();
            }
            Presence::Replaced => tracing::info!("a newer process holds the Lease"),
            Presence::Taken { holder, .. } => tracing::warn!(holder, "another cluster holds the Lease"),
            Presence::Restored => tracing::warn!("the Lease is older than the one last seen, or gone"),
            Presence::Failing { failure } => tracing::warn!(
                %failure,
                "cannot renew our Lease: exports and changes do not get through in this Common Area"
            ),
        }
    }

    /// Measures that nobody is there any more.
    pub(crate) fn absent(&self) {
        let Access { env, common_area, .. } = &self.access;
        env.metrics.present(common_area).set(0);
        for state in ["connected", "disconnected"] {
            env.metrics.members(common_area, state).set(0);
        }
    }
}

/// What a change says of our Lease, if it does: none where there is no such Lease.
fn ours(change: &Change<LeaseView>) -> Option<Option<&LeaseView>> {
    let is_ours = |lease: &&LeaseView| lease.name_any() == name::LEADER_LEASE;
    match change {
        Change::Reset(leases) => Some(leases.iter().find(is_ours)),
        Change::Apply(lease) => is_ours(&lease).then_some(Some(lease)),
        Change::Remove(_) => None,
    }
}
