//! A member that is silent for too long: what it exports is withdrawn in its place, that is said before, and it comes back with it.

use std::time::Instant;

use api::{
    ServiceName,
    mcs::{CLUSTERS_REACHABLE, ServiceImport},
    name,
    resource_export::ResourceExport,
};
use e2e::{
    cluster_set::status,
    daemon::{End, LEADER},
    fixture::{AREA, CLUSTERS, SET, World, alone},
    promised::{BACK, promised},
    seen::{event, holds, imported, not_imported, right, says},
    waiting::eventually,
};
use serde_json::json;

const EAST: &str = "freeport-member-east";
/// Does not see the eviction.
const LATE: &str = "freeport-member-leader";
/// Seconds of silence after which exports go, and it is said in the last quarter of them.
const AFTER: &str = "60";

async fn start_leader(world: &World, how: End) {
    world.end(LEADER, how).await;
    let daemon = world.daemon(LEADER).spec.clone();
    world.real().fleet.run(daemon.args(["--evict-after", AFTER])).await.unwrap();
    world.is_there(LEADER).await;
}

/// What the Common Area's ClusterSet says of `east`.
async fn of_east(world: &World) -> Result<Option<String>, String> {
    let clusters = status(world.leader(), AREA).await?.cluster_statuses;
    let east = clusters.into_iter().find(|entry| entry.cluster_id.as_deref() == Some("east"));
    Ok(east.into_iter().flat_map(|entry| entry.conditions).find_map(|c| c.reason))
}

async fn east_is(world: &World, reason: &str) {
    eventually(&format!("east is {reason}"), || async {
        let said = of_east(world).await?;
        if said.as_deref() == Some(reason) { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
}

async fn import_says(world: &World, cluster: &str, ns: &str, reason: &str) {
    eventually(&format!("{cluster} says {reason}"), || async {
        let import = world.cluster(cluster).api::<ServiceImport>(ns).get("web").await.unwrap();
        let conditions = import.status.unwrap_or_default().conditions;
        let said = conditions.into_iter().find(|condition| condition.type_ == CLUSTERS_REACHABLE);
        match said {
            Some(said) if said.reason == reason && said.message.contains("east since 20") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Issue 18. The leader restarts while it counts, and one importer is away when it has counted enough.
#[e2e::test(real)]
fn r58_what_a_member_exports_goes_when_it_is_silent_for_too_long_and_comes_back_with_it() {
    alone(async |world| {
        let ns = &world.namespace("evicted", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        start_leader(world, End::Stop).await;
        east.exported(ns, "web", &["10.1.0.1"]).await;
        east.exported(ns, "alone", &["10.1.0.2"]).await;
        west.exported(ns, "web", &["10.2.0.1"]).await;
        let both = || async { right(imported(west, ns, "web").await, |seen| seen.clusters.len() == 2) };
        let before = eventually("both take part", both).await;
        eventually("the other one is there", || imported(west, ns, "alone")).await;
        eventually("Ready", || says(east, (ns, "web"), "Ready", "True", "Exported")).await;

        let begun = Instant::now();
        world.end(EAST, End::Crash).await;
        // A record that lies about itself is refused, and goes all the same.
        let record = name::service_export("east", &ServiceName::new(ns, "alone"));
        let lie = json!({"spec": {"name": "other"}});
        let _: ResourceExport = world.leader().patch(AREA, &record, &lie).await;
        east_is(world, "Disconnected").await;
        import_says(world, "west", ns, "ClustersKept").await;
        eventually("it is imported there, too", || imported(world.leader(), ns, "alone")).await;
        world.end(LATE, End::Stop).await;
        east_is(world, "EvictionNear").await;
        let clusters = imported(west, ns, "web").await.map(|seen| seen.clusters.len());
        if of_east(world).await.unwrap().as_deref() == Some("EvictionNear") {
            assert_eq!(clusters, Ok(2), "said before anything goes");
        }
        e2e::note!("said before: {:.1} s", begun.elapsed().as_secs_f64());
        eventually("its Event", || event(world.leader(), AREA, SET, "EvictionNear")).await;
        start_leader(world, End::Crash).await;
        east_is(world, "Evicted").await;
        eventually("its Event", || event(world.leader(), AREA, SET, "Evicted")).await;
        let without = || async { right(imported(west, ns, "web").await, |seen| seen.clusters.len() == 1) };
        let seen = eventually("its part is gone", without).await;
        e2e::note!("evicted: {:.1} s", begun.elapsed().as_secs_f64());
        assert_eq!((&seen.vip, seen.addresses("west")), (&before.vip, vec!["10.2.0.1:8080"]));
        eventually("what nobody else exports is gone", || not_imported(west, ns, "alone")).await;
        import_says(world, "west", ns, "ClustersEvicted").await;
        eventually("of its records nothing is left", || holds(world, ns, "web", 3)).await;
        eventually("nor of these", || holds(world, ns, "alone", 1)).await;
        start_leader(world, End::Stop).await;
        world.start(LATE).await;
        let without =
            || async { right(imported(world.leader(), ns, "web").await, |seen| seen.clusters.len() == 1) };
        eventually("its part is gone there, too", without).await;
        eventually("and what nobody else exports", || not_imported(world.leader(), ns, "alone")).await;
        import_says(world, "leader", ns, "ClustersEvicted").await;

        world.launch(EAST).await;
        let contact = eventually("east is heard", || async {
            let present = world.metrics(EAST).await?.sum("freeport_present");
            if present > 0.0 { Ok(Instant::now()) } else { Err("not yet".to_owned()) }
        })
        .await;
        let after = eventually("both take part again", both).await;
        promised("what was evicted is back", contact.elapsed(), BACK);
        assert_eq!((after.vip, after.endpoints), (before.vip, before.endpoints));
        eventually("the other one is there again", || imported(west, ns, "alone")).await;
        east_is(world, "Connected").await;
        eventually("nobody is evicted any more", || holds(world, ns, "alone", 3)).await;
        world.end(LEADER, End::Stop).await;
        world.start(LEADER).await;
        world.release(ns).await;
    });
}
