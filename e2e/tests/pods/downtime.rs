//! Traffic goes on while whatever set it up is away.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::{
    ask::{Protocol::Http, Silence},
    fixture::SYSTEM,
    say::say,
    shared::RUNTIME,
};
use fleet::{Component, agnhost::SERVICE_PORT, dns::clusterset_name};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::pods::{
    client::Client,
    world::{CLUSTERS, Pods, alone},
};

/// So many answers to a Pod may come late in all.
const LATE: u32 = 2;
/// Between two questions of a client that asks all the time.
const PAUSE: Duration = Duration::from_millis(20);

#[e2e::test]
fn traffic_never_stops() {
    alone(async |world| {
        let ns = "trouble";
        world.namespace_everywhere(ns).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let (in_east, in_west) = tokio::join!(east.run_service(ns, "web", 2), west.run_service(ns, "web", 1));
        east.export(ns, "web").await;
        west.export(ns, "web").await;
        let (mut clients, mut askers) = (Vec::new(), Vec::new());
        for cluster in CLUSTERS {
            let (vip, name) = (world.vip(cluster, ns, "web").await, clusterset_name(ns, "web"));
            for host in [&vip, &name] {
                world.answer(cluster, Http, (host, SERVICE_PORT), &(&in_east | &in_west)).await;
            }
            let mut client =
                Client::start(world, cluster, SocketAddr::new(vip.parse().unwrap(), SERVICE_PORT)).await;
            client.enter(cluster).await;
            clients.push(client);
            askers.push(Asker::start(world, cluster, name));
        }

        for cluster in CLUSTERS {
            world.cluster(cluster).replace_pods(SYSTEM).await;
            world.daemons_run(cluster).await;
        }
        for cluster in world.real().fleet.clusters() {
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
            world.answer(cluster, Http, (&clusterset_name(ns, "web"), SERVICE_PORT), &all).await;
        }
        for client in clients {
            for failures in client.end() {
                assert_eq!(failures.why, Vec::<String>::new(), "{}", failures.phase);
            }
        }
        for asker in askers {
            asker.end().await;
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r61_endpoints_follow_while_the_leader_is_stopped() {
    alone(async |world| {
        let ns = "leaderless";
        world.namespace_everywhere(ns).await;
        let east = world.cluster("east");
        let servers = east.run_service(ns, "web", 1).await;
        east.export(ns, "web").await;
        let vip = world.vip("west", ns, "web").await;
        world.answer("west", Http, (&vip, SERVICE_PORT), &servers).await;

        let replicas = |number: u32| json!({"spec": {"replicas": number}});
        let leader = world.cluster("leader");
        let _: Deployment = leader.patch(SYSTEM, "freeport-leader", &replicas(0)).await;
        leader.pods_end(SYSTEM, "app.kubernetes.io/name=freeport-leader").await;
        for number in [3, 1] {
            let _: Deployment = east.patch(ns, "web", &replicas(number)).await;
            let servers = east.servers(ns, "web", number as usize).await;
            world.answer("west", Http, (&vip, SERVICE_PORT), &servers).await;
        }
        let _: Deployment = leader.patch(SYSTEM, "freeport-leader", &replicas(1)).await;
        world.daemons_run("leader").await;
        world.release(ns).await;
    });
}

/// A Pod that asks for a name all the time.
struct Asker {
    name: String,
    is_over: Arc<AtomicBool>,
    asking: JoinHandle<(u32, Vec<String>)>,
}

impl Asker {
    fn start(world: &'static Pods, cluster: &'static str, host: String) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (name, over) = (format!("{cluster} asking {host}"), Arc::clone(&is_over));
        let asking = RUNTIME.spawn(async move {
            let (mut answered, mut failures, mut late) = (0, Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                match world.ask(cluster, Http, (&host, SERVICE_PORT)).await {
                    Ok(_) => answered += 1,
                    // A Pod gives up after five seconds, in which a busy machine may do nothing.
                    Err(Silence::NoAnswer(why)) if why.contains("Client.Timeout") && late < LATE => late += 1,
                    Err(Silence::NoAnswer(why)) => failures.push(format!("after {answered} answers: {why}")),
                    // Its kubelet has been killed. The clients on nodes go on.
                    Err(Silence::NotAsked(_)) => {}
                }
                tokio::time::sleep(PAUSE).await;
            }
            (answered, failures)
        });
        Self { name, is_over, asking }
    }

    /// Every question was answered.
    async fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (answered, failures) = self.asking.await.unwrap();
        say(&format!("{}: {answered} answers, {} times none", self.name, failures.len()));
        assert!(answered > 0 && failures.is_empty(), "{}: {failures:?}", self.name);
    }
}
