//! Importing: watches ResourceImports and other clusters' slices in the Common Area, Namespaces, and here the Services,
//! EndpointSlices and ServiceImports it makes; writes and deletes those. Our own cluster's endpoints come from its own
//! slices, not by way of the leader. Safe to run twice: what is written is a function of what is watched, deletions name
//! the uid, and nothing is touched that is neither labelled as ours nor written by us.

mod apply;
mod continuity;
mod demote;
mod doubt;
mod endpoints;
mod mark;
mod object;
mod own;
mod place;
mod plan;
mod reachable;
mod removal;
mod room;
mod verdict;
mod withdrawals;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{ServiceName, antrea::Members, name};
use k8s_openapi::api::core::v1::ObjectReference;
use kit::{
    events::Events,
    index::Shared,
    metrics::Metrics,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::Client;
use presence::vouch::Vouching;
use rules::import::{address, metadata, slice};

use self::{
    continuity::Writers,
    plan::{Plan, desired},
    withdrawals::{SECOND_LOOK, Said},
};
pub(crate) use self::{
    mark::demoted_since,
    own::OwnEndpoints,
    room::{NO_NAMESPACE, Need, Room, TOO_MANY},
    withdrawals::Withdrawals,
};
use super::{
    addresses::noting::Kept,
    copies::{COPY, SAID as SAID_OF_COPIES, unmade},
    index::{IMPORT, known::Known},
    irregular::{NotReady, note, note_why},
    knowledge::Knowledge,
    unanswered::Lasting,
};
use crate::identity::Identity;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Importing {
    /// Who we are.
    pub(crate) us: Identity,
    /// Everything this member knows.
    pub(crate) knowledge: Knowledge,
    /// What the writers' Leases say.
    pub(crate) vouching: Vouching<ServiceName>,
    /// Which imports there is room for.
    pub(crate) room: Shared<Room>,
    /// What the leader takes back.
    pub(crate) withdrawals: Shared<Withdrawals>,
    /// What nobody answers for.
    pub(crate) unanswered: Shared<Lasting>,
    /// Addresses of imports that have ended.
    pub(crate) addresses: Kept,
    /// Members that run Antrea's controllers.
    pub(crate) antrea: Members,
    /// Reads from the Common Area.
    pub(crate) leader: Client,
    /// Writes to this cluster.
    pub(crate) writer: Writer,
    /// Where to leave Events.
    pub(crate) events: Events,
    /// Counts what is doubted.
    pub(crate) metrics: Metrics,
}

impl Importing {
    /// Brings what is here of one import up to date.
    pub(crate) async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let known = self.knowledge.known(&service);
        if known.as_ref().is_some_and(|known| known.entry.unread().is_some()) {
            return Ok(Outcome::Done);
        }
        let may_be_here = self.may_be_here(&service, known.as_ref().map_or(Need::Nothing, Need::of));
        let Some(known) = known.filter(|known| may_be_here && known.namespace.active) else {
            self.vouching.keep(&service, &BTreeSet::new());
            self.unanswered.with(|all| all.forget(&service));
            self.note_irregular(&service, false, BTreeMap::new());
            self.note_ready(&service, None);
            self.note_copies(&service, &[]);
            self.withdrawals.with(|all| {
                all.stays(&service);
                self.metrics.imports_withheld(all.withheld().len());
            });
            return Ok(Outcome::Done);
        };
        let mut writers = self.writers(&known);
        let plan = match self.plan(&known, &mut writers).await {
            Ok(plan) => plan,
            Err(wait) => return Ok(Outcome::Requeue(wait)),
        };
        let not_ours = matches!(plan, Plan::Import(_)) && known.entry.is_anothers();
        self.note_irregular(&service, not_ours, plan.left_out());
        let copies = if plan == Plan::Nothing { unmade(&known.entry) } else { vec![] };
        self.note_copies(&service, &copies);
        let doubts = plan.doubts().to_vec();
        let again = self.withdrawals.with(|all| all.asks_again(&service, Instant::now()));
        // What is removed is not ready as long as that is refused.
        if matches!(plan, Plan::Nothing | Plan::Hold(_)) {
            self.note_ready(&service, None);
        }
        let done = match plan {
            Plan::Nothing | Plan::Hold(_) => Ok(Outcome::Done),
            Plan::Remove => self.remove(&known).await.map(|()| {
                self.unanswered.with(|all| all.forget(&service));
                // Its room is another's.
                self.may_be_here(&service, Need::Nothing);
                Outcome::Done
            }),
            Plan::Import(import) => Box::pin(self.apply(&known, &writers, import)).await,
        };
        // What is here is written first: it does not wait for a leader that does not answer, or refuses us.
        let settled = self.settle(&known, &writers, &doubts).await;
        let done = done.and_then(|done| match settled? {
            true => Ok(Outcome::Requeue(Duration::ZERO)),
            false => Ok(match (done, again) {
                (Outcome::Requeue(wait), Some(again)) => Outcome::Requeue(wait.min(again)),
                (done, again) => again.map_or(done, Outcome::Requeue),
            }),
        });
        self.knowledge.outcome(&service.namespace, done)
    }

    /// Takes in about what of the Service somebody has to decide: whether the ServiceImport is somebody else's, and how many addresses of
    /// clusters are left out.
    fn note_irregular(&self, service: &ServiceName, not_ours: bool, left_out: BTreeMap<String, usize>) {
        self.knowledge.irregular.with(|all| {
            note(&mut all.not_ours, service, not_ours);
            if all.leave_out(service, left_out) {
                self.metrics.endpoints_left_out(all.left_out());
            }
        });
    }

    /// Takes in why the import is not ready here; none if it is, or if there is none.
    fn note_ready(&self, service: &ServiceName, why: Option<NotReady>) {
        self.knowledge.irregular.with(|all| note_why(&mut all.not_ready, service, why));
    }

    /// Takes in which objects here are copies that have the names of the import's, and says it once of each.
    fn note_copies(&self, service: &ServiceName, copies: &[ObjectReference]) {
        if self.knowledge.irregular.with(|all| all.copies.unmade(service, copies)) {
            copies.iter().for_each(|copy| self.events.tell(copy.clone(), "Import", COPY, SAID_OF_COPIES));
        }
    }

    /// What has to be here; or after which time that is to be found out.
    async fn plan(&self, known: &Known, writers: &mut Writers) -> Result<Plan, Duration> {
        let (service, entry) = (&known.service, &known.entry);
        let names_somebody = !known.exporters().is_empty();
        writers.withheld = self.withdrawals.with(|all| all.note(service)).filter(|_| !names_somebody);
        let plan = desired(known, writers);
        let is_said = entry.leader_import.is_some() || entry.taken_back;
        let is_let_go = !names_somebody && self.withdrawals.with(|all| all.lets_go(service));
        let goes_by_the_leader = is_let_go || writers.withheld.is_some() || plan == Plan::Remove && is_said;
        if goes_by_the_leader && entry.is_imported() {
            return self.taken_back(known, writers, plan).await;
        }
        self.withdrawals.with(|all| {
            match plan {
                Plan::Nothing | Plan::Remove => all.goes(service),
                _ if names_somebody => all.stays(service),
                // While there is no import of the leader, its word stands.
                _ => all.is_in_doubt(service),
            }
            self.metrics.imports_withheld(all.withheld().len());
        });
        Ok(plan)
    }

    /// What has to be here of what nobody exports by the leader's word. Where that is much at once, only what members have taken back goes;
    /// nothing is done while they are to be asked once more.
    async fn taken_back(&self, known: &Known, writers: &Writers, plan: Plan) -> Result<Plan, Duration> {
        let (service, here) = (&known.service, self.room.with(|room| room.taken()));
        let may_go = self.withdrawals.with(|all| all.may_go(service, here, Instant::now()));
        let goes = may_go || self.have_said(known, writers).await == Said::Yes;
        let (stays, wait) = self.withdrawals.with(|all| {
            let now = Instant::now();
            let stays = !goes && all.withhold(service, now);
            if goes {
                all.goes(service);
            }
            self.metrics.imports_withheld(all.withheld().len());
            (stays, all.asks_again(service, now))
        });
        match () {
            () if goes => Ok(Plan::Remove),
            () if writers.withheld.is_some() => Ok(plan),
            () if stays => {
                // From now on, and after a restart, it is as one that was never compared.
                self.knowledge.services.note(service, |entry| {
                    (entry.accepted, entry.taken_back) = (None, false);
                });
                Err(Duration::ZERO)
            }
            () => Err(wait.unwrap_or(SECOND_LOOK)),
        }
    }

    /// Looks at all imports before the first is made: there may be room for some of them only. What stays against the leader's word stays
    /// so.
    pub(crate) fn begin(&self) {
        let known = self.knowledge.services.keys().into_iter().filter_map(|key| self.knowledge.known(&key));
        let needs = known.map(|known| {
            let noted = continuity::withheld(&known.entry).filter(|_| known.exporters().is_empty());
            if let Some(noted) = noted.filter(|_| !known.antrea_leads()) {
                self.withdrawals.with(|all| all.goes_on(&known.service, noted));
            }
            (known.service.clone(), Need::of(&known))
        });
        let needs: Vec<_> = needs.collect();
        self.room.with(|room| room.begin(needs));
    }

    /// Takes in how it stands with one import; whether there is room for it. Others there is room for now are reconciled.
    fn may_be_here(&self, service: &ServiceName, need: Need) -> bool {
        let (new, may_be_here) = self.room.with(|room| {
            let new = room.take_in(service, need);
            self.metrics.imports_waiting(TOO_MANY, room.waiting().len());
            self.metrics.imports_waiting(NO_NAMESPACE, room.nowhere().len());
            (new, !room.leaves_out(service))
        });
        let others = new.into_iter().filter(|new| new != service);
        self.knowledge.services.enqueue(others.map(|other| (other, IMPORT)).collect());
        may_be_here
    }

    /// What is known of those who write about the Service.
    fn writers(&self, known: &Known) -> Writers {
        let exporters = known.exporters().iter().map(|exporter| exporter.cluster_id.clone());
        let leases = exporters.chain(known.entry.parts()).map(|cluster| name::member_lease(&cluster));
        let leases = leases.chain([name::LEADER_LEASE.to_owned()]);
        Writers {
            leader_uid: self.vouching.uid(&known.service, name::LEADER_LEASE),
            restored: self.vouching.is_restored(),
            withheld: None,
            outdated: leases.filter(|lease| !self.vouching.is_current(&known.service, lease)).collect(),
        }
    }
}
