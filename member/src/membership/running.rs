//! What runs for a membership: a session, features alone while there can be none, or leaving.

use std::time::Duration;

use api::membership::Membership;
use futures::future::join_all;
use kit::boot::Env;
use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    leave::{self, Work},
    note::Note,
};
use crate::{
    feature::{Features, Local},
    home::Home,
    identity::{Identity, Target},
    session::{Session, SessionState},
};

/// Time for running writes when a session is to end.
const GRACE: Duration = Duration::from_secs(10);

/// A session, and the target it was started for.
pub(super) struct Running {
    pub(super) target: Target,
    stop: CancellationToken,
    task: JoinSet<()>,
    state: watch::Receiver<SessionState>,
    noted: watch::Sender<bool>,
}

impl Running {
    pub(super) fn start(env: &Env, features: &Features, home: &Home, target: Target, leader: Client) -> Self {
        tracing::info!(
            cluster = target.us.cluster,
            cluster_set = target.cluster_set,
            "starting a session with the leader"
        );
        let stop = env.stop.child_token();
        let (sender, state) = watch::channel(SessionState::default());
        let (noted, is_noted) = watch::channel(false);
        let session = Session {
            env: env.clone(),
            features: features.clone(),
            home: home.clone(),
            target: target.clone(),
            leader,
            state: sender,
            noted: is_noted,
            stop: stop.clone(),
        };
        let mut task = JoinSet::new();
        task.spawn(session.run());
        Self { target, stop, task, state, noted }
    }

    /// The membership is noted: whatever the session writes at the leader can be withdrawn.
    pub(super) fn begin(&self) {
        self.noted.send_replace(true);
    }

    /// Whether exports and imports may have begun.
    pub(super) fn has_begun(&self) -> bool {
        *self.noted.borrow()
    }

    /// The state of the session.
    pub(super) fn state(&mut self) -> SessionState {
        self.state.borrow_and_update().clone()
    }

    /// Waits until the state is another one; whether the session has ended.
    pub(super) async fn changed(&mut self) -> bool {
        tokio::select! {
            ended = self.task.join_next() => {
                if let Some(Err(error)) = ended {
                    kit::drive::resume(error);
                }
                true
            }
            Ok(()) = self.state.changed() => false,
        }
    }

    /// Stops the session, with some time for running writes.
    pub(super) async fn end(mut self) -> Target {
        self.stop.cancel();
        if let Ok(Some(Err(error))) = tokio::time::timeout(GRACE, self.task.join_next()).await {
            kit::drive::resume(error);
        }
        self.target
    }
}

/// The features without a session, and the membership they were started for.
pub(super) struct Alone {
    pub(super) membership: Membership,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Alone {
    pub(super) fn start(env: &Env, features: &Features, home: &Home, membership: Membership) -> Self {
        tracing::info!(
            cluster = membership.cluster_id,
            cluster_set = membership.cluster_set,
            "there can be no session with the leader: imports follow the endpoints of this cluster alone"
        );
        let us =
            Identity { cluster: membership.cluster_id.clone(), common_area: membership.common_area.clone() };
        let local = Local { env: env.clone(), home: home.clone(), us, wire: membership.wire };
        let (stop, features) = (env.stop.child_token(), features.clone());
        let (mut task, stopped) = (JoinSet::new(), stop.clone());
        task.spawn(async move {
            join_all(features.iter().map(|feature| feature.run_alone(local.clone(), stopped.clone()))).await;
        });
        Self { membership, stop, task }
    }

    /// Never returns, unless by a panic of what runs.
    pub(super) async fn watched(&mut self) {
        if let Some(Err(error)) = self.task.join_next().await {
            kit::drive::resume(error);
        }
        std::future::pending().await
    }

    /// Stops it, with some time for running writes.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        if let Ok(Some(Err(error))) = tokio::time::timeout(GRACE, self.task.join_next()).await {
            kit::drive::resume(error);
        }
    }
}

/// Leaving, and what it was started for.
pub(super) struct Leaving {
    pub(super) work: Work,
    /// Nothing but the note is left.
    pub(super) done: bool,
    task: JoinSet<()>,
}

impl Leaving {
    pub(super) fn start(env: &Env, features: &Features, home: &Home, note: Note, work: Work) -> Self {
        let mut task = JoinSet::new();
        task.spawn(leave::leave(env.clone(), features.clone(), home.clone(), note, work.clone()));
        Self { work, done: false, task }
    }

    /// Waits until it is done.
    pub(super) async fn finished(&mut self) {
        match self.task.join_next().await {
            Some(Ok(())) => self.done = true,
            Some(Err(error)) => kit::drive::resume(error),
            None => std::future::pending().await,
        }
    }
}
