//! What runs on behalf of a membership: a link, or leaving.

use std::time::Duration;

use kit::boot::Env;
use kube::Client;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    leave::{self, Work},
    note::Note,
    target::Target,
};
use crate::{
    link::{self, Report},
    service::export::EndpointIp,
};

/// Time for running writes when a link is to end.
const GRACE: Duration = Duration::from_secs(10);

/// A running link and what it was started for.
pub(super) struct Running {
    pub target: Target,
    stop: CancellationToken,
    task: JoinSet<()>,
    report: watch::Receiver<Report>,
    noted: watch::Sender<bool>,
}

impl Running {
    pub fn start(env: &Env, endpoint_ip: EndpointIp, target: Target, client: Client) -> Self {
        tracing::info!(
            cluster = target.us.cluster,
            cluster_set = target.cluster_set,
            "linking to the leader"
        );
        let (stop, (tell, report)) = (env.stop.child_token(), watch::channel(Report::default()));
        let (noted, begin) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(link::run(env.clone(), endpoint_ip, target.clone(), client, tell, begin, stop.clone()));
        Self { target, stop, task, report, noted }
    }

    /// The membership is noted: nothing that we do at the leader is forgotten any more.
    pub fn begin(&self) {
        self.noted.send_replace(true);
    }

    /// Whether exports and imports may be under way.
    pub fn has_begun(&self) -> bool {
        *self.noted.borrow()
    }

    /// How it stands.
    pub fn report(&mut self) -> Report {
        self.report.borrow_and_update().clone()
    }

    /// Waits until the report is another one; whether the link has ended.
    pub async fn changed(&mut self) -> bool {
        tokio::select! {
            ended = self.task.join_next() => {
                if let Some(Err(error)) = ended {
                    kit::drive::resume(error);
                }
                true
            }
            Ok(()) = self.report.changed() => false,
        }
    }

    /// Lets running writes end, within reason. Where it led.
    pub async fn end(mut self) -> Target {
        self.stop.cancel();
        if let Ok(Some(Err(error))) = tokio::time::timeout(GRACE, self.task.join_next()).await {
            kit::drive::resume(error);
        }
        self.target
    }
}

/// Leaving under way, and what it was started for.
pub(super) struct Leaving {
    pub work: Work,
    /// Nothing but the note is left.
    pub done: bool,
    task: JoinSet<()>,
}

impl Leaving {
    pub fn start(env: &Env, note: Note, work: Work) -> Self {
        let mut task = JoinSet::new();
        task.spawn(leave::leave(env.clone(), note, work.clone()));
        Self { work, done: false, task }
    }

    /// Waits until it is done.
    pub async fn finished(&mut self) {
        match self.task.join_next().await {
            Some(Ok(())) => self.done = true,
            Some(Err(error)) => kit::drive::resume(error),
            None => std::future::pending().await,
        }
    }
}
