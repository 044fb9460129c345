//! Several replicas of the daemons: one is active, the others stand by and take its place.

mod pair;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{
    audit::{self, Mark, Written},
    chaos::traces::{Trace, by_deposed},
    daemon::LEADER,
    fixture::{CLUSTERS, World, alone},
    promised::{HANDOVER, TAKEOVER, promised},
    seen::{Imported, imported, right},
    waiting::eventually,
};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::task::JoinSet;

use self::pair::Pair;

const MEMBER: &str = "freeport-member-east";
const SERVICE: &str = "web";
/// After a change got through, what it asks for has been written for so long.
const QUIET: Duration = Duration::from_secs(3);

/// What runs until it is told to stop.
type Churning = (Arc<AtomicBool>, JoinSet<()>);

/// Has the leader and a member something to write all the time: Services that come and go, whose names begin so.
fn churn(world: &'static World, ns: &str, prefix: &'static str) -> Churning {
    let (stop, ns) = (Arc::new(AtomicBool::new(false)), ns.to_owned());
    let (mut tasks, stop_of) = (JoinSet::new(), stop.clone());
    tasks.spawn(async move {
        let east = world.cluster("east");
        for turn in 0.. {
            if stop_of.load(Ordering::Relaxed) {
                return;
            }
            east.exported(&ns, &format!("{prefix}-{turn}"), &["10.1.1.1"]).await;
            if let Some(before) = i32::checked_sub(turn, 3).filter(|turn| *turn >= 0) {
                east.unexport(&ns, &format!("{prefix}-{before}")).await;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    (stop, tasks)
}

async fn stop((stop, mut tasks): Churning) {
    stop.store(true, Ordering::Relaxed);
    while tasks.join_next().await.is_some() {}
}

/// Runs this, while at no time two replicas of a daemon say that they are active.
async fn never_two(pairs: &[Pair], happens: impl Future<Output = ()>) {
    let watched = async {
        loop {
            for pair in pairs {
                assert!(pair.active().await < 2, "two replicas are active by {}", pair.lease);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = happens => {}
        () = watched => {}
    }
}

/// Since then, whatever was carried out was of the replica that was active.
fn nobody_wrote_deposed(world: &World, since: &Mark) {
    let written = audit::written(world, since);
    let done = written.iter().filter(|write| write.changes_something() && write.is_done());
    let traces: Vec<_> = done.map(Trace::from).collect();
    assert_eq!(by_deposed(&traces), Vec::<String>::new(), "by a replica that is not the active one");
}

/// Changes the endpoint of the Service in `east`, and waits until `west` has that; as it is imported then.
async fn gets_through(world: &World, ns: &str, address: &str) -> Imported {
    let (east, west) = (world.cluster("east"), world.cluster("west"));
    east.replace_slice(ns, SERVICE, "web-1", &[address], &[("http", 8080)]).await;
    let want = format!("{address}:8080");
    eventually("a change gets through", || async {
        right(imported(west, ns, SERVICE).await, |seen| seen.addresses("east") == [want.as_str()])
    })
    .await
}

/// Somebody deletes the Leases of both, of which the second ones are active, and puts older ones back, whose holders have ended.
async fn leases_are_lost(world: &World, ns: &str, pairs: &[Pair; 2], older: &[Lease; 2]) {
    for pair in pairs {
        pair.lease_is_deleted(1).await;
    }
    gets_through(world, ns, "10.1.0.8").await;
    let restored = Instant::now();
    for (pair, older) in pairs.iter().zip(older) {
        pair.lease_is_restored(older, 1).await;
    }
    for pair in pairs {
        pair.becomes_active(0).await;
    }
    e2e::note!(
        "an older Lease: the other replicas are active after {:.1} s",
        restored.elapsed().as_secs_f64()
    );
}

#[e2e::test]
fn of_several_replicas_one_writes_and_another_takes_its_place() {
    alone(async |world| {
        let ns = world.namespace("replicas", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, SERVICE, &["10.1.0.1"]).await;
        let before = eventually("imported", || imported(west, &ns, SERVICE)).await;
        let begun = audit::mark(world);
        let pairs = [Pair::of(world, LEADER).await, Pair::of(world, MEMBER).await];
        let older = [pairs[0].lease().await.unwrap(), pairs[1].lease().await.unwrap()];
        gets_through(world, &ns, "10.1.0.2").await;
        let churning = churn(world, &ns, "comes");

        let killed = Instant::now();
        for pair in &pairs {
            pair.kill(0).await;
        }
        for pair in &pairs {
            pair.becomes_active(1).await;
        }
        promised("killed: the other replicas are active", killed.elapsed(), TAKEOVER);
        gets_through(world, &ns, "10.1.0.3").await;
        for pair in &pairs {
            pair.start(0).await;
            pair.stands_by(0).await;
        }

        for pair in &pairs {
            let stopped = Instant::now();
            pair.stop(1).await;
            pair.becomes_active(0).await;
            promised("stopped: the other replica is active", stopped.elapsed(), HANDOVER);
        }
        gets_through(world, &ns, "10.1.0.4").await;
        for pair in &pairs {
            pair.start(1).await;
            pair.stands_by(1).await;
        }

        // What is under way at that moment is bound to what it was about, and may arrive. So there is nothing.
        stop(churning).await;
        gets_through(world, &ns, "10.1.0.5").await;
        tokio::time::sleep(QUIET).await;
        let paused = Instant::now();
        for pair in &pairs {
            pair.pause(0, true).await;
        }
        for pair in &pairs {
            pair.becomes_active(1).await;
        }
        promised("paused: the other replicas are active", paused.elapsed(), TAKEOVER);
        let churning = churn(world, &ns, "later");
        gets_through(world, &ns, "10.1.0.6").await;
        let mark = audit::mark(world);
        for pair in &pairs {
            pair.pause(0, false).await;
        }
        for pair in &pairs {
            pair.loses(0).await;
        }
        gets_through(world, &ns, "10.1.0.7").await;
        let written = audit::written(world, &mark);
        let by = |replica: &str| -> Vec<String> {
            let its = written.iter().filter(|write| write.agent().ends_with(replica));
            its.map(Written::what).collect()
        };
        assert_eq!(by("-a)"), Vec::<String>::new(), "who was paused writes nothing more");
        assert!(!by("-b)").is_empty(), "the log tells replicas apart");

        for pair in &pairs {
            pair.start(0).await;
            pair.stands_by(0).await;
        }
        never_two(&pairs, leases_are_lost(world, &ns, &pairs, &older)).await;
        let after = gets_through(world, &ns, "10.1.0.9").await;
        nobody_wrote_deposed(world, &begun);
        assert_eq!((&before.vip, &before.import_uid), (&after.vip, &after.import_uid));

        stop(churning).await;
        for pair in pairs {
            pair.free().await;
        }
        world.release(&ns).await;
    });
}
