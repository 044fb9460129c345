//! Belonging: watches ClusterSets and Secrets in the daemon's Namespace; writes the `status` of ClusterSets; starts a
//! [`link`](crate::link) to the leader that the ClusterSet and its Secret name, and starts it anew when one of them says
//! something else. Deletes nothing; what was imported stays when the ClusterSet is gone or wrong.

mod desk;
mod status;
mod verdict;

use std::{sync::Arc, time::Duration};

use api::{
    condition::{Status, Verdict},
    label,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    boot::Env,
    index::{Change, Shared},
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, Client, Resource, ResourceExt, runtime::watcher};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub use self::desk::Target;
use self::{
    desk::{Credential, Desk, Set, client, fold},
    status::Word,
};
use crate::link::{self, Report};

/// How soon a link that ended is started again, and a status that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// A running link and what it was started for.
struct Running {
    target: Target,
    stop: CancellationToken,
    task: JoinSet<()>,
    report: watch::Receiver<Report>,
}

impl Running {
    fn start(env: &Env, target: Target, client: Client) -> Self {
        tracing::info!(
            cluster = target.us.cluster,
            cluster_set = target.cluster_set,
            "linking to the leader"
        );
        let (stop, (tell, report)) = (env.stop.child_token(), watch::channel(Report::default()));
        let mut task = JoinSet::new();
        task.spawn(link::run(env.clone(), target.clone(), client, tell, stop.clone()));
        Self { target, stop, task, report }
    }

    /// Lets running writes end, within reason.
    async fn end(mut self) {
        self.stop.cancel();
        if let Ok(Some(Err(error))) = tokio::time::timeout(5 * AGAIN, self.task.join_next()).await {
            kit::drive::resume(error);
        }
    }
}

/// Takes part in the ClusterSet there is, until the daemon shall stop.
pub async fn run(env: Env) {
    let (desk, changed) = (Shared::<Desk>::default(), Arc::new(Notify::new()));
    let (watches, mut tasks) = (Watches::default(), JoinSet::new());
    let source = |kind| Source { cluster: "local", kind };
    let (on, told) = (desk.clone(), changed.clone());
    tasks.spawn(watches.watch(
        Api::<Set>::namespaced(env.client.clone(), &env.namespace),
        watcher::Config::default(),
        source("ClusterSet"),
        env.metrics.clone(),
        move |change| {
            on.with(|desk| fold(&mut desk.sets, change));
            told.notify_one();
        },
    ));
    let (on, told) = (desk.clone(), changed.clone());
    tasks.spawn(watches.watch(
        Api::<Credential>::namespaced(env.client.clone(), &env.namespace),
        watcher::Config::default(),
        source("Secret"),
        env.metrics.clone(),
        move |change| {
            on.with(|desk| fold(&mut desk.secrets, change));
            told.notify_one();
        },
    ));
    tokio::select! {
        () = watches.listed() => env.ready.set(true),
        () = env.stop.cancelled() => return,
    }
    let writer = Writer::new(env.client.clone(), label::MEMBER, "local", env.metrics.clone());
    let mut running: Option<Running> = None;
    loop {
        let word = follow(&env, &desk, &mut running).await;
        let told = tell(&env, &desk, &writer, word.as_ref()).await;
        let ended = async {
            match &mut running {
                Some(running) => tokio::select! {
                    ended = running.task.join_next() => ended,
                    Ok(()) = running.report.changed() => None,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = env.stop.cancelled() => break,
            () = changed.notified() => {}
            () = tokio::time::sleep(AGAIN), if !told => {}
            ended = ended => match ended {
                None => {}
                Some(Err(error)) => kit::drive::resume(error),
                Some(Ok(())) => {
                    running = None;
                    tokio::time::sleep(AGAIN).await;
                }
            },
            Some(Err(error)) = tasks.join_next() => kit::drive::resume(error),
        }
    }
    if let Some(running) = running {
        running.end().await;
    }
}

/// Sees to it that the link is the one the ClusterSet asks for; what there is to say about that ClusterSet.
async fn follow(env: &Env, desk: &Shared<Desk>, running: &mut Option<Running>) -> Option<Word> {
    let target = desk.with(|desk| desk.chosen().map(|set| desk.target(set)));
    let wanted = match &target {
        Some(Ok(target)) => Some(target),
        _ => None,
    };
    if running.as_ref().map(|running| &running.target) != wanted
        && let Some(old) = running.take()
    {
        old.end().await;
    }
    match target? {
        Err(verdict) => Some(verdict.into()),
        Ok(target) => {
            if running.is_none() {
                match client(&target) {
                    Ok(client) => *running = Some(Running::start(env, target, client)),
                    Err(verdict) => return Some(verdict.into()),
                }
            }
            running.as_mut().map(|running| {
                let Report { state, mut members } = running.report.borrow_and_update().clone();
                members.remove(&running.target.us.cluster);
                Word { verdict: verdict::of(&state, &running.target), members }
            })
        }
    }
}

/// Brings the status of all ClusterSets up to date; whether it worked.
async fn tell(env: &Env, desk: &Shared<Desk>, writer: &Writer, word: Option<&Word>) -> bool {
    env.metrics.link_state(word.map(|word| word.verdict.reason.as_str()));
    let now = Time(Timestamp::now());
    let (chosen, sets) = desk.with(|desk| (desk.chosen().map(ResourceExt::name_any), desk.sets.clone()));
    let mut all = true;
    for (name, set) in sets {
        let other = || {
            let message =
                format!("this cluster belongs to ClusterSet {}", chosen.as_deref().unwrap_or_default());
            Word::from(verdict::no("AnotherClusterSet", message))
        };
        let Some(word) = (if chosen.as_ref() == Some(&name) { word.cloned() } else { Some(other()) }) else {
            continue;
        };
        let want = status::desired(&set, &word, &now);
        if !status::stands(&set, &word) && set.status.0.as_ref() != Ok(&want) {
            match writer.put_status(&set, &want).await {
                Ok(told) => {
                    tell_change(env, &set, &word.verdict);
                    desk.with(|desk| fold(&mut desk.sets, Change::Apply(told)));
                }
                Err(error) => {
                    tracing::warn!(cluster_set = name, %error, "the ClusterSet's status was not written, trying again");
                    all = false;
                }
            }
        }
    }
    all
}

/// Leaves an Event when a problem comes up, and when it is over.
fn tell_change(env: &Env, set: &Set, verdict: &Verdict) {
    let had = status::reason(set);
    if had == Some(&verdict.reason) {
        return;
    }
    if verdict::is_problem(verdict) {
        tracing::warn!(cluster_set = set.name_any(), reason = verdict.reason, "{}", verdict.message);
        env.events.warn(set.object_ref(&()), "Link", &verdict.reason, &verdict.message);
    } else if verdict.status == Status::True && had.is_some() {
        tracing::info!(cluster_set = set.name_any(), reason = verdict.reason, "{}", verdict.message);
        env.events.tell(set.object_ref(&()), "Link", &verdict.reason, &verdict.message);
    }
}
