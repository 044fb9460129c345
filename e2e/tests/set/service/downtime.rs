//! Daemons that are down for a while: nothing said meanwhile is missed, nothing that vanishes meanwhile is believed.

use api::{resource_export::ResourceExport, resource_import::ResourceImport};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use e2e::{
    daemon::{End, LEADER},
    fixture::{AREA, CLUSTERS, alone},
    seen::{holds, imported, not_imported, records, right},
    waiting::{VOUCHED, always, eventually, within},
};

#[e2e::test]
fn what_happens_while_the_leader_is_down_is_caught_up_with() {
    alone(async |world| {
        let ns = world.namespace("leader-down", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "stays", &["10.1.0.1"]).await;
        east.exported(&ns, "goes", &["10.1.0.2"]).await;
        for service in ["stays", "goes"] {
            eventually(service, || imported(west, &ns, service)).await;
        }
        world.end(LEADER, End::Crash).await;
        east.unexport(&ns, "goes").await;
        east.exported(&ns, "new", &["10.1.0.3"]).await;
        east.replace_slice(&ns, "stays", "stays-1", &["10.1.0.9"], &[("http", 8080)]).await;
        eventually("endpoints do not pass through the leader", || async {
            right(imported(west, &ns, "stays").await, |seen| seen.addresses("east") == ["10.1.0.9:8080"])
        })
        .await;
        world.start(LEADER).await;
        eventually("gone", || not_imported(west, &ns, "goes")).await;
        eventually("new", || imported(west, &ns, "new")).await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn what_happens_while_a_member_is_down_is_caught_up_with() {
    alone(async |world| {
        let ns = world.namespace("member-down", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for (service, address) in [("stays", "10.1.0.1"), ("goes", "10.1.0.2"), ("shrinks", "10.1.0.3")] {
            east.exported(&ns, service, &[address]).await;
        }
        east.slice(&ns, "shrinks", "shrinks-2", &["10.1.0.4"], &[("http", 8080)]).await;
        west.exported(&ns, "mine", &["10.2.0.1"]).await;
        for (service, endpoints) in [("stays", 1), ("goes", 1), ("shrinks", 2)] {
            eventually(service, || async {
                right(imported(west, &ns, service).await, |seen| seen.addresses("east").len() == endpoints)
            })
            .await;
        }
        eventually("mine", || imported(east, &ns, "mine")).await;
        // A record that is younger than the last renewal of its Lease could be from before a restore.
        world.vouches("freeport-member-west").await;

        world.end("freeport-member-west", End::Crash).await;
        east.unexport(&ns, "goes").await;
        east.delete::<EndpointSlice>(&ns, "shrinks-2").await;
        east.exported(&ns, "new", &["10.1.0.5"]).await;
        west.unexport(&ns, "mine").await;
        eventually("what goes is gone from the Common Area", || holds(world, &ns, "goes", 0)).await;
        imported(west, &ns, "goes").await.expect("nobody is there to take it away");
        world.start("freeport-member-west").await;
        eventually("new", || imported(west, &ns, "new")).await;
        eventually("what was ours is withdrawn", || not_imported(east, &ns, "mine")).await;
        // Nobody told west that these went; it waits until their writers vouch for it.
        within(VOUCHED, "gone", || not_imported(west, &ns, "goes")).await;
        within(VOUCHED, "shrunk", || async {
            right(imported(west, &ns, "shrinks").await, |seen| seen.addresses("east") == ["10.1.0.3:8080"])
        })
        .await;
        imported(west, &ns, "stays").await.expect("stays");
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_record_that_vanishes_while_its_member_is_down_takes_nothing_away() {
    alone(async |world| {
        let ns = world.namespace("vanish", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        // Complete, that is: the slice may come a moment after the import.
        let before = eventually("imported", || async {
            right(imported(west, &ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        world.end("freeport-member-east", End::Crash).await;
        for record in records(world, &ns, "web").await {
            if leader.api::<ResourceImport>(AREA).get_opt(&record).await.unwrap().is_none() {
                leader.delete::<ResourceExport>(AREA, &record).await;
            }
        }
        always("the import stays", || async {
            right(imported(west, &ns, "web").await, |seen| *seen == before).map(drop)
        })
        .await;
        world.start("freeport-member-east").await;
        eventually("the records are back", || holds(world, &ns, "web", 3)).await;
        assert_eq!(imported(west, &ns, "web").await, Ok(before));
        world.release(&ns).await;
    });
}
