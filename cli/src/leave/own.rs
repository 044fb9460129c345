//! The member's side. Reads ClusterSets, the member's note and the Secrets in its Namespace; changes the note, deletes
//! ClusterSet and Secret; at the leader deletes the member's access, and its Lease and announce if they are left. With `--force`, and
//! when no member does it: deletes what was imported, and the note.

use std::time::{Duration, Instant};

use api::{
    about::{CLUSTER_ID, CLUSTER_SET, ClusterProperty},
    announce::MemberClusterAnnounce,
    cluster_set::ClusterSet,
    label,
    lease::LeaseView,
    mcs::ServiceImport,
    membership, name,
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Endpoints, Secret, Service},
    discovery::v1::EndpointSlice,
    rbac::v1::{Role, RoleBinding},
};
use serde_json::json;

use super::{
    LeaveOptions,
    departure::{self, Traces},
    for_the_leader, lease, offloading, take_access,
};
use crate::{
    Error, KubeContext,
    cluster::Cluster,
    eraser::{Eraser, PAUSE, Say, called},
    holder,
    objects::{Object, SYSTEM, area, member},
    precondition,
};

/// How long a running member has to leave by itself.
const FORCED_WAIT: Duration = Duration::from_secs(10);

/// The member withdraws its exports and removes its imports; what remains is deleted after that.
pub(super) async fn withdraw(
    cluster: &KubeContext,
    leader: Option<&KubeContext>,
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<(), Error> {
    let cluster = Cluster::connect(cluster).await?;
    let leader = match leader {
        Some(leader) => Some(Cluster::connect(leader).await?),
        None => None,
    };
    let mut here = Eraser::new(&cluster, options.dry_run, &mut *say);
    let traces = traces(&here).await?;
    let is_anothers = is_anothers(&cluster, leader.as_ref(), &traces).await?;
    let identity = traces.identity();
    offloading::warn(&mut here, identity.as_ref().map(|(_, id)| id.as_str())).await?;
    depart(&mut here, &traces, membership::LEAVE).await?;
    if !here.dry_run {
        let is_there = format!("ConfigMap {SYSTEM}/{} is still there", membership::NAME);
        match left(&mut here, membership::LEAVE, options.timeout).await? {
            Left::Done => {}
            Left::Refused(refused) => {
                let reason = format!(
                    "the member has not left: {refused}. Change the policy, webhook or right that refuses it, and run this again: \
                     freeport-member goes on by itself. {is_there}"
                );
                return Err(Error::WriteRefused { cluster: cluster.name.clone(), reason });
            }
            Left::Waiting => {
                let missing = format!(
                    "the member has not left: does freeport-member run, and does it reach the leader? If the leader is gone, run `freeport \
                     leave --force`. {is_there}"
                );
                return Err(Error::Timeout {
                    cluster: cluster.name.clone(),
                    missing,
                    limit: options.timeout,
                });
            }
        }
    }
    offloading::forget_webhook(&mut here).await?;
    forget(&mut here, &traces).await?;
    let Some((set, id)) = traces.identity() else {
        // It has left before, but the leader may still have its access.
        if let Some(leader) = &leader {
            for (set, id) in holder::memberships(leader, &cluster).await? {
                take_access_and_presence(leader, &cluster, (&set, &id), options.dry_run, &mut *say).await?;
            }
        }
        return Ok(());
    };
    has_left(&mut here, &set, &id);
    if is_anothers {
        here.say(&shared(&id));
        return Ok(());
    }
    let access = match &leader {
        Some(leader) => {
            take_access_and_presence(leader, &cluster, (&set, &id), options.dry_run, &mut *say).await
        }
        None => Ok(()),
    };
    if leader.is_none() || access.is_err() {
        // Afterwards nothing in this cluster knows the ID.
        Eraser::new(&cluster, options.dry_run, say).next(&for_the_leader(&set, &id));
    }
    access
}

/// Deletes the member's access at the leader, then its Lease and announce. Mostly the member has deleted these two. One that has just
/// joined has not written its note yet: it does not know that it has something to withdraw.
async fn take_access_and_presence(
    leader: &Cluster,
    member: &Cluster,
    (set, id): (&str, &str),
    dry_run: bool,
    say: Say<'_>,
) -> Result<(), Error> {
    take_access(leader, set, id, dry_run, &mut *say).await?;
    let area = area::name(set);
    let lease = lease(leader, &area, id).await?;
    if lease.as_ref().and_then(LeaseView::holder_cluster) != Some(&member.uid) {
        return Ok(());
    }
    let mut there = Eraser::new(leader, dry_run, say);
    there.delete(&called::<MemberClusterAnnounce>(&area, &name::announce(id))).await?;
    there.delete(&called::<Lease>(&area, &name::member_lease(id))).await
}

/// Whether another cluster uses our ID. Refuses a leader that is not ours, before anything is changed.
async fn is_anothers(cluster: &Cluster, leader: Option<&Cluster>, traces: &Traces) -> Result<bool, Error> {
    let is_shared = traces.shares_its_id();
    let (Some(leader), Some((set, id))) = (leader, traces.identity()) else { return Ok(is_shared) };
    precondition::leader_id(leader, &set, "without it, leave with `freeport leave --force`").await?;
    if traces.came_second() {
        return Ok(true);
    }
    if is_shared {
        return Ok(holder::of(leader, &set, &id).await?.as_ref() != Some(&cluster.uid));
    }
    holder::is(leader, cluster, &set, &id).await?;
    Ok(false)
}

/// The leader is gone: what the member does not remove within [`FORCED_WAIT`] is removed here.
pub(super) async fn force(cluster: &KubeContext, options: &LeaveOptions, say: Say<'_>) -> Result<(), Error> {
    let cluster = Cluster::connect(cluster).await?;
    let mut here = Eraser::new(&cluster, options.dry_run, say);
    let traces = traces(&here).await?;
    let identity = traces.identity();
    offloading::warn(&mut here, identity.as_ref().map(|(_, id)| id.as_str())).await?;
    depart(&mut here, &traces, membership::LEAVE_FORCED).await?;
    if !here.dry_run && left(&mut here, membership::LEAVE_FORCED, FORCED_WAIT).await? != Left::Done {
        let waited = FORCED_WAIT.as_secs();
        here.say(&format!("the member has not left after {waited} s: removing its imports in its place"));
    }
    clear(&mut here).await?;
    offloading::clear(&mut here, identity.as_ref().map(|(_, id)| id.as_str())).await?;
    here.delete(&note()).await?;
    forget(&mut here, &traces).await?;
    if let Some((set, id)) = traces.identity() {
        has_left(&mut here, &set, &id);
        if traces.shares_its_id() {
            here.say(&shared(&id));
            here.say("if that one is gone since, the next step is for this one");
        }
        here.next(&for_the_leader(&set, &id));
    }
    Ok(())
}

/// Said instead of a next step that would remove the other cluster.
fn shared(id: &str) -> String {
    format!(
        "another cluster uses ID {id:?}: what the leader has under it, and the access, is left to that one. freeport status in \
         the leader's cluster shows it"
    )
}

fn has_left(here: &mut Eraser<'_>, set: &str, id: &str) {
    if !here.dry_run {
        here.say(&format!("cluster {id:?} has left ClusterSet {set:?}"));
    }
}

async fn traces(here: &Eraser<'_>) -> Result<Traces, Error> {
    Ok(Traces {
        sets: here.list::<ClusterSet>(Some(SYSTEM), "").await?,
        note: here.read(&note()).await?,
        secrets: here.list::<Secret>(Some(SYSTEM), &made_by_us()).await?,
    })
}

fn note() -> Object {
    called::<ConfigMap>(SYSTEM, membership::NAME)
}

/// Selects what Freeport made.
fn made_by_us() -> String {
    format!("{}={}", label::MANAGED_BY, label::FREEPORT)
}

/// Tells the member to leave: writes into the note how, then deletes the ClusterSet, whoever created it. In this order, so that the
/// member never sees a ClusterSet vanish without a reason.
async fn depart(here: &mut Eraser<'_>, traces: &Traces, how: &str) -> Result<(), Error> {
    if !traces.is_member() {
        here.say(&format!("not a member: no ClusterSet and no ConfigMap {} in {SYSTEM}", membership::NAME));
    }
    if let Some(note) = &traces.note {
        tell(here, note, how).await?;
    }
    for set in &traces.sets {
        here.delete(set).await?;
    }
    if here.dry_run && traces.note.is_some() && how == membership::LEAVE {
        let imports = here.list_written::<ServiceImport>(&made_by_us()).await?.len();
        here.say(&format!(
            "would wait until the member has withdrawn its exports, removed {imports} ServiceImports and its note"
        ));
    }
    Ok(())
}

async fn tell(here: &mut Eraser<'_>, note: &Object, how: &str) -> Result<(), Error> {
    let key = membership::LEAVE_KEY;
    if departure::read(note).and_then(|note| note.leave).as_deref() == Some(how) {
        return Ok(());
    }
    here.change(note, &json!({"data": {key: how}}), &format!("{key} is {how:?}")).await
}

/// How far a member is.
#[derive(PartialEq, Eq)]
enum Left {
    /// It has deleted its note, which it does last.
    Done,
    /// It has not, because API servers refuse this to it.
    Refused(String),
    /// It has not, and there was no progress for as long as the command waits.
    Waiting,
}

/// Waits until the member has left, until it is refused something, or until nothing changed for `limit`.
async fn left(here: &mut Eraser<'_>, how: &str, limit: Duration) -> Result<Left, Error> {
    let (mut start, mut before) = (Instant::now(), None);
    let mut refusal = None::<(String, Instant)>;
    let begun = start;
    loop {
        let Some(note) = here.read(&note()).await? else {
            return Ok(Left::Done);
        };
        // A member that was about to connect may have written a new note.
        tell(here, &note, how).await?;
        let imports = here.list_written::<ServiceImport>(&made_by_us()).await?.len();
        if before.replace(imports) != Some(imports) {
            here.say(&format!("waiting for the member, ServiceImports left: {imports}"));
            start = Instant::now();
        }
        let refused = note.metadata().annotations.and_then(|mut all| all.remove(label::REFUSED));
        let is_new = |known: &Option<(String, Instant)>, refused: &String| {
            known.as_ref().is_none_or(|(known, _)| known != refused)
        };
        match refused {
            None => refusal = None,
            Some(refused) if is_new(&refusal, &refused) => {
                here.say(&format!("waiting for the member: {refused}"));
                refusal = Some((refused, Instant::now()));
            }
            Some(_) => {}
        }
        if let Some((refused, since)) = &refusal
            && since.elapsed() >= refused_wait(since.duration_since(begun)).min(limit)
        {
            return Ok(Left::Refused(refused.clone()));
        }
        if start.elapsed() >= limit {
            return Ok(Left::Waiting);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Time for which a refusal has to last that was first seen so long after the command started. One that was there at the start may be of an
/// earlier attempt: the member tries again after 30 s at the latest, and removes it.
fn refused_wait(seen_after: Duration) -> Duration {
    if seen_after < PAUSE { Duration::from_secs(40) } else { Duration::from_secs(5) }
}

/// Deletes what was imported, in all Namespaces, and what says that the cluster is a member. ServiceImports first: a member that runs would
/// create the rest again.
async fn clear(here: &mut Eraser<'_>) -> Result<(), Error> {
    let realised = format!("{},{}", made_by_us(), label::MCS_SERVICE_NAME);
    let imports = here.list_written::<ServiceImport>(&made_by_us()).await?;
    here.delete_all(&imports).await?;
    let mut slices = here.list_written::<EndpointSlice>(&realised).await?;
    slices.retain(|slice| name::service_of_slice(&slice.name).is_some());
    here.delete_all(&slices).await?;
    let mut endpoints = here.list_written::<Endpoints>(&realised).await?;
    endpoints.retain(realises);
    here.delete_all(&endpoints).await?;
    let mut services = here.list_written::<Service>(&realised).await?;
    services.retain(realises);
    here.delete_all(&services).await?;
    // That the cluster belongs to the set goes before its ID.
    let mut properties = here.list::<ClusterProperty>(None, &made_by_us()).await?;
    properties.retain(|property| [CLUSTER_SET, CLUSTER_ID].contains(&&*property.name));
    properties.sort_by_key(|property| property.name != CLUSTER_SET);
    here.delete_all(&properties).await
}

/// Whether the name is that of what the label says.
fn realises(object: &Object) -> bool {
    let labels = object.metadata().labels.unwrap_or_default();
    labels.get(label::MCS_SERVICE_NAME).is_some_and(|of| name::realises(&object.name, of))
}

/// Deletes the credentials that Freeport made, and the member's right to replace them.
async fn forget(here: &mut Eraser<'_>, traces: &Traces) -> Result<(), Error> {
    for name in traces.credentials() {
        here.delete_ours(&called::<Secret>(SYSTEM, &name)).await?;
    }
    here.delete_ours(&called::<RoleBinding>(SYSTEM, member::CREDENTIAL_ROLE)).await?;
    here.delete_ours(&called::<Role>(SYSTEM, member::CREDENTIAL_ROLE)).await
}
