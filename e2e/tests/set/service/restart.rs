//! Daemons that stop and start again: nothing is written for that alone.

use std::time::Duration;

use e2e::{
    audit::writes_while,
    daemon::{DAEMONS, End},
    fixture::{CLUSTERS, World, alone},
    seen::{imported, right, says},
    waiting::eventually,
};

async fn restart(world: &World, how: End) {
    for daemon in DAEMONS {
        world.end(daemon, how).await;
        world.start(daemon).await;
    }
}

#[e2e::test]
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
        // What an earlier test changed is put right by the first restart.
        restart(world, End::Stop).await;
        world.settled().await;
        for how in [End::Stop, End::Crash] {
            let restarted = async || {
                restart(world, how).await;
                tokio::time::sleep(Duration::from_secs(3)).await;
            };
            let writes = writes_while(world, restarted).await;
            let logs = || DAEMONS.map(|daemon| format!("{daemon}:\n{}", world.log_tail(daemon))).join("\n");
            assert!(writes.is_empty(), "{how:?}: {writes:#?}\n{}", logs());
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
