//! The leader's side, for a member that will not return. Reads the member's Lease, its records and the ResourceImports;
//! deletes the member's access, withdraws its records in its place, and deletes its slices, maps, offers, ShadowPods, its report and its announce. The leader daemon does
//! the rest. The Lease stays and is marked: importers that did not run meanwhile read from it that the member has left.

use std::time::{Duration, Instant};

use api::{
    announce::MemberClusterAnnounce, label, lease::LeaseView, name, report::ClusterReport,
    resource_export::ResourceExport, resource_import::ResourceImport,
};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ServiceAccount, rbac::v1::Role},
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    LeaveOptions, known, lease, offloading,
    remainder::{Remainder, has_endpoints, has_finalizers, is_withdrawn, others, remainder},
    take_access,
};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, list},
    eraser::{Eraser, PAUSE, Say, called},
    objects::{Object, area},
    precondition,
    view::live_holder,
};

/// A little longer than a running member takes to renew its Lease.
const RENEWAL: Duration = Duration::from_secs(12);

/// Removes member `id` at the leader.
pub(super) async fn remove(
    leader: &KubeContext,
    set: &str,
    id: &str,
    even_if_alive: bool,
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<(), Error> {
    let leader = leader_of(leader, set, id, options, &mut *say).await?;
    if !even_if_alive {
        let mut there = Eraser::new(&leader, options.dry_run, &mut *say);
        is_silent(&mut there, &area::name(set), id).await?;
    }
    take_access(&leader, set, id, options.dry_run, &mut *say).await?;
    clear(&leader, set, id, options, say).await
}

/// The leader's cluster, where somebody knows the member.
pub(super) async fn leader_of(
    leader: &KubeContext,
    set: &str,
    id: &str,
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<Cluster, Error> {
    precondition::cluster_set_name(set)?;
    precondition::cluster_id(id)?;
    let leader = Cluster::connect(leader).await?;
    precondition::leader_id(&leader, set, "--leader-context names the leader's cluster").await?;
    is_known(&Eraser::new(&leader, options.dry_run, say), set, id).await?;
    Ok(leader)
}

/// Removes what a member without access has at the leader.
pub(super) async fn clear(
    leader: &Cluster,
    set: &str,
    id: &str,
    options: &LeaveOptions,
    say: Say<'_>,
) -> Result<(), Error> {
    let area = area::name(set);
    let mut there = Eraser::new(leader, options.dry_run, say);
    withdraw(&mut there, &area, id, options.timeout).await?;
    offloading::withdraw(&mut there, &area, id, options.timeout).await?;
    for record in others(id, &records(&there, &area, id).await?) {
        discard(&mut there, &record).await?;
    }
    there.delete(&called::<ClusterReport>(&area, id)).await?;
    there.delete(&called::<MemberClusterAnnounce>(&area, &name::announce(id))).await?;
    mark(&mut there, &area, id).await?;
    if !there.dry_run {
        there.say(&format!("member {id:?} is removed from ClusterSet {set:?}"));
    }
    Ok(())
}

/// Refuses an ID that no object has: it is mistyped, and the Lease that is marked for it would stay for good. A member that was
/// removed still has its Lease.
async fn is_known(there: &Eraser<'_>, set: &str, id: &str) -> Result<(), Error> {
    let area = area::name(set);
    let mut objects = there.list::<Lease>(Some(&area), "").await?;
    objects.extend(there.list::<ServiceAccount>(Some(&area), "").await?);
    objects.extend(there.list::<Role>(Some(&area), "").await?);
    objects.extend(there.list::<MemberClusterAnnounce>(Some(&area), "").await?);
    let ids = known::ids(&objects);
    if ids.contains(id) {
        return Ok(());
    }
    let records = records(there, &area, id).await?;
    let imports = there.list::<ResourceImport>(Some(&area), "").await?;
    if !others(id, &records).is_empty() || !remainder(&area, id, &records, &imports).is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = ids.into_iter().collect();
    Err(there.cluster.refuse(format!(
        "no member {id:?} of ClusterSet {set:?} is known here; members known here: {}",
        list(&ids)
    )))
}

/// Refuses while the member renews its Lease. First by the time in it, then, since the member's clock may be wrong, by
/// waiting for another renewal.
async fn is_silent(there: &mut Eraser<'_>, area: &str, id: &str) -> Result<(), Error> {
    let cluster = there.cluster;
    let alive = |holder: &str| {
        cluster.unconfirmed(format!(
            "member {id:?} is alive (Lease {area}/{} is held by {holder:?}): run `freeport leave` in that cluster, or cut it off with \
             --even-if-alive",
            name::member_lease(id)
        ))
    };
    let Some(before) = lease(cluster, area, id).await? else {
        return Ok(());
    };
    if let Some(holder) = live_holder(&before, Timestamp::now()) {
        return Err(alive(holder));
    }
    let Some(holder) = before.holder() else {
        return Ok(());
    };
    there.say(&format!("waiting {} s to see whether member {id:?} renews its Lease", RENEWAL.as_secs()));
    tokio::time::sleep(RENEWAL).await;
    let after = lease(cluster, area, id).await?.and_then(|lease| lease.renew_time());
    if after == before.renew_time() { Ok(()) } else { Err(alive(holder)) }
}

async fn records(there: &Eraser<'_>, area: &str, id: &str) -> Result<Vec<Object>, Error> {
    there.list::<ResourceExport>(Some(area), &format!("{}={id}", label::SOURCE_CLUSTER_ID)).await
}

/// Withdraws what the member exports, and waits until the leader has taken it out of all imports and deleted the records.
async fn withdraw(there: &mut Eraser<'_>, area: &str, id: &str, limit: Duration) -> Result<(), Error> {
    let (mut start, mut before) = (Instant::now(), None);
    loop {
        // In this order: see `remainder`.
        let records = records(there, area, id).await?;
        let imports = there.list::<ResourceImport>(Some(area), "").await?;
        let left = remainder(area, id, &records, &imports);
        if left.is_empty() {
            return Ok(());
        }
        say_withdrawn(there, &left).await?;
        let count = (left.imports, left.records);
        let told = format!("ResourceImports that name {id:?}: {}, its Services: {}", count.0, count.1);
        if there.dry_run {
            there.say(&format!("would wait for the leader, {told}"));
            return Ok(());
        }
        if before.replace(count) != Some(count) {
            there.say(&format!("waiting for the leader, {told}"));
            start = Instant::now();
        }
        if start.elapsed() >= limit {
            return Err(Error::Timeout {
                cluster: there.cluster.name.clone(),
                missing: format!("the leader makes no progress: does freeport-leader run? {told}"),
                limit,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Withdraws the records in the member's place. Finalizers are removed after that, so that a record that is being deleted is
/// withdrawn before it is gone.
async fn say_withdrawn(there: &mut Eraser<'_>, left: &Remainder) -> Result<(), Error> {
    for record in &left.withdraw {
        if !is_withdrawn(record) {
            there.change(record, &json!({"spec": {"service": {"withdrawn": true}}}), "withdrawn").await?;
        }
        release(there, record).await?;
    }
    for record in &left.create {
        there.create(record).await?;
    }
    Ok(())
}

async fn release(there: &mut Eraser<'_>, record: &Object) -> Result<(), Error> {
    if has_finalizers(record) {
        there.change(record, &json!({"metadata": {"finalizers": null}}), "no finalizers").await?;
    }
    Ok(())
}

/// Deletes a record that the leader does not read. It is emptied first, for importers.
async fn discard(there: &mut Eraser<'_>, record: &Object) -> Result<(), Error> {
    if has_endpoints(record) {
        there.change(record, &json!({"spec": {"endpointSlice": {"endpoints": []}}}), "no endpoints").await?;
    }
    release(there, record).await?;
    there.delete(record).await
}

/// Marks the member's Lease: the member was removed for good.
async fn mark(there: &mut Eraser<'_>, area: &str, id: &str) -> Result<(), Error> {
    let lease = called::<Lease>(area, &name::member_lease(id));
    let mark = marked();
    match there.read(&lease).await? {
        Some(found) if is_marked(&found) => Ok(()),
        Some(found) => there.change(&found, &mark, "its holder has left").await,
        None => {
            let mut body = mark;
            body["apiVersion"] = json!(lease.resource.api_version);
            body["kind"] = json!(lease.resource.kind);
            body["metadata"]["name"] = json!(lease.name);
            there.create(&Object { body, ..lease }).await
        }
    }
}

fn marked() -> Value {
    json!({"metadata": {"annotations": {label::LEFT: label::TRUE}}, "spec": {"holderIdentity": ""}})
}

fn is_marked(lease: &Object) -> bool {
    lease.view::<LeaseView>().is_some_and(|lease| lease.has_left() && lease.holder().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_marked_once_and_unmarked_by_whoever_takes_it() {
        let lease =
            |body: Value| Object { body, ..called::<Lease>("clusterset-demo", "freeport-member-east") };
        assert!(is_marked(&lease(marked())));
        assert!(!is_marked(&lease(json!({"spec": {"holderIdentity": "u1/a"}}))));
        let mut taken = marked();
        taken["spec"]["holderIdentity"] = json!("u1/a");
        assert!(!is_marked(&lease(taken)));
    }
}
