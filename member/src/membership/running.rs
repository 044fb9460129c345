//! What runs for a membership: a session, features alone while there can be none, or leaving.

use std::time::Duration;

use api::membership::Membership;
use futures::future::join_all;
use kit::{boot::Env, client::Credential, crowd::Place, index::Shared};
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
    session::{Kept, Session, SessionState},
};

/// Time for running writes when a session is to end.
const GRACE: Duration = Duration::from_secs(10);

/// A session, and the target that it has.
pub(super) struct Running {
    target: watch::Sender<Target>,
    /// That of its client.
    credential: Credential,
    stop: CancellationToken,
    task: JoinSet<()>,
    state: watch::Receiver<SessionState>,
    noted: watch::Sender<bool>,
    lets_go: watch::Sender<Option<String>>,
}

impl Running {
    /// `place`: ours among the members, as far as it is known. `lets_go`: what the ClusterSet says now of what is to go.
    pub(super) fn start(
        (env, features, home, token_life): (&Env, &Features, &Home, Duration),
        target: &Target,
        (leader, credential): (Client, Credential),
        place: Shared<Option<Place>>,
        lets_go: Option<String>,
    ) -> Self {
        tracing::info!(
            cluster = target.us.cluster,
            cluster_set = target.cluster_set,
            "starting a session with the leader"
        );
        let stop = env.stop.child_token();
        let (sender, state) = watch::channel(SessionState::default());
        let (noted, is_noted) = watch::channel(false);
        let (lets_go, says_what_goes) = watch::channel(lets_go);
        let (current, is_current) = watch::channel(target.clone());
        let session = Session {
            env: env.clone(),
            features: features.clone(),
            home: home.clone(),
            target: target.clone(),
            credential: Kept { target: is_current, token_life },
            leader: env.hold.guard(leader),
            place,
            state: sender,
            noted: is_noted,
            lets_go: says_what_goes,
            stop: stop.clone(),
        };
        let mut task = JoinSet::new();
        task.spawn(session.run());
        Self { target: current, credential, stop, task, state, noted, lets_go }
    }

    /// What it has, with the credential of now.
    pub(super) fn target(&self) -> Target {
        self.target.borrow().clone()
    }

    /// Whether it goes on with this target. Then it has its credential from now on.
    pub(super) fn goes_on_as(&self, target: &Target) -> bool {
        let (is_same, goes_on) = {
            let had = self.target.borrow();
            (*had == *target, had.goes_on_as(target))
        };
        if is_same || !goes_on || self.credential.replace(target.secret_data()).is_err() {
            return is_same;
        }
        self.target.send_replace(target.clone());
        true
    }

    /// Takes in what the ClusterSet says of what is to go. That something is said no more lets nothing go.
    pub(super) fn let_go(&self, said: Option<String>) {
        self.lets_go.send_if_modified(|before| {
            let is_news = said.is_some() && *before != said;
            if is_news {
                *before = said;
            }
            is_news
        });
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
        self.target()
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
