//! Belonging: watches ClusterSets and Secrets in the daemon's Namespace; writes the `status` of ClusterSets; starts a
//! [`link`](crate::link) to the leader that the ClusterSet and its Secret name, and starts it anew when one of them says
//! something else. Deletes nothing; what was imported stays when the ClusterSet is gone or wrong.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use api::{
    cluster_set::{ClusterSet, ClusterSetSpec, ClusterSetStatus, ClusterStatus, READY},
    condition::{AntreaCondition, Status, Verdict},
    label, name,
};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::Time};
use kit::{
    boot::Env,
    client,
    index::{Change, Shared},
    view::{Lenient, lean},
    watch::{Source, Watches},
    write::Writer,
};
use kube::{Api, Client, Resource, ResourceExt, api::ObjectMeta, runtime::watcher};
use serde::Deserialize;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    link::{self, State},
    service::export::Identity,
};

/// How soon a link that ended is started again, and a status that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterSet)]
struct Set {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default = "nothing")]
    spec: Lenient<ClusterSetSpec>,
    #[serde(default)]
    status: Lenient<ClusterSetStatus>,
}

fn nothing() -> Lenient<ClusterSetSpec> {
    Lenient(Err("it has no spec".into()))
}

#[derive(Resource, Clone, Deserialize)]
#[resource(inherit = Secret)]
struct Credential {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, ByteString>,
}

/// Says nothing of what is in it.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

/// What the daemon's Namespace says about belonging.
#[derive(Default)]
struct Desk {
    sets: BTreeMap<String, Set>,
    secrets: BTreeMap<String, Credential>,
}

fn fold<P: Resource>(map: &mut BTreeMap<String, P>, change: Change<P>) {
    match change {
        Change::Apply(object) => drop(map.insert(object.name_any(), object)),
        Change::Remove(object) => drop(map.remove(&object.name_any())),
        Change::Reset(objects) => {
            *map = objects.into_iter().map(|object| (object.name_any(), object)).collect()
        }
    }
}

/// A leader to link to.
#[derive(Clone, PartialEq)]
pub struct Target {
    /// Who we are there.
    pub us: Identity,
    /// Name of the ClusterSet.
    pub cluster_set: String,
    /// ID of the leader's cluster, as far as the ClusterSet says it.
    pub leader: Option<String>,
    server: String,
    credential: BTreeMap<String, ByteString>,
}

impl Desk {
    /// The ClusterSet we belong to: the oldest, since a member belongs to one.
    fn chosen(&self) -> Option<&Set> {
        let live = self.sets.values().filter(|set| set.metadata.deletion_timestamp.is_none());
        live.min_by_key(|set| (set.metadata.creation_timestamp.as_ref().map(|t| t.0), set.name_any()))
    }

    /// Where `set` leads, or what keeps it from leading anywhere.
    fn target(&self, set: &Set) -> Result<Target, Verdict> {
        let no = |reason: &str, message: String| Verdict::new(READY, Status::False, reason, message);
        let invalid = |message: String| no("InvalidSpec", message);
        let spec = set.spec.0.as_ref().map_err(|error| invalid(format!("spec does not decode: {error}")))?;
        name::check_cluster_id(&spec.cluster_id)
            .map_err(|error| invalid(format!("spec.clusterID: {error}")))?;
        let leader = spec.leaders.first().ok_or_else(|| invalid("spec.leaders is empty".into()))?;
        let missing = |field: &str| invalid(format!("spec.{field} is missing"));
        let secret = leader.secret.clone().ok_or_else(|| missing("leaders[0].secret"))?;
        let credential = self
            .secrets
            .get(&secret)
            .ok_or_else(|| no("SecretMissing", format!("there is no Secret {secret} in this Namespace")))?;
        Ok(Target {
            us: Identity {
                cluster: spec.cluster_id.clone(),
                common_area: spec.namespace.clone().ok_or_else(|| missing("namespace"))?,
            },
            cluster_set: set.name_any(),
            leader: leader.cluster_id.clone(),
            server: leader.server.clone().ok_or_else(|| missing("leaders[0].server"))?,
            credential: credential.data.clone(),
        })
    }
}

fn client(target: &Target) -> Result<Client, Verdict> {
    client::remote(&target.server, &target.credential).map_err(|error| {
        let reason = match error {
            client::Error::Server(_) => "InvalidSpec",
            _ => "InvalidSecret",
        };
        Verdict::new(READY, Status::False, reason, error.to_string())
    })
}

/// What the state of the link means for the ClusterSet.
fn verdict(state: &State) -> Verdict {
    match state {
        State::Connecting => {
            Verdict::new(READY, Status::Unknown, "Connecting", "no answer from the leader yet")
        }
        State::Connected => Verdict::new(READY, Status::True, "Connected", "exports and imports flow"),
        State::Lost { error } => {
            let message = format!("the leader cannot be reached, imports stay as they are: {error}");
            Verdict::new(READY, Status::False, "Disconnected", message)
        }
        State::IdTaken { holder } => {
            let message = format!(
                "another cluster uses this cluster ID and is alive (holder {holder}); nothing is exported"
            );
            Verdict::new(READY, Status::False, "DuplicateClusterID", message)
        }
    }
}

fn desired(set: &Set, verdict: &Verdict, now: &Time) -> ClusterSetStatus {
    let have = set.status.0.clone().unwrap_or_default();
    let ready = AntreaCondition::of(verdict, &have.conditions, now);
    let leader = set.spec.0.as_ref().ok().and_then(|spec| spec.leaders.first()?.cluster_id.clone());
    ClusterSetStatus {
        total_clusters: Some(1),
        ready_clusters: Some(i32::from(verdict.status == Status::True)),
        cluster_statuses: vec![ClusterStatus { cluster_id: leader, conditions: vec![ready.clone()] }],
        conditions: vec![ready],
        observed_generation: set.metadata.generation,
    }
}

/// A running link and what it was started for.
struct Running {
    target: Target,
    stop: CancellationToken,
    task: JoinSet<()>,
    state: watch::Receiver<State>,
}

impl Running {
    fn start(env: &Env, target: Target, client: Client) -> Self {
        tracing::info!(
            cluster = target.us.cluster,
            cluster_set = target.cluster_set,
            "linking to the leader"
        );
        let (stop, (tell, state)) = (env.stop.child_token(), watch::channel(State::Connecting));
        let mut task = JoinSet::new();
        task.spawn(link::run(env.clone(), target.clone(), client, tell, stop.clone()));
        Self { target, stop, task, state }
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
        let verdict = follow(&env, &desk, &mut running).await;
        let told = tell(&desk, &writer, verdict.as_ref()).await;
        let ended = async {
            match &mut running {
                Some(running) => tokio::select! {
                    ended = running.task.join_next() => ended,
                    Ok(()) = running.state.changed() => None,
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
async fn follow(env: &Env, desk: &Shared<Desk>, running: &mut Option<Running>) -> Option<Verdict> {
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
        Err(verdict) => Some(verdict),
        Ok(target) => {
            if running.is_none() {
                match client(&target) {
                    Ok(client) => *running = Some(Running::start(env, target, client)),
                    Err(verdict) => return Some(verdict),
                }
            }
            running.as_mut().map(|running| verdict(&running.state.borrow_and_update()))
        }
    }
}

/// What a status says stands while we only just set out to ask the leader again.
fn stands(set: &Set, verdict: &Verdict) -> bool {
    let said = set.status.0.as_ref().is_ok_and(|status| {
        !status.conditions.is_empty() && status.observed_generation == set.metadata.generation
    });
    said && *verdict == self::verdict(&State::Connecting)
}

/// Brings the status of all ClusterSets up to date; whether it worked.
async fn tell(desk: &Shared<Desk>, writer: &Writer, verdict: Option<&Verdict>) -> bool {
    let now = Time(Timestamp::now());
    let (chosen, sets) = desk.with(|desk| (desk.chosen().map(ResourceExt::name_any), desk.sets.clone()));
    let mut all = true;
    for (name, set) in sets {
        let other = || {
            let message =
                format!("this cluster belongs to ClusterSet {}", chosen.as_deref().unwrap_or_default());
            Verdict::new(READY, Status::False, "AnotherClusterSet", message)
        };
        let Some(verdict) = (if chosen.as_ref() == Some(&name) { verdict.cloned() } else { Some(other()) })
        else {
            continue;
        };
        let want = desired(&set, &verdict, &now);
        if !stands(&set, &verdict) && set.status.0.as_ref() != Ok(&want) {
            match writer.put_status(&set, &want).await {
                Ok(told) => desk.with(|desk| fold(&mut desk.sets, Change::Apply(told))),
                Err(error) => {
                    tracing::warn!(cluster_set = name, %error, "the ClusterSet's status was not written, trying again");
                    all = false;
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn desk(change: impl FnOnce(&mut Value)) -> Desk {
        let mut set: Value =
            serde_json::from_str(include_str!("../../api/tests/golden/cluster-set-member.json")).unwrap();
        change(&mut set);
        let mut desk = Desk::default();
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(set).unwrap()));
        let secret = json!({"metadata": {"name": "freeport-leader-token"}, "data": {"token": "c2VjcmV0"}});
        fold(&mut desk.secrets, Change::Apply(serde_json::from_value(secret).unwrap()));
        desk
    }

    fn reason(change: impl FnOnce(&mut Value)) -> String {
        let desk = desk(change);
        desk.target(desk.chosen().unwrap()).err().map_or_else(|| "fine".into(), |verdict| verdict.reason)
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(reason(|_| {}), "fine");
        assert_eq!(reason(|s| s["spec"]["clusterID"] = json!("Not an ID")), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"] = json!([])), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"] = json!("x")), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["namespace"] = Value::Null), "InvalidSpec");
        assert_eq!(reason(|s| s["spec"]["leaders"][0]["secret"] = json!("other")), "SecretMissing");
        let desk = desk(|_| {});
        let target = desk.target(desk.chosen().unwrap()).unwrap_or_else(|_| panic!());
        assert_eq!(client(&target).err().unwrap().reason, "InvalidSecret", "no ca.crt");
    }

    #[test]
    fn the_oldest_cluster_set_is_ours() {
        let mut desk = desk(|s| s["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z"));
        let older = json!({"metadata": {"name": "zoo", "creationTimestamp": "2026-01-01T00:00:00Z"}});
        fold(&mut desk.sets, Change::Apply(serde_json::from_value(older).unwrap()));
        assert_eq!(desk.chosen().unwrap().name_any(), "zoo");
    }

    #[test]
    fn the_status_says_it_and_saying_it_again_changes_nothing() {
        let desk = desk(|_| {});
        let set = desk.chosen().unwrap();
        let now = Time("2026-11-02T00:00:00Z".parse().unwrap());
        let connected = desired(set, &verdict(&State::Connected), &now);
        assert_eq!(connected.ready_clusters, Some(1));
        assert_eq!(
            connected.conditions[0].last_transition_time,
            set.status.0.as_ref().unwrap().conditions[0].last_transition_time
        );
        let lost = desired(set, &verdict(&State::Lost { error: "refused".into() }), &now);
        assert_eq!(
            (lost.ready_clusters, lost.conditions[0].reason.as_deref()),
            (Some(0), Some("Disconnected"))
        );
    }

    #[test]
    fn a_secret_never_shows() {
        let desk = desk(|_| {});
        assert!(
            !format!("{:?}", desk.secrets).contains("c2VjcmV0")
                && !format!("{:?}", desk.secrets).contains("115")
        );
    }
}
