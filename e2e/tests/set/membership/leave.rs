//! Leaving: nothing remains on either side, whatever happens meanwhile; and nothing is left that nobody decided to leave.

use api::{
    cluster_set::ClusterSet,
    mcs::ServiceImport,
    membership::{self, LEAVE_FORCED, LEAVE_KEY},
};
use e2e::{
    cluster_set::says,
    daemon::End,
    fixture::{AREA, SET, SYSTEM, alone},
    seen::{event, imported, right},
    waiting::{always, eventually},
    watched::Watched,
};
use fleet::Component;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::json;

use super::traces::{
    CONNECTED, EAST, SECRET, at_leader, exchanged, imported_from_both, imports_are_gone, left, noted,
};

#[e2e::test(real)]
fn r60_a_cluster_set_that_is_deleted_is_left_and_one_created_again_is_joined() {
    alone(async |world| {
        let (ns, east) = ("leaves", world.cluster("east"));
        exchanged(world, ns).await;
        let mut set: ClusterSet = east.take(SYSTEM, SET).await;
        left(world, ns).await;
        eventually("others go on", || async {
            let seen = imported(world.leader(), ns, "web").await;
            right(seen, |seen| seen.clusters == ["leader".to_owned()].into() && seen.endpoints.len() == 1)
        })
        .await;
        eventually("an Event says so", || event(east, SYSTEM, membership::NAME, "Left")).await;

        // Nothing is noted before it worked: a mistake can be mended in place.
        set.spec.namespace = Some("misnamed".into());
        east.put_back(set).await;
        let message = world.member_says("east", ("False", "Forbidden")).await;
        assert!(message.contains("misnamed"), "{message}");
        east.patch::<ClusterSet>(SYSTEM, SET, &json!({"spec": {"namespace": AREA}})).await;
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn a_cluster_set_that_is_deleted_while_we_are_away_is_left_when_we_are_back() {
    alone(async |world| {
        let ns = "away";
        exchanged(world, ns).await;
        world.end(EAST, End::Stop).await;
        let set: ClusterSet = world.cluster("east").take(SYSTEM, SET).await;
        world.launch(EAST).await;
        left(world, ns).await;
        world.cluster("east").put_back(set).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn a_cluster_set_that_vanishes_with_its_crd_is_not_left() {
    alone(async |world| {
        let (ns, east) = ("vanishes", world.cluster("east"));
        let before = exchanged(world, ns).await;
        let services = Watched::<Service>::of(east, ns).await;
        let imports = Watched::<ServiceImport>::of(east, ns).await;
        let slices = Watched::<EndpointSlice>::of(east, ns).await;
        let set: ClusterSet = east.api(SYSTEM).get(SET).await.unwrap();
        let crd = east.take_crd("clustersets.multicluster.crd.antrea.io").await;
        let vanished = || event(east, SYSTEM, membership::NAME, "ClusterSetVanished");
        eventually("an Event says so", vanished).await;
        let stays = || async {
            let now = imported(east, ns, "web").await;
            let (there, noted) = (at_leader(world).await, noted(world).await);
            let is_member = noted.as_ref().is_some_and(|noted| !noted.contains_key(LEAVE_KEY));
            if now.as_ref() == Ok(&before) && there.len() == 5 && is_member {
                return Ok(());
            }
            Err(format!("{now:?}, at the leader {there:?}, noted {noted:?}"))
        };
        always("nothing is removed", stays).await;
        world.end(EAST, End::Stop).await;
        east.put_back_crd(crd).await;
        world.launch(EAST).await;
        always("nor by the next one, though the CRD is there again", stays).await;
        east.put_back(set).await;
        world.member_says("east", CONNECTED).await;
        assert_eq!(imported_from_both(world, ns).await, before);
        services.nothing_deleted("all along");
        imports.nothing_deleted("all along");
        slices.nothing_deleted("all along");
        world.release(ns).await;
    });
}

#[e2e::test(real)]
fn r60_without_the_leader_the_imports_go_at_once_and_the_rest_when_it_is_back() {
    alone(async |world| {
        let (ns, east) = ("alone", world.cluster("east"));
        exchanged(world, ns).await;
        let leader = world.real().fleet.cluster("leader").unwrap();
        leader.kill(Component::ApiServer).await.unwrap();
        let set: ClusterSet = east.take(SYSTEM, SET).await;
        imports_are_gone(world, ns).await;
        let incomplete = || event(east, SYSTEM, membership::NAME, "LeaveIncomplete");
        eventually("an Event says so", incomplete).await;
        east.put_back(set).await;
        world.member_says("east", ("Unknown", "Leaving")).await;
        // Whatever ends us meanwhile, leaving goes on.
        world.end(EAST, End::Stop).await;
        world.launch(EAST).await;
        leader.start(Component::ApiServer).await.unwrap();
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn leaving_by_force_asks_nobody() {
    alone(async |world| {
        let (ns, east) = ("force", world.cluster("east"));
        exchanged(world, ns).await;
        let traces = at_leader(world).await;
        let secret: Secret = east.take(SYSTEM, SECRET).await;
        let leave = json!({"data": {LEAVE_KEY: LEAVE_FORCED}});
        east.patch::<ConfigMap>(SYSTEM, membership::NAME, &leave).await;
        let message = world.member_says("east", ("False", "Left")).await;
        assert!(message.contains("freeport join"), "{message}");
        imports_are_gone(world, ns).await;
        eventually("and nothing is noted", || async {
            noted(world).await.map_or(Ok(()), |n| Err(format!("{n:?}")))
        })
        .await;
        assert_eq!(at_leader(world).await, traces, "the leader was not asked");
        east.put_back(secret).await;
        always("it is not joined again", || async { says(east, SYSTEM, ("False", "Left")).await.map(drop) })
            .await;
        let set: ClusterSet = east.take(SYSTEM, SET).await;
        east.put_back(set).await;
        world.member_says("east", CONNECTED).await;
        imported_from_both(world, ns).await;
        world.release(ns).await;
    });
}
