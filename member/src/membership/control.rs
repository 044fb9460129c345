//! Carries out what [`action`](super::action) says, and reports on it.

mod about;
mod alone;
mod noting;
mod standby;

use std::time::Duration;

use api::{condition::Verdict, membership::Membership};
use kit::{boot::Env, crowd::Place, index::Shared, write::Writer};
use kube::Resource;

use super::{
    absence::{self, Absence},
    action::Action,
    leave::Work,
    note::{Note, Order},
    object::Set,
    running::{Alone, Leaving, Running},
    state::MembershipState,
    status::{
        Report,
        write::{Reports, write_all},
    },
    verdict,
};
use crate::{
    feature::Features,
    home::Home,
    identity::Target,
    session::{Health, SessionState},
};

/// How soon a session that ended is started again.
const RESTART: Duration = Duration::from_secs(2);

/// What runs for the membership: one of the three at a time, for each writes what the others write.
pub(super) struct Control {
    env: Env,
    features: Features,
    home: Home,
    /// What a token for the leader is asked to count.
    token_life: Duration,
    state: Shared<MembershipState>,
    writer: Writer,
    running: Option<Running>,
    alone: Option<Alone>,
    leaving: Option<Leaving>,
    /// The target of the last session: used for leaving when ClusterSet and Secret are deleted together.
    last: Option<Target>,
    /// Our place among the members, as that session knew it.
    place: Shared<Option<Place>>,
}

impl Control {
    /// `writer` writes the status of ClusterSets.
    pub(super) fn new(
        (env, features, home): (Env, Features, Home),
        token_life: Duration,
        state: Shared<MembershipState>,
        writer: Writer,
    ) -> Self {
        Self {
            env,
            features,
            home,
            token_life,
            state,
            writer,
            running: None,
            alone: None,
            leaving: None,
            last: None,
            place: Shared::default(),
        }
    }

    /// Carries out what has to be done, notes the membership and writes the status of all ClusterSets; whether nothing has to be
    /// tried again.
    pub(super) async fn act(&mut self) -> bool {
        if !self.env.hold.is_active() {
            self.stand_by().await;
            return true;
        }
        let (reports, is_done) = self.carry_out().await;
        self.run_alone().await;
        let is_noted = self.note_begun().await && self.say_properties().await;
        let is_written = write_all(&self.env, &self.state, &self.writer, &reports).await;
        is_done && is_noted && is_written
    }

    /// Waits until the session has another state or ended, leaving is done, or API servers refuse something else.
    pub(super) async fn changed(&mut self) {
        let running = async {
            match &mut self.running {
                Some(running) => running.changed().await,
                None => std::future::pending().await,
            }
        };
        let alone = async {
            match &mut self.alone {
                Some(alone) => alone.watched().await,
                None => std::future::pending().await,
            }
        };
        let leaving = async {
            match &mut self.leaving {
                Some(leaving) => leaving.finished().await,
                None => std::future::pending().await,
            }
        };
        let area = self.env.metrics.area();
        let refused = self.env.metrics.refusals().changed(&area);
        let ended = tokio::select! {
            ended = running => ended,
            () = alone => false,
            () = leaving => false,
            () = refused => false,
        };
        if ended {
            self.last = self.running.take().map(|running| running.target());
            tokio::time::sleep(RESTART).await;
        }
    }

    /// Ends what runs but leaving, which goes on after a restart.
    pub(super) async fn end(&mut self) {
        self.end_session().await;
        self.end_alone().await;
    }

    /// Ends the session, if there is one.
    async fn end_session(&mut self) {
        if let Some(running) = self.running.take() {
            self.last = Some(running.end().await);
        }
    }

    /// Carries out what has to be done; what to report about that, and whether nothing has to be tried again.
    async fn carry_out(&mut self) -> (Reports, bool) {
        let action = self.find_action().await;
        if !matches!(action, Action::Leave { .. }) {
            self.leaving = None;
        }
        let nothing_own = || Reports { own: None, others: verdict::leaving() };
        let own = |set: String, report: Report| Reports {
            others: verdict::another(&set),
            own: Some((set, report)),
        };
        match action {
            // Until it is found out, everything goes on.
            Action::FindOut(_) => (nothing_own(), false),
            Action::Nothing => {
                self.end_session().await;
                (nothing_own(), true)
            }
            Action::Wait { set, verdict } => {
                self.end_session().await;
                (own(set, verdict.into()), true)
            }
            Action::Connect { target, note } => {
                let set = note.cluster_set.clone();
                let report = self.connect(&target, note).await.unwrap_or_else(Report::from);
                (own(set, report), true)
            }
            Action::Leave { noted, order } => {
                self.end().await;
                (nothing_own(), self.leave(noted, order).await)
            }
        }
    }

    /// What has to be done, after finding out why a ClusterSet is gone.
    async fn find_action(&self) -> Action {
        if !self.running.as_ref().is_some_and(Running::has_begun) {
            self.state.with(MembershipState::forget_unnoted);
        }
        let action = self.state.with(|state| state.action());
        let Action::FindOut(noted) = &action else { return action };
        self.find_out(noted).await;
        self.state.with(|state| state.action())
    }

    /// Finds out whether somebody decided that the noted ClusterSet shall be gone.
    async fn find_out(&self, noted: &Membership) {
        let (set, found) = (&noted.cluster_set, absence::find_out(&self.env, noted).await);
        match &found {
            Ok(Some(Absence::Vanished(why))) => {
                let message = format!(
                    "ClusterSet {set} is gone, but {why}. That does not mean that this cluster shall leave, so imports stay. \
                     Create the ClusterSet again, or run `freeport leave`"
                );
                tracing::warn!("{message}");
                if let Some(note) = self.state.with(|state| state.note().cloned()) {
                    self.env.events.warn(note.object_ref(&()), "Leave", "ClusterSetVanished", &message);
                }
            }
            Ok(Some(Absence::Decided)) => {
                tracing::info!(cluster_set = set, "the ClusterSet was deleted: leaving");
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot find out why ClusterSet {set} is gone, asking again");
            }
        }
        self.state.with(|state| state.absence = found.ok().flatten());
    }

    /// Makes sure that a session with the leader of `target` runs; what to report about it.
    async fn connect(&mut self, target: &Target, note: Membership) -> Result<Report, Verdict> {
        if self.running.as_ref().is_some_and(|running| !running.goes_on_as(target)) {
            self.end_session().await;
        }
        let lets_go = self.state.with(|state| state.chosen().and_then(Set::lets_go));
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                let connection =
                    target.connect(&self.env.dial).map_err(|error| verdict::no_client(&error, target))?;
                self.end_alone().await;
                let with = (&self.env, &self.features, &self.home, self.token_life);
                // Who does not begin anew with all others waits for nobody.
                if !self.last.as_ref().is_some_and(|last| last.is_of_all(target)) {
                    self.place = Shared::default();
                }
                let place = self.place.clone();
                self.running.insert(Running::start(with, target, connection, place, lets_go.clone()))
            }
        };
        running.let_go(lets_go);
        let SessionState { health, wire, mut members, ranges, shortfalls, renewal } = running.state();
        if matches!(health, Health::Connected { .. } | Health::Blind(_)) {
            let ranges = ranges.unwrap_or_else(|| note.ranges.clone());
            self.state.with(|state| state.begun = Some(Membership { wire, ranges, ..note }));
        }
        members.remove(&target.us.cluster);
        let is_connected = matches!(health, Health::Connected { .. });
        let complete = shortfalls.filter(|_| is_connected).map(|shortfalls| verdict::complete(&shortfalls));
        // Also where nothing else is known: a token that ended may be why.
        let credential = renewal.and_then(|renewal| verdict::credential(&renewal, wire));
        let verdict = verdict::of(&health, target);
        let why = self.state.with(|state| state.noted().and_then(|noted| state.contradiction(&noted)));
        let verdict = match why {
            Some(why) if verdict::is_well(&verdict) => verdict::contradicts(&why),
            _ => verdict,
        };
        let writes = Some(self.env.metrics.refusals().verdict(&self.env.metrics.area()).into());
        Ok(Report { verdict, complete, credential, writes, members })
    }

    /// Makes sure that the noted membership is being left, and deletes the note when that is done; whether nothing has to be tried
    /// again.
    async fn leave(&mut self, noted: Option<Membership>, order: Order) -> bool {
        let (have, target) = self.state.with(|state| {
            (state.note().cloned(), noted.as_ref().and_then(|noted| state.noted_target(noted)))
        });
        let note = match (have, &noted) {
            (Some(note), _) if note.order().is_some() => note,
            // The order is noted first: then leaving goes on after a restart, and whatever ClusterSet is created meanwhile.
            (have, Some(noted)) => {
                let want = have.clone().unwrap_or_else(|| Note::of(&self.env.namespace, noted)).leaving();
                return self.write_note(have.as_ref(), &want).await;
            }
            (_, None) => return true,
        };
        let target = target.or_else(|| self.last_target(noted.as_ref()?));
        let work = Work { noted, order, target };
        match &self.leaving {
            Some(leaving) if leaving.work == work && leaving.done => self.delete_note(note, work).await,
            Some(leaving) if leaving.work == work => true,
            _ => {
                self.leaving = Some(Leaving::start(&self.env, &self.features, &self.home, note, work));
                true
            }
        }
    }

    /// The target of the last session, if that was one of the noted membership.
    fn last_target(&self, noted: &Membership) -> Option<Target> {
        let mut last = self.last.clone().filter(|last| last.is_of(noted))?;
        last.wire = Some(noted.wire);
        Some(last)
    }
}
