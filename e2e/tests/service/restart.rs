//! Daemons that stop and start again: nothing is written for that alone, and nothing said meanwhile is missed.

use std::time::Duration;

use api::{resource_export::ResourceExport, resource_import::ResourceImport};
use fleet::Exit;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

use crate::{
    audit,
    fixture::{AREA, CLUSTERS, VOUCHED, World, alone, eventually, log_tail, within},
    seen::{imported, not_imported, records, right, says},
};

const DAEMONS: [&str; 4] =
    ["freeport-leader-leader", "freeport-member-leader", "freeport-member-east", "freeport-member-west"];

async fn stop(world: &World, daemon: &str) {
    let process = world.fleet.process(daemon).await.unwrap().unwrap();
    let exit = process.stop().await.unwrap();
    assert_eq!(exit, Exit::Status(0), "{daemon}: {}", log_tail(world, daemon));
}

async fn kill(world: &World, daemon: &str) {
    world.fleet.process(daemon).await.unwrap().unwrap().kill().await.unwrap();
}

/// Starts the daemon and waits until it has looked at everything once.
async fn start(world: &World, daemon: &str) {
    world.daemon(daemon).start(&world.fleet).await.unwrap();
    let controllers = if daemon.contains("leader-") {
        "freeport_queue_keys{controller=\"merge\""
    } else {
        "freeport_present"
    };
    eventually(&format!("{daemon} is there again"), || async {
        let listening = tokio::net::TcpStream::connect(world.daemon(daemon).listen).await;
        listening.map_err(|e| format!("{e}; its log: {}", log_tail(world, daemon)))?;
        let looked = world.metric(daemon, "freeport_reconcile_total").await;
        let present = world.metric(daemon, "freeport_present").await;
        if looked > 0.0 && present > 0.0 {
            Ok(())
        } else {
            Err(format!("{controllers}: {looked} looks, present {present}"))
        }
    })
    .await;
}

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
        settled(world).await;
        for crash in [false, true] {
            let mark = audit::mark(world);
            for daemon in DAEMONS {
                if crash {
                    kill(world, daemon).await
                } else {
                    stop(world, daemon).await
                }
                start(world, daemon).await;
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(audit::writes(world, &mark), Vec::<String>::new(), "crash: {crash}");
        }
        // And they are not just idle.
        world.cluster("east").unexport(&ns, "web").await;
        for name in CLUSTERS {
            eventually(&format!("east left {name}"), || async {
                right(imported(world.cluster(name), &ns, "web").await, |seen| seen.clusters.len() == 1)
            })
            .await;
        }
        for name in CLUSTERS {
            world.cluster(name).delete_namespace(&ns).await;
        }
    });
}

/// Nothing has been written for two seconds.
async fn settled(world: &World) {
    eventually("settled", || async {
        let mark = audit::mark(world);
        tokio::time::sleep(Duration::from_secs(2)).await;
        match audit::writes(world, &mark) {
            writes if writes.is_empty() => Ok(()),
            writes => Err(format!("{writes:?}")),
        }
    })
    .await;
}

#[test]
fn what_happens_while_the_leader_is_down_is_caught_up_with() {
    alone(async |world| {
        let ns = world.namespace("leader-down", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "stays", &["10.1.0.1"]).await;
        east.exported(&ns, "goes", &["10.1.0.2"]).await;
        for service in ["stays", "goes"] {
            eventually(service, || imported(west, &ns, service)).await;
        }
        kill(world, "freeport-leader-leader").await;
        east.unexport(&ns, "goes").await;
        east.exported(&ns, "new", &["10.1.0.3"]).await;
        east.replace_slice(&ns, "stays", "stays-1", &["10.1.0.9"], &[("http", 8080)]).await;
        eventually("endpoints do not pass through the leader", || async {
            right(imported(west, &ns, "stays").await, |seen| seen.addresses("east") == ["10.1.0.9:8080"])
        })
        .await;
        start(world, "freeport-leader-leader").await;
        eventually("gone", || not_imported(west, &ns, "goes")).await;
        eventually("new", || imported(west, &ns, "new")).await;
        for name in CLUSTERS {
            world.cluster(name).delete_namespace(&ns).await;
        }
    });
}

#[test]
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

        kill(world, "freeport-member-west").await;
        east.unexport(&ns, "goes").await;
        east.delete::<EndpointSlice>(&ns, "shrinks-2").await;
        east.exported(&ns, "new", &["10.1.0.5"]).await;
        west.unexport(&ns, "mine").await;
        eventually("the import of what goes is gone from the Common Area", || async {
            match records(world, &ns, "goes").await {
                records if records.is_empty() => Ok(()),
                records => Err(format!("{records:?}")),
            }
        })
        .await;
        imported(west, &ns, "goes").await.expect("nobody is there to take it away");
        start(world, "freeport-member-west").await;
        eventually("new", || imported(west, &ns, "new")).await;
        eventually("what was ours is withdrawn", || not_imported(east, &ns, "mine")).await;
        // Nobody told west that these went; it waits until their writers vouch for it.
        within(VOUCHED, "gone", || not_imported(west, &ns, "goes")).await;
        within(VOUCHED, "shrunk", || async {
            right(imported(west, &ns, "shrinks").await, |seen| seen.addresses("east") == ["10.1.0.3:8080"])
        })
        .await;
        imported(west, &ns, "stays").await.expect("stays");
        for name in CLUSTERS {
            world.cluster(name).delete_namespace(&ns).await;
        }
    });
}

#[test]
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
        kill(world, "freeport-member-east").await;
        for record in records(world, &ns, "web").await {
            if leader.api::<ResourceImport>(AREA).get_opt(&record).await.unwrap().is_none() {
                leader.delete::<ResourceExport>(AREA, &record).await;
            }
        }
        crate::fixture::always("the import stays", || async {
            right(imported(west, &ns, "web").await, |seen| *seen == before).map(drop)
        })
        .await;
        start(world, "freeport-member-east").await;
        eventually("the records are back", || async {
            match records(world, &ns, "web").await {
                records if records.len() == 3 => Ok(()),
                records => Err(format!("{records:?}")),
            }
        })
        .await;
        let after = imported(west, &ns, "web").await.unwrap();
        assert_eq!(after, before);
        let export = leader
            .api::<ResourceImport>(AREA)
            .get(&api::name::service_import(&api::ServiceName::new(&ns, "web")))
            .await
            .unwrap();
        assert!(export.uid().is_some());
        for name in CLUSTERS {
            world.cluster(name).delete_namespace(&ns).await;
        }
    });
}
