//! Daemons that are killed between any two writes while a cluster leaves and joins (issue 14, B, odd moments).

use std::cell::Cell;

use api::{cluster_set::ClusterSet, label, mcs::ServiceImport};
use e2e::{
    daemon::LEADER,
    fixture::{CLUSTERS, SET, SYSTEM, World, alone},
    seen::{imported, right, says},
    trap::{Side, Trap},
    victim::Victim,
    waiting::eventually,
    watched::Watched,
};
use futures::future::join_all;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;

use super::traces::{CONNECTED, EAST, at_leader, exchanged, left};

const NS: &str = "moments";

/// How often a daemon that meets one trap after the other is killed at the same write: who starts again may have to begin with what it
/// did before (a Lease, a status).
const MOST: usize = 2;

/// Whether a daemon that was killed meets another trap.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Yes,
    No,
}

/// Waits while all these daemons run into such a trap. How many were killed.
async fn killed(victims: &[Victim], trap: &Trap, again: Again, until: impl Future<Output = ()>) -> usize {
    let deaths = &Cell::new(0);
    let dying = join_all(victims.iter().map(|victim| async move {
        let (mut trap, mut falls) = (trap.clone(), Vec::new());
        victim.set(trap.clone());
        loop {
            let fall = victim.falls().await;
            e2e::note!("{} killed: {fall}", victim.name());
            deaths.set(deaths.get() + 1);
            falls.push(fall.write.clone());
            if falls.iter().filter(|write| **write == fall.write).count() == MOST {
                trap.spared.push(fall.write);
            }
            if again == Again::Yes {
                victim.set(trap.clone());
            }
            victim.launch().await;
        }
    }));
    tokio::select! {
        biased;
        _ = dying => {}
        () = until => {}
    }
    join_all(victims.iter().map(Victim::ensure)).await;
    deaths.get()
}

/// What the others import all along, part of which is of the leader's cluster.
struct Others(Vec<(Watched<Service>, Watched<ServiceImport>, Watched<EndpointSlice>)>);

impl Others {
    async fn of(world: &World) -> Self {
        let watched = ["leader", "west"].map(|cluster| async move {
            let cluster = world.cluster(cluster);
            (Watched::of(cluster, NS).await, Watched::of(cluster, NS).await, Watched::of(cluster, NS).await)
        });
        Self(join_all(watched).await)
    }

    /// What east took back did not come back.
    fn nothing_returned(&self) {
        for (_, _, slices) in &self.0 {
            assert_eq!(slices.returned(), vec![]);
        }
    }

    /// Only what east exports may have gone.
    fn stayed(&self) {
        for (services, imports, slices) in &self.0 {
            services.nothing_deleted("an import of others");
            imports.nothing_deleted("an import of others");
            for slice in slices.deleted() {
                let from = slice.labels().get(label::MCS_SOURCE_CLUSTER);
                assert_eq!(from.map(String::as_str), Some("east"), "{slice:?}");
            }
        }
    }
}

/// `east` has left, and the others have only the leader's part.
async fn has_left(world: &World) {
    left(world, NS).await;
    for cluster in ["leader", "west"] {
        eventually("the others go on", || async {
            let seen = imported(world.cluster(cluster), NS, "web").await;
            right(seen, |seen| seen.clusters == ["leader".to_owned()].into() && seen.endpoints.len() == 1)
        })
        .await;
    }
}

/// `east` is a member: everybody imports from both, and all traces are there.
async fn has_joined(world: &World) {
    world.member_says("east", CONNECTED).await;
    for cluster in CLUSTERS {
        eventually("everybody imports from both", || async {
            let seen = imported(world.cluster(cluster), NS, "web").await;
            let seen = right(seen, |seen| seen.endpoints.len() == 2 && seen.clusters.len() == 2);
            seen.map_err(|seen| format!("{seen}; log of east: {}", world.log_tail(EAST)))
        })
        .await;
    }
    eventually("exported", || says(world.cluster("east"), (NS, "web"), "Ready", "True", "Exported")).await;
    eventually("two records, Lease, announce and report", || async {
        let there = at_leader(world).await;
        if there.len() == 5 { Ok(()) } else { Err(format!("{there:?}")) }
    })
    .await;
}

/// `east` leaves and joins while the daemons run into such traps. How many were killed.
async fn leave_and_join(world: &World, victims: &[Victim], trap: &Trap, again: Again) -> usize {
    let east = world.cluster("east");
    let others = Others::of(world).await;
    let set: ClusterSet = east.api(SYSTEM).get(SET).await.unwrap();
    let leaves = async {
        east.delete::<ClusterSet>(SYSTEM, SET).await;
        has_left(world).await;
    };
    let leaving = killed(victims, trap, again, leaves).await;
    others.nothing_returned();
    let joins = async {
        east.put_back(set).await;
        has_joined(world).await;
    };
    let joining = killed(victims, trap, again, joins).await;
    e2e::note!("{trap:?}: {leaving} killed while leaving, {joining} while joining");
    others.stayed();
    leaving + joining
}

#[e2e::test(real)]
fn a_leave_and_a_join_whose_daemons_are_killed_at_every_write_come_to_an_end() {
    alone(async |world| {
        exchanged(world, NS).await;
        world.cluster("west").create_namespace(NS).await;
        has_joined(world).await;
        let victims = [EAST, LEADER, "freeport-member-west"].map(|victim| Victim::of(world, victim));
        let victims = join_all(victims).await;
        let deaths = leave_and_join(world, &victims, &Trap::at(1, Side::After), Again::Yes).await;
        assert!(deaths > 20, "the traps spring at every write: {deaths}");
        if std::env::var("FREEPORT_MOMENTS").is_ok_and(|value| value == "all") {
            for nth in 1.. {
                let mut deaths = 0;
                for side in [Side::Before, Side::After] {
                    deaths += leave_and_join(world, &victims, &Trap::at(nth, side), Again::No).await;
                }
                if deaths == 0 {
                    break;
                }
            }
        }
        join_all(victims.into_iter().map(Victim::free)).await;
        has_joined(world).await;
        world.release(NS).await;
    });
}
