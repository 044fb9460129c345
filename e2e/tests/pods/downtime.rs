//! Traffic goes on while whatever set it up is away.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::{ask::Protocol::Http, fixture::SYSTEM, say::say, shared::RUNTIME};
use fleet::{Component, dns::clusterset_name};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::pods::world::{CLUSTERS, Pods, alone};

/// Between two questions of a client that asks all the time.
const PAUSE: Duration = Duration::from_millis(20);

#[test]
fn traffic_never_stops() {
    alone(async |world| {
        let ns = "trouble";
        world.namespace_everywhere(ns).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let (in_east, in_west) = tokio::join!(east.run_service(ns, "web", 2), west.run_service(ns, "web", 1));
        east.export(ns, "web").await;
        west.export(ns, "web").await;
        let mut clients = Vec::new();
        for cluster in CLUSTERS {
            let vip = world.vip(cluster, ns, "web").await;
            for host in [vip, clusterset_name(ns, "web")] {
                world.answer(cluster, Http, (&host, 80), &(&in_east | &in_west)).await;
                clients.push(Client::start(world, cluster, host));
            }
        }

        for cluster in CLUSTERS {
            world.cluster(cluster).replace_pods(SYSTEM).await;
            world.daemons_run(cluster).await;
        }
        for cluster in world.fleet.clusters() {
            for component in [Component::Kubelet, Component::Containerd] {
                cluster.kill(component).await.unwrap();
                cluster.start(component).await.unwrap();
            }
        }
        for cluster in CLUSTERS {
            world.daemons_run(cluster).await;
        }
        assert_eq!(east.servers(ns, "web", 2).await, in_east, "the servers are the same");
        // The new daemons go on from there.
        let _: Deployment = west.patch(ns, "web", &json!({"spec": {"replicas": 2}})).await;
        let all = &in_east | &west.servers(ns, "web", 2).await;
        for cluster in CLUSTERS {
            world.answer(cluster, Http, (&clusterset_name(ns, "web"), 80), &all).await;
        }
        for client in clients {
            client.end().await;
        }
        world.release(ns).await;
    });
}

#[test]
fn r61_endpoints_follow_while_the_leader_is_stopped() {
    alone(async |world| {
        let ns = "leaderless";
        world.namespace_everywhere(ns).await;
        let east = world.cluster("east");
        let servers = east.run_service(ns, "web", 1).await;
        east.export(ns, "web").await;
        let vip = world.vip("west", ns, "web").await;
        world.answer("west", Http, (&vip, 80), &servers).await;

        let replicas = |number: u32| json!({"spec": {"replicas": number}});
        let leader = world.cluster("leader");
        let _: Deployment = leader.patch(SYSTEM, "freeport-leader", &replicas(0)).await;
        leader.pods_end(SYSTEM, "app.kubernetes.io/name=freeport-leader").await;
        for number in [3, 1] {
            let _: Deployment = east.patch(ns, "web", &replicas(number)).await;
            let servers = east.servers(ns, "web", number as usize).await;
            world.answer("west", Http, (&vip, 80), &servers).await;
        }
        let _: Deployment = leader.patch(SYSTEM, "freeport-leader", &replicas(1)).await;
        world.daemons_run("leader").await;
        world.release(ns).await;
    });
}

/// Asks all the time.
struct Client {
    name: String,
    is_over: Arc<AtomicBool>,
    asking: JoinHandle<(u32, Vec<String>)>,
}

impl Client {
    fn start(world: &'static Pods, cluster: &'static str, host: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (name, over) = (format!("{cluster} asking {host}"), Arc::clone(&is_over));
        let asking = RUNTIME.spawn(async move {
            let (mut asked, mut failures) = (0, Vec::new());
            while !over.load(Ordering::Relaxed) {
                asked += 1;
                if let Err(error) = world.ask(cluster, Http, (&host, 80)).await {
                    failures.push(format!("question {asked}: {error:?}"));
                }
                tokio::time::sleep(PAUSE).await;
            }
            (asked, failures)
        });
        Self { name, is_over, asking }
    }

    /// Every question was answered.
    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (asked, failures) = self.asking.await.unwrap();
        say(&format!("{}: {asked} questions, {} not answered", self.name, failures.len()));
        assert!(asked > 0 && failures.is_empty(), "{}: {failures:?}", self.name);
    }
}
