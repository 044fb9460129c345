//! Daemons that stop and start again: nothing is written for that alone.

use std::time::Duration;

use e2e::{
    audit,
    daemon::{DAEMONS, End},
    fixture::{CLUSTERS, alone},
    seen::{imported, right, says},
    waiting::eventually,
};

#[test]
fn a_restart_writes_nothing_but_leases() {
    alone(async |world| {
        let ns = world.namespace("restart", &CLUSTERS).await;
        for (cluster, address) in [("east", "10.1.0.1"), ("west", "10.2.0.1")] {
            world.cluster(cluster).exported(&ns, "web", &[address]).await;
        }
        for name in CLUSTERS {
            eventually(&format!("both in {name}"), || async {
                right(imported(world.cluster(name), &ns, "web").await, |seen| seen.endpoints.len() == 2)
            })
            .await;
        }
        for name in ["east", "west"] {
            eventually("Ready", || says(world.cluster(name), (&ns, "web"), "Ready", "True", "Exported"))
                .await;
        }
        world.settled().await;
        for how in [End::Stop, End::Crash] {
            let mark = audit::mark(world);
            for daemon in DAEMONS {
                world.end(daemon, how).await;
                world.start(daemon).await;
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(audit::writes(world, &mark), Vec::<String>::new(), "{how:?}");
        }
        // And they are not just idle.
        world.cluster("east").unexport(&ns, "web").await;
        for name in CLUSTERS {
            eventually(&format!("east left {name}"), || async {
                right(imported(world.cluster(name), &ns, "web").await, |seen| seen.clusters.len() == 1)
            })
            .await;
        }
        world.release(&ns).await;
    });
}
