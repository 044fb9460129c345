//! Common Areas that are not as they should be, or are none any more.

use api::{
    cluster_claim::ClusterClaim,
    cluster_set::{ClusterSet, READY},
    label,
};
use e2e::{
    seen::event,
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
    core::discovery::ApiResource,
};
use serde_json::{Value, json};

use crate::areas::fixture::{AREAS, Areas, FIRST, area};

/// The leader has said of the set that all is well: nobody is missing.
async fn is_ready(world: &Areas, set: &str) -> Result<(), String> {
    let found: Result<ClusterSet, _> = world.leader().api(&area(set)).get(set).await;
    let status = found.map_err(|error| error.to_string())?.status.unwrap_or_default();
    match status.conditions.iter().find(|condition| condition.type_.as_deref() == Some(READY)) {
        Some(ready) if ready.status.as_deref() == Some("True") => Ok(()),
        _ => Err(format!("{:?}", status.conditions)),
    }
}

/// Issue 14, C: what is wrong with it is said.
async fn is_invalid(world: &Areas, set: &str, why: &str) -> Result<(), String> {
    let found: Result<ClusterSet, _> = world.leader().api(&area(set)).get(set).await;
    let status = found.map_err(|error| error.to_string())?.status.unwrap_or_default();
    match status.conditions.iter().find(|condition| condition.type_.as_deref() == Some(READY)) {
        Some(ready)
            if ready.reason.as_deref() == Some("InvalidSpec")
                && ready.message.as_ref().is_some_and(|message| message.contains(why)) =>
        {
            Ok(())
        }
        _ => Err(format!("{:?}", status.conditions)),
    }
}

async fn judged(world: &Areas, set: &str, record: &str) -> Result<(), String> {
    let said = world.said(set, record).await;
    if said.is_empty() { Err(world.log()) } else { Ok(()) }
}

#[e2e::test]
fn a_common_area_without_a_cluster_set_or_with_a_broken_one_harms_nobody() {
    AREAS.beside(async |world| {
        let ns = world.namespace_everywhere("odd").await;
        let leader = world.leader();
        world.one_more("odd").await;
        eventually("it has a ClusterSet", || is_ready(world, "odd")).await;
        leader.delete::<ClusterSet>(&area("odd"), "odd").await;
        world.bad_record("odd", "without").await;
        eventually("served without one", || judged(world, "odd", "without")).await;
        world.first_goes_on(&ns, "without").await;

        let vague = json!({"metadata": {"name": "odd"}, "spec": {"leaders": [{}]}});
        let _: ClusterSet = leader.create(&area("odd"), vague).await;
        eventually("one that says nothing is reported on", || is_invalid(world, "odd", "clusterID")).await;
        let odd = area("odd");
        eventually("its Event", || event(leader, &odd, "odd", "InvalidSpec")).await;
        let kind = ApiResource::erase::<ClusterSet>(&());
        let sets = Api::<DynamicObject>::namespaced_with(leader.client.clone(), &area("odd"), &kind);
        // The API server takes that for a time.
        let condition = json!({"type": "Ready", "lastTransitionTime": "2026-01-01T10:00:00+99:99"});
        let senseless = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        sets.patch_status("odd", &PatchParams::default(), &senseless).await.unwrap();
        eventually("one that does not decode is mended", || is_invalid(world, "odd", "clusterID")).await;
        world.bad_record("odd", "broken").await;
        eventually("served with a broken one", || judged(world, "odd", "broken")).await;
        world.first_goes_on(&ns, "broken").await;

        let named = json!({"spec": {"clusterID": "leader", "leaders": [{"clusterID": "leader"}]}});
        let _: ClusterSet = leader.patch(&area("odd"), "odd", &named).await;
        eventually("corrected", || is_ready(world, "odd")).await;
        let other = json!({"metadata": {"name": "clusterset.k8s.io"}, "value": "other"});
        let _: ClusterClaim = leader.create(&area("odd"), other).await;
        eventually("a claim of another set", || is_invalid(world, "odd", "names other")).await;
        leader.delete::<ClusterClaim>(&area("odd"), "clusterset.k8s.io").await;
        let taken = json!({"metadata": {"name": "id.k8s.io"}, "value": "east"});
        let _: ClusterClaim = leader.create(&area("odd"), taken).await;
        eventually("an ID that nobody has here", || is_ready(world, "odd")).await;

        leader.delete_namespace(&area("odd")).await;
        world.is_forgotten("odd").await;
        world.release(&ns).await;
    });
}

/// Issue 14, C.
#[e2e::test]
fn a_claim_of_an_id_that_a_live_member_has_is_said_and_exports_go_on() {
    AREAS.alone(async |world| {
        let ns = world.namespace_everywhere("claimed").await;
        let leader = world.leader();
        eventually("all is well", || is_ready(world, FIRST)).await;
        let taken = json!({"metadata": {"name": "id.k8s.io"}, "value": "east"});
        let _: ClusterClaim = leader.create(&area(FIRST), taken).await;
        eventually("the ID is taken", || is_invalid(world, FIRST, "east")).await;
        world.first_goes_on(&ns, "meanwhile").await;
        leader.delete::<ClusterClaim>(&area(FIRST), "id.k8s.io").await;
        eventually("all is well again", || is_ready(world, FIRST)).await;
        world.release(&ns).await;
    });
}

async fn label_as_area(world: &Areas, set: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {label::COMMON_AREA: value}}}));
    let namespaces = Api::<Namespace>::all(world.leader().client.clone());
    namespaces.patch(&area(set), &PatchParams::default(), &patch).await.unwrap();
}

#[e2e::test]
fn a_common_area_that_is_none_any_more_is_not_served_and_leaves_nothing() {
    AREAS.beside(async |world| {
        let ns = world.namespace_everywhere("none-any-more").await;
        let process = world.leader_process().await;
        world.one_more("shortly").await;
        label_as_area(world, "shortly", Value::Null).await;
        world.is_forgotten("shortly").await;
        world.bad_record("shortly", "unseen").await;
        always("it is not served", || async {
            match world.said("shortly", "unseen").await.as_slice() {
                [] => Ok(()),
                said => Err(format!("{said:?}")),
            }
        })
        .await;
        world.first_goes_on(&ns, "unlabelled").await;

        label_as_area(world, "shortly", json!(label::TRUE)).await;
        world.is_served("shortly", true).await;
        eventually("it is served again", || judged(world, "shortly", "unseen")).await;
        // So soon after each other that the end of one meets the beginning of the next.
        for _ in 0..5 {
            label_as_area(world, "shortly", Value::Null).await;
            label_as_area(world, "shortly", json!(label::TRUE)).await;
        }
        world.is_served("shortly", true).await;
        world.bad_record("shortly", "seen").await;
        eventually("and again", || judged(world, "shortly", "seen")).await;

        world.leader().delete_namespace(&area("shortly")).await;
        world.is_forgotten("shortly").await;
        world.first_goes_on(&ns, "deleted").await;
        always("it stays forgotten", || async {
            if world.of_leader().await?.mentions(&area("shortly")) { Err(world.log()) } else { Ok(()) }
        })
        .await;
        assert_eq!(world.leader_process().await, process);
        world.release(&ns).await;
    });
}
