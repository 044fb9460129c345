//! The membership of this cluster in a ClusterSet.
//!
//! Watches ClusterSets, Secrets, ClusterClaims and its own note in the daemon's Namespace, the CRDs of these kinds, and ClusterProperties. Writes
//! the `status` of ClusterSets, the note and ClusterProperties of its own ([`property`]). Starts a [`session`](crate::session) with the leader that the ClusterSet and its Secret name, and starts another one
//! when they change; while there can be none, features run alone. Leaves ([`leave`](mod@leave)) when the ClusterSet is deleted or
//! the note says so, and deletes the note when that is done. Safe to run twice: what has to be done ([`action`]) is a function of
//! what is in the Namespace ([`state`]), and status and note are written only when they change.
//!
//! Something that merely vanished or is wrong is no reason to leave: imports stay.

mod absence;
mod action;
mod control;
#[cfg(test)]
mod fixture;
mod leave;
mod note;
mod object;
mod property;
mod running;
mod schemas;
mod state;
mod status;
mod verdict;

use std::{fmt::Debug, sync::Arc, time::Duration};

use api::{label, membership};
use k8s_openapi::NamespaceResourceScope;
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

use self::{
    control::Control,
    object::{Property, Set},
    state::MembershipState,
};
use crate::{feature::Features, home::Home};

/// How soon is acted again at a change: others change their Leases as often as they like, and we may have to say so.
const PACE: Duration = Duration::from_millis(500);
/// How soon something that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How long to wait for the list of ClusterClaims, and of ClusterProperties: the CRDs of this cluster may be older than the kind.
const CLAIMS: Duration = Duration::from_secs(5);

/// Runs the membership of this cluster until the daemon shall stop. `token_life`: what a token for the leader is asked to count.
pub(crate) async fn run(env: Env, features: Features, home: Home, token_life: Duration) {
    let changed = Arc::new(Notify::new());
    let writer = Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone());
    let (home_of, writer_of) = (home.clone(), writer.clone());
    let inputs =
        Inputs { env: env.clone(), home: home_of, state: Shared::default(), writer: writer_of, changed };
    let mut tasks = JoinSet::new();
    tokio::select! {
        () = inputs.watch(&mut tasks) => env.ready.set(Ok(())),
        () = env.stop.cancelled() => return,
    }
    let mut control = Control::new((env.clone(), features, home), token_life, inputs.state.clone(), writer);
    loop {
        let again = tokio::time::Instant::now() + PACE;
        let stands_by = !env.hold.is_active();
        let is_done = control.act().await;
        tokio::select! {
            () = env.stop.cancelled() => break,
            () = inputs.changed.notified() => {}
            () = tokio::time::sleep(RETRY), if !is_done => {}
            () = control.changed() => {}
            () = env.hold.active(), if stands_by => {}
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
        tokio::select! {
            () = env.stop.cancelled() => break,
            () = tokio::time::sleep_until(again) => {}
        }
    }
    control.end().await;
}

/// What the watches write to.
struct Inputs {
    env: Env,
    home: Home,
    state: Shared<MembershipState>,
    /// Of the status of ClusterSets.
    writer: Writer,
    changed: Arc<Notify>,
}

impl Inputs {
    /// Starts all watches and waits for their first lists.
    async fn watch(&self, tasks: &mut JoinSet<()>) {
        let guarded = || Watches::guarded(self.home.guard());
        let (watches, claims, properties) = (guarded(), guarded(), guarded());
        let everything = watcher::Config::default;
        self.watch_kind(&watches, everything(), "ClusterSet", tasks, |state, change| {
            state.absence = None;
            state.cluster_sets.change(change);
        });
        self.watch_kind(&watches, everything(), "Secret", tasks, |state, change| {
            state.secrets.change(change)
        });
        let note = everything().fields(&format!("metadata.name={}", membership::NAME));
        self.watch_kind(&watches, note, "ConfigMap", tasks, |state, change| state.notes.change(change));
        // The CRD may be missing. Then there is nothing to wait for, unless a ClusterSet needs a claim.
        self.watch_kind(&claims, everything(), "ClusterClaim", tasks, |state, change| {
            state.claims.change(change);
        });
        let (state, changed) = (self.state.clone(), self.changed.clone());
        let source = Source { cluster: "local", kind: "ClusterProperty" };
        let (api, metrics) = (Api::<Property>::all(self.env.client.clone()), self.env.metrics.clone());
        tasks.spawn(properties.watch(api, everything(), source, metrics, move |change| {
            state.with(|state| state.properties.change(change));
            changed.notify_one();
        }));
        let kinds = [watches.clone(), claims.clone()];
        schemas::watch(&self.env, &self.home, kinds, self.writer.clone(), tasks);
        watches.listed().await;
        // Without their CRD, or the right to list them, there is nothing to wait for.
        drop(tokio::time::timeout(CLAIMS, properties.answered()).await);
        if self.state.with(|state| state.cluster_sets.iter().any(Set::needs_claim)) {
            drop(tokio::time::timeout(CLAIMS, claims.listed()).await);
        }
    }

    /// Watches a kind in the daemon's Namespace.
    fn watch_kind<P>(
        &self,
        watches: &Watches,
        config: watcher::Config,
        kind: &'static str,
        tasks: &mut JoinSet<()>,
        take_in: impl Fn(&mut MembershipState, Change<P>) + Send + 'static,
    ) where
        P: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let (state, changed) = (self.state.clone(), self.changed.clone());
        let api = Api::<P>::namespaced(self.env.client.clone(), &self.env.namespace);
        let source = Source { cluster: "local", kind };
        tasks.spawn(watches.watch(api, config, source, self.env.metrics.clone(), move |change| {
            state.with(|state| take_in(state, change));
            changed.notify_one();
        }));
    }
}
