//! Leaving: nothing remains on either side, whatever happens meanwhile; and nothing is left that nobody decided to leave.

use api::{cluster_set::ClusterSet, membership};
use fleet::Component;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use crate::fixture::{AREA, SECRET, SET, SYSTEM, alone, always, eventually};

#[test]
fn a_cluster_set_that_is_deleted_is_left_and_one_created_again_is_joined() {
    alone(async |world| {
        world.exchanged("leaves").await;
        let mut set: ClusterSet = world.east.delete(SYSTEM, SET).await;
        world.left("leaves").await;
        let (services, slices, imports) = world.leader.imported("leaves").await;
        assert_eq!((services.len(), slices, imports), (1, vec!["leader".to_owned()], 1), "others go on");
        world.event(&world.east, SYSTEM, membership::NAME, "Left").await;

        // Nothing is noted before it worked: a mistake can be mended in place.
        set.spec.namespace = Some("misnamed".into());
        world.east.create(set).await;
        let message = world.says("False", "Forbidden").await;
        assert!(message.contains("misnamed"), "{message}");
        world.east.patch::<ClusterSet>(SYSTEM, SET, json!({"spec": {"namespace": AREA}})).await;
        world.connected().await;
        world.imported("leaves").await;
    });
}

#[test]
fn a_cluster_set_that_is_deleted_while_we_are_away_is_left_when_we_are_back() {
    alone(async |world| {
        world.exchanged("away").await;
        world.stop("freeport-member-east").await;
        let set: ClusterSet = world.east.delete(SYSTEM, SET).await;
        world.start("freeport-member-east").await;
        world.left("away").await;
        world.east.create(set).await;
        world.imported("away").await;
    });
}

#[test]
fn a_cluster_set_that_vanishes_with_its_crd_is_not_left() {
    alone(async |world| {
        world.exchanged("vanishes").await;
        let before = world.imported("vanishes").await;
        let set = world.east.get::<ClusterSet>(SYSTEM, SET).await.unwrap();
        let crd = world.east.delete_crd("clustersets.multicluster.crd.antrea.io").await;
        world.event(&world.east, SYSTEM, membership::NAME, "ClusterSetVanished").await;
        let stays = async || {
            let (services, slices, imports) = world.east.imported("vanishes").await;
            let traces = world.traces().await;
            let note = world.east.get::<ConfigMap>(SYSTEM, membership::NAME).await;
            if services == std::slice::from_ref(&before)
                && slices.len() == 2
                && imports == 1
                && traces.len() >= 4
                && note.is_some_and(|note| note.data.is_some_and(|d| !d.contains_key("leave")))
            {
                return Ok(());
            }
            Err(format!("{services:?} {slices:?} {imports} {traces:?}"))
        };
        always("nothing is removed", stays).await;
        world.stop("freeport-member-east").await;
        world.east.create_crd(crd).await;
        world.start("freeport-member-east").await;
        always("nor by the next one, though the CRD is there again", stays).await;
        world.east.create(set).await;
        world.connected().await;
        assert_eq!(world.imported("vanishes").await, before);
    });
}

#[test]
fn without_the_leader_the_imports_go_at_once_and_the_rest_when_it_is_back() {
    alone(async |world| {
        world.exchanged("alone").await;
        let leader = world.fleet.cluster("leader").unwrap();
        leader.stop(Component::ApiServer).await.unwrap();
        let set: ClusterSet = world.east.delete(SYSTEM, SET).await;
        eventually("the imports are gone", async || {
            let seen = world.east.imported("alone").await;
            if seen.0.is_empty() && seen.1.is_empty() && seen.2 == 0 {
                Ok(())
            } else {
                Err(format!("{seen:?}"))
            }
        })
        .await;
        world.event(&world.east, SYSTEM, membership::NAME, "LeaveIncomplete").await;
        world.east.create(set).await;
        world.says("Unknown", "Leaving").await;
        // Whatever ends us meanwhile, leaving goes on.
        world.stop("freeport-member-east").await;
        world.start("freeport-member-east").await;
        leader.start(Component::ApiServer).await.unwrap();
        world.connected().await;
        world.imported("alone").await;
    });
}

#[test]
fn leaving_by_force_asks_nobody() {
    alone(async |world| {
        world.exchanged("force").await;
        let traces = world.traces().await;
        let secret: Secret = world.east.delete(SYSTEM, SECRET).await;
        let leave = json!({"data": {membership::LEAVE_KEY: membership::LEAVE_FORCED}});
        world.east.patch::<ConfigMap>(SYSTEM, membership::NAME, leave).await;
        let message = world.says("False", "Left").await;
        assert!(message.contains("join again"), "{message}");
        eventually("here nothing remains", async || {
            let seen = world.east.imported("force").await;
            let note = world.east.get::<ConfigMap>(SYSTEM, membership::NAME).await;
            if seen.0.is_empty() && seen.1.is_empty() && seen.2 == 0 && note.is_none() {
                return Ok(());
            }
            Err(format!("{seen:?} {note:?}"))
        })
        .await;
        assert_eq!(world.traces().await, traces, "the leader was not asked");
        world.east.create(secret).await;
        always("it is not joined again", async || {
            let status = world.east.set_status(SYSTEM).await?;
            let reason = status.conditions[0].reason.clone();
            if reason.as_deref() == Some("Left") { Ok(()) } else { Err(format!("{reason:?}")) }
        })
        .await;
        let set: ClusterSet = world.east.delete(SYSTEM, SET).await;
        world.east.create(set).await;
        world.connected().await;
        world.imported("force").await;
    });
}
