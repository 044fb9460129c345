//! Belonging: watches ClusterSets, Secrets, ClusterClaims and its own note in the daemon's Namespace; writes the `status` of
//! ClusterSets and the note; starts a [`link`](crate::link) to the leader that the ClusterSet and its Secret name, and starts
//! it anew when one of them says something else. When the ClusterSet is deleted, or the note says so, it leaves: see
//! [`leave`](mod@leave). Deletes the note when that is done. Safe to run twice: what has to be done is a function of what is
//! in the Namespace, and statuses and note are written only when they say something else.
//!
//! Nothing is left because something merely vanished or is wrong: then what was imported stays.

mod absence;
mod desk;
mod leave;
mod note;
mod running;
mod status;
mod target;
mod tell;
mod verdict;

use std::{sync::Arc, time::Duration};

use api::{
    label,
    membership::{self, Membership},
};
use kit::{
    boot::Env,
    index::Shared,
    objects::Change,
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::{sync::Notify, task::JoinSet};

pub use self::target::Target;
use self::{
    absence::Absence,
    desk::{Claim, Course, Desk, Set, fold},
    leave::Work,
    note::{Note, Order},
    running::{Leaving, Running},
    status::Word,
    target::Credential,
    tell::Words,
};
use crate::{
    link::{Report, State},
    service::export::EndpointIp,
};

/// How soon a link that ended is started again, and what could not be written or found out is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// The claims of a cluster whose CRDs are older than they are never listed.
const CLAIMS: Duration = Duration::from_secs(5);

/// Takes part in the ClusterSet there is, until the daemon shall stop.
pub async fn run(env: Env, endpoint_ip: EndpointIp) {
    let changed = Arc::new(Notify::new());
    let mut belonging = Belonging {
        writer: Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone()),
        desk: Shared::default(),
        env: env.clone(),
        endpoint_ip,
        running: None,
        leaving: None,
        last: None,
    };
    let mut tasks = JoinSet::new();
    tokio::select! {
        () = watch(&belonging, &changed, &mut tasks) => env.ready.set(true),
        () = env.stop.cancelled() => return,
    }
    loop {
        let words = belonging.follow().await;
        let noted = belonging.note_down().await;
        let told = tell::tell(&env, &belonging.desk, &belonging.writer, &words).await;
        tokio::select! {
            () = env.stop.cancelled() => break,
            () = changed.notified() => {}
            () = tokio::time::sleep(AGAIN), if !(words.settled && noted && told) => {}
            () = belonging.changed() => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    if let Some(running) = belonging.running {
        running.end().await;
    }
}

/// Begins all watches and waits for what they have to tell first.
async fn watch(belonging: &Belonging, changed: &Arc<Notify>, tasks: &mut JoinSet<()>) {
    let (watches, claims) = (Watches::default(), Watches::default());
    let anything = watcher::Config::default();
    belonging.watch(&watches, anything.clone(), "ClusterSet", changed, tasks, |desk, change: Change<Set>| {
        desk.absence = None;
        desk.told_of_sets(change);
    });
    belonging.watch(
        &watches,
        anything.clone(),
        "Secret",
        changed,
        tasks,
        |desk, change: Change<Credential>| {
            fold(&mut desk.secrets, change);
        },
    );
    let note = anything.clone().fields(&format!("metadata.name={}", membership::NAME));
    belonging.watch(&watches, note, "ConfigMap", changed, tasks, |desk, change: Change<Note>| {
        desk.told_of_note(change);
    });
    // The CRD may not be there, and that is no trouble: these are waited for only where there is need.
    belonging.watch(&claims, anything, "ClusterClaim", changed, tasks, |desk, change: Change<Claim>| {
        fold(&mut desk.claims, change);
    });
    watches.listed().await;
    if belonging.desk.with(|desk| desk.sets.values().any(desk::needs_claim)) {
        drop(tokio::time::timeout(CLAIMS, claims.listed()).await);
    }
}

/// What we take part in.
struct Belonging {
    env: Env,
    endpoint_ip: EndpointIp,
    desk: Shared<Desk>,
    writer: Writer,
    running: Option<Running>,
    leaving: Option<Leaving>,
    /// Where we were linked to last: good for leaving when ClusterSet and Secret are deleted together.
    last: Option<Target>,
}

impl Belonging {
    /// Watches a kind in the daemon's Namespace.
    fn watch<P>(
        &self,
        watches: &Watches,
        config: watcher::Config,
        kind: &'static str,
        changed: &Arc<Notify>,
        tasks: &mut JoinSet<()>,
        take: impl Fn(&mut Desk, Change<P>) + Send + 'static,
    ) where
        P: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync
            + 'static,
    {
        let (desk, changed) = (self.desk.clone(), changed.clone());
        let api = Api::<P>::namespaced(self.env.client.clone(), &self.env.namespace);
        let source = Source { cluster: "local", kind };
        tasks.spawn(watches.watch(api, config, source, self.env.metrics.clone(), move |change| {
            desk.with(|desk| take(desk, change));
            changed.notify_one();
        }));
    }

    /// Sees to it that we do what has to be done; what there is to say about that.
    async fn follow(&mut self) -> Words {
        if !self.running.as_ref().is_some_and(Running::has_begun) {
            self.desk.with(Desk::forget_unnoted);
        }
        let mut course = self.desk.with(|desk| desk.course());
        if let Course::Missing(noted) = &course {
            self.find_out(noted).await;
            course = self.desk.with(|desk| desk.course());
        }
        if !matches!(course, Course::Leave { .. }) {
            self.leaving = None;
        }
        match course {
            // Not found out yet: all goes on as it is.
            Course::Missing(_) => Words { ours: None, others: verdict::leaving(), settled: false },
            Course::Nothing => {
                self.unlink().await;
                Words { ours: None, others: verdict::leaving(), settled: true }
            }
            Course::Stuck { set, verdict } => {
                self.unlink().await;
                Words { others: verdict::another(&set), ours: Some((set, verdict.into())), settled: true }
            }
            Course::Link { target, note } => {
                let set = note.cluster_set.clone();
                let word = self.link(target, note).await;
                Words { others: verdict::another(&set), ours: Some((set, word)), settled: true }
            }
            Course::Leave { noted, order } => {
                self.unlink().await;
                let settled = self.leave(noted, order).await;
                Words { ours: None, others: verdict::leaving(), settled }
            }
        }
    }

    /// Finds out whether somebody decided that the noted ClusterSet shall be gone.
    async fn find_out(&self, noted: &Membership) {
        let (set, found) = (&noted.cluster_set, absence::look(&self.env, noted).await);
        match &found {
            Ok(Some(Absence::Vanished(why))) => {
                let message = format!(
                    "ClusterSet {set} is gone, but {why}: nobody decided to leave, and what is imported stays. Create the \
                     ClusterSet again, or leave with `freeport leave`"
                );
                tracing::warn!("{message}");
                if let Some(note) = self.desk.with(|desk| desk.note().cloned()) {
                    self.env.events.warn(note.object_ref(&()), "Leave", "ClusterSetVanished", &message);
                }
            }
            Ok(Some(Absence::Decided)) => tracing::info!(cluster_set = set, "it was deleted: leaving"),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "why ClusterSet {set} is gone cannot be found out, asking again")
            }
        }
        self.desk.with(|desk| desk.absence = found.ok().flatten());
    }

    async fn unlink(&mut self) {
        if let Some(running) = self.running.take() {
            self.last = Some(running.end().await);
        }
    }

    /// Sees to it that the link leads to `target`; how it stands with it.
    async fn link(&mut self, target: Target, note: Membership) -> Word {
        if self.running.as_ref().is_some_and(|running| running.target != target) {
            self.unlink().await;
        }
        let running = match &mut self.running {
            Some(running) => running,
            None => match target::client(&target) {
                Ok(client) => {
                    self.running.insert(Running::start(&self.env, self.endpoint_ip, target, client))
                }
                Err(verdict) => return verdict.into(),
            },
        };
        let Report { state, wire, mut members } = running.report();
        if matches!(state, State::Connected { .. } | State::Blind { .. }) {
            self.desk.with(|desk| desk.begun = Some(Membership { wire, ..note }));
        }
        members.remove(&running.target.us.cluster);
        Word { verdict: verdict::of(&state, &running.target), members }
    }

    /// Sees to it that what was noted is left, and forgets it when that is done; whether there is nothing to try again.
    async fn leave(&mut self, noted: Option<Membership>, order: Order) -> bool {
        let (have, target) = self
            .desk
            .with(|desk| (desk.note().cloned(), noted.as_ref().and_then(|noted| desk.noted_target(noted))));
        let note = match (have, &noted) {
            (Some(note), _) if note.order().is_some() => note,
            // Noted first, so that it goes on whatever ends us, and whatever ClusterSet is created meanwhile.
            (have, Some(noted)) => {
                let want = have.clone().unwrap_or_else(|| Note::of(&self.env.namespace, noted)).leaving();
                return self.write_note(have.as_ref(), &want).await;
            }
            (_, None) => return true,
        };
        let known = |last: &&Target| noted.as_ref().is_some_and(|noted| last.is_of(noted));
        let last = || {
            let mut last = self.last.as_ref().filter(known)?.clone();
            last.wire = noted.as_ref().map(|noted| noted.wire);
            Some(last)
        };
        let target = target.or_else(last);
        let work = Work { noted, order, target };
        match &self.leaving {
            Some(leaving) if leaving.work == work && leaving.done => self.forget(note, work).await,
            Some(leaving) if leaving.work == work => true,
            _ => {
                self.leaving = Some(Leaving::start(&self.env, note, work));
                true
            }
        }
    }

    /// Waits until the link has something to tell, or ended, or leaving is done.
    async fn changed(&mut self) {
        let running = async {
            match &mut self.running {
                Some(running) => running.changed().await,
                None => std::future::pending().await,
            }
        };
        let leaving = async {
            match &mut self.leaving {
                Some(leaving) => leaving.finished().await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = running => ended,
            () = leaving => false,
        };
        if ended {
            self.last = self.running.take().map(|running| running.target);
            tokio::time::sleep(AGAIN).await;
        }
    }
}
