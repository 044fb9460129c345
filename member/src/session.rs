//! A session with a leader: our presence in the Common Area, the watches that all features need, and the features, which the session
//! knows by a [`table`] only. Writes Lease `freeport-member-<id>` and our announce; tells the membership its state. Safe to run
//! twice: processes of one cluster take the Lease over from each other, and write the same.
//!
//! | module | holds |
//! |---|---|
//! | [`table`] | the features: what is asked of one is asked of all |
//! | [`connect`] | whose leader it is, and what the features work with |
//! | [`presence`](mod@presence) | our Lease and announce |
//! | [`credential`] | replaces our token, and the authorities of the leader |
//! | [`peers`] | watches of Leases and announces |
//! | [`schemas`] | CRDs of this cluster that lack fields |
//! | [`health`] | what the session sees |

mod connect;
mod credential;
mod health;
mod peers;
mod presence;
mod schemas;
mod table;

use std::{pin::pin, sync::Arc, time::Instant};

use ::presence::lease::Presence;
use api::{antrea::Members, lease::LeaseView, membership::Wire, name};
use futures::{FutureExt, future::BoxFuture};
use kit::{boot::Env, crowd::Place, drive::before, index::Shared};
use kube::{Api, Client};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::{
    connect::{Hearing, Start},
    health::{PATIENCE, Seen},
    peers::Peers,
    table::Table,
};
pub(crate) use self::{
    credential::{Kept, Renewal},
    health::{Health, SessionState},
    table::Blind,
};
use crate::{
    feature::{Access, Features},
    home::Home,
    identity::Target,
};

/// A session with a leader, not started yet.
pub(crate) struct Session {
    pub(crate) env: Env,
    pub(crate) features: Features,
    pub(crate) home: Home,
    pub(crate) target: Target,
    /// The credential in the target, which changes.
    pub(crate) credential: Kept,
    /// Client for the leader's API server.
    pub(crate) leader: Client,
    /// Our place among the members, as an earlier session with this leader knew it.
    pub(crate) place: Shared<Option<Place>>,
    /// Where the session tells its state.
    pub(crate) state: watch::Sender<SessionState>,
    /// Whether the membership is noted. Before that nothing is exported or imported.
    pub(crate) noted: watch::Receiver<bool>,
    /// What the ClusterSet says of what is to go: see [`api::label::LET_GO`].
    pub(crate) lets_go: watch::Receiver<Option<String>>,
    pub(crate) stop: CancellationToken,
}

/// Why a session ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// It was stopped, or another cluster took our ID.
    Over,
    /// The Common Area was restored from a backup: everything known about it has to be read again.
    Restored,
    /// These members run Antrea's controllers, and no others: everything has to be read again.
    Named(Members),
    /// The leader's Lease tells of other members now, or does not any more: other Leases have to be watched.
    Heard(Hearing),
    /// The leader is Antrea's, which needs Antrea's protocol.
    Antrea,
}

impl Session {
    /// Exports and imports until `stop`, or until another cluster takes our ID.
    pub(crate) async fn run(self) {
        let mut start = Start::new(self.target.wire, self.place.clone());
        loop {
            let ended = self.once(&start).await;
            // A session ends in the other ways only after it was present at the leader.
            start.is_certain = true;
            match ended {
                Ended::Over => break,
                Ended::Restored => {
                    tracing::warn!(
                        "the Common Area was restored from a backup or emptied: keeping all imports until their writers confirm \
                         what is gone"
                    );
                    self.env.metrics.restored(&self.target.us.common_area);
                    self.home.forget_hub();
                    start.is_restored = true;
                }
                Ended::Named(members) => {
                    tracing::info!(
                        members = members.annotation(),
                        "the list of members that run Antrea's controllers changed: starting again with it"
                    );
                    start.antrea = members;
                }
                Ended::Heard(hearing) => {
                    tracing::info!(
                        ?hearing,
                        "the Leases of other members are to be heard in another way: starting again"
                    );
                    start.hearing = hearing;
                }
                Ended::Antrea => {
                    tracing::info!("the leader is Antrea's: using Antrea's protocol");
                    start = Start::new(Some(Wire::Antrea), self.place.clone());
                }
            }
        }
        // Where this cluster was restored the session does not come to this.
        self.home.forget_hub();
    }

    async fn once(&self, start: &Start) -> Ended {
        let mut tasks = JoinSet::new();
        let ended = Parts::start(self, start, &mut tasks).follow(self, start, &mut tasks).await;
        // The next session starts when all watches of this one have ended.
        tasks.shutdown().await;
        ended
    }
}

/// The parts of a session that runs.
struct Parts {
    access: Access,
    table: Arc<Table>,
    peers: Peers,
    /// What the CRDs of this cluster lack.
    lacking: Shared<schemas::Lacking>,
    /// How it stands with our token.
    renewal: Shared<Option<Renewal>>,
    present: watch::Receiver<Presence>,
}

impl Parts {
    fn start(session: &Session, start: &Start, tasks: &mut JoinSet<()>) -> Self {
        let Session { env, features, home, target, leader, .. } = session;
        let leases = Api::<LeaseView>::namespaced(leader.clone(), &target.us.common_area);
        let detector = home.hub(&target.server, leases, name::member_lease(&target.us.cluster));
        let access = start.access(env, home, &target.us, leader, &detector);
        let table = Arc::new(Table::begin(features, &access));
        let peers = Peers::new(&access);
        let place = start.place.with(|place| *place);
        table.take_turns(place);
        peers.watches.take_turns(place.map(|place| place.in_round(0)));
        table.watch(tasks);
        peers.watch(&access, start.hearing, &table, tasks);
        let lacking = schemas::watch(&access, table::crds(features), &table, tasks);
        let present = presence::start(&access, target, detector, &table, &peers.watches, tasks);
        let renewal = credential::keep(&access, &session.credential, present.clone(), tasks);
        Self { access, table, peers, lacking, renewal, present }
    }

    /// Runs the features and tells the state until the session ends.
    async fn follow(&self, session: &Session, start: &Start, tasks: &mut JoinSet<()>) -> Ended {
        let mut controllers = pin!(async {
            // A replica that stands by only watches.
            if before(&session.stop, session.env.hold.active()).await {
                self.table.run(|| self.begin(start, session.noted.clone()), &session.stop).await;
            }
        });
        let mut antrea_leads = pin!(self.antrea_leads(session, start));
        let (mut named, mut present) = (self.peers.named.subscribe(), self.present.clone());
        let mut hearing = self.peers.hearing.subscribe();
        let mut lets_go = session.lets_go.clone();
        self.table.let_go(lets_go.borrow_and_update().as_deref());
        let (mut since, mut was_lost) = (None::<Instant>, false);
        let gauge = self.access.env.metrics.present(&self.access.us.common_area);
        let ended = loop {
            let now = present.borrow_and_update().clone();
            gauge.set(i64::from(now.is_held()));
            if now.is_held() && was_lost {
                // What failed while the leader was away need not wait for its next try.
                self.table.retry_failed();
            }
            was_lost = matches!(now, Presence::Failing { .. });
            if self.waits_for_the_leader(start) && self.access.leases.with(|leases| leases.leader_is_silent())
            {
                break Ended::Heard(Hearing::Directly);
            }
            match now {
                // Another cluster exports under our ID now, or another process of ours does what we did: the membership starts another session, which waits.
                Presence::Taken { .. } | Presence::Replaced if since.is_some() => break Ended::Over,
                Presence::Restored => break Ended::Restored,
                now => self.tell(&session.state, start, now, &mut since),
            }
            tokio::select! {
                () = &mut controllers => break Ended::Over,
                () = self.restored() => break Ended::Restored,
                () = &mut antrea_leads => break Ended::Antrea,
                Ok(members) = named.wait_for(|members| *members != self.access.antrea) => {
                    break Ended::Named(members.clone());
                }
                Ok(hearing) = hearing.wait_for(|now| now.is_some_and(|now| now != start.hearing)) => {
                    break Ended::Heard(hearing.unwrap_or_default());
                }
                Ok(()) = present.changed() => {}
                Ok(()) = lets_go.changed() => self.table.let_go(lets_go.borrow().as_deref()),
                () = self.access.changed.notified() => {}
                () = self.listed(), if !self.are_listed() => {}
                () = tokio::time::sleep(PATIENCE) => {}
                Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
            }
        };
        if ended == Ended::Over {
            gauge.set(0);
        }
        ended
    }

    /// Tells the membership the state of the session. `since`: when we were present at the leader for the first time.
    fn tell(
        &self,
        state: &watch::Sender<SessionState>,
        start: &Start,
        now: Presence,
        since: &mut Option<Instant>,
    ) {
        let health = match now {
            // Who takes part is not known yet, though all has been listed.
            Presence::Held { .. } if self.waits_for_the_leader(start) => Health::Connecting,
            // What is said is said by the process that has replaced this one.
            Presence::Unknown | Presence::Restored | Presence::Replaced => Health::Connecting,
            Presence::Held { rival } => {
                let present_for = since.get_or_insert_with(Instant::now).elapsed();
                let lacking = self.lacking.with(|lacking| schemas::texts(lacking));
                let common = &self.peers.watches;
                health::seen(&self.access, &self.table, common, Seen { lacking, rival }, present_for)
            }
            Presence::Failing { failure } => Health::Lost { failure },
            Presence::Taken { holder, .. } => Health::IdTaken { holder, wire: self.access.wire },
        };
        let (members, ranges, are_heard) = self.access.leases.with(|leases| {
            let ranges = leases.ranges(&self.access.us.cluster);
            (leases.members(), ranges, leases.is_heard(Instant::now()))
        });
        let before = members.keys().take_while(|id| **id < self.access.us.cluster).count();
        let place = Some(Place { before, members: members.len() });
        // Before the others are heard the place of an earlier session stays.
        if are_heard && start.place.with(|before| std::mem::replace(before, place) != place) {
            self.table.take_turns(place);
            self.peers.watches.take_turns(place.map(|place| place.in_round(0)));
        }
        let shortfalls = self.table.shortfalls();
        let renewal = self.renewal.with(|renewal| renewal.clone());
        let new = SessionState { health, wire: self.access.wire, members, ranges, shortfalls, renewal };
        state.send_if_modified(|old| std::mem::replace(old, new.clone()) != new);
    }

    /// Returns when features may export and import: our ID is ours, the membership is noted, and it is known who takes part and how.
    fn begin(&self, start: &Start, mut noted: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        let (peers, antrea, mut present) =
            (self.peers.clone(), self.access.antrea.clone(), self.present.clone());
        let (mut hearing, by_leader) = (peers.hearing.subscribe(), start.hears_by_leader());
        async move {
            peers.watches.listed().await;
            let is_ours = *peers.named.borrow() == antrea
                && (!by_leader || hearing.wait_for(|now| *now == Some(Hearing::ByLeader)).await.is_ok())
                && present.wait_for(Presence::is_held).await.is_ok()
                && noted.wait_for(|noted| *noted).await.is_ok();
            if !is_ours {
                // The session ends: others run Antrea's controllers than it started with, or nobody keeps our Lease.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }

    /// Whether the leader has just started, so that it does not tell of other members yet.
    fn waits_for_the_leader(&self, start: &Start) -> bool {
        start.hears_by_leader() && self.are_listed() && self.peers.hearing.borrow().is_none()
    }

    async fn antrea_leads(&self, session: &Session, start: &Start) {
        match start.is_certain {
            true => std::future::pending().await,
            false => connect::antrea_leads(&session.features, &self.access, self.present.clone()).await,
        }
    }

    async fn restored(&self) {
        tokio::select! {
            () = self.peers.watches.restored() => {}
            () = self.table.restored() => {}
        }
    }

    fn are_listed(&self) -> bool {
        self.peers.watches.are_listed() && self.table.are_listed()
    }

    async fn listed(&self) {
        tokio::join!(self.peers.watches.listed(), self.table.listed());
    }
}
