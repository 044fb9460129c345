//! What a phase costs, by process, API server and write.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use e2e::{
    audit::{self, Mark, Written},
    fixture::CLUSTERS,
    metrics::Metrics,
    waiting::MEASURED,
    world::World,
};
use fleet::Component;

use crate::{
    process,
    run::{Costs, Process, Server, Side},
    set::Set,
};

/// For any wait: with 5,000 Services a busy machine takes minutes.
pub(crate) const LIMIT: Duration = MEASURED.time;
/// Nobody has written for so long: everybody is done.
const A_WHILE: Duration = Duration::from_secs(2);

const REQUESTS: &str = "apiserver_request_total";
const BYTES: &str = "apiserver_request_body_size_bytes_sum";
const KIND: [&str; 3] = ["verb", "resource", "subresource"];

/// Counts from its start to its stop.
pub(crate) struct Meter<'a> {
    set: &'a Set,
    side: Side,
    mark: Mark,
    before: Counts,
    begun: Instant,
}

struct Counts {
    /// By pid, which another process of the same daemon does not have.
    cpu: HashMap<u32, f64>,
    servers: BTreeMap<&'static str, Asked>,
}

struct Asked {
    requests: BTreeMap<String, f64>,
    bytes: BTreeMap<String, f64>,
}

impl<'a> Meter<'a> {
    pub(crate) async fn start(set: &'a Set, side: Side) -> Self {
        let servers = asked(&set.world).await;
        let mut cpu = HashMap::new();
        for (_, pid) in daemons(&set.world).await {
            process::forget_peak(pid);
            cpu.insert(pid, process::cpu_seconds(pid));
        }
        for (_, _, pid) in components(&set.world).await {
            cpu.insert(pid, process::cpu_seconds(pid));
        }
        let before = Counts { cpu, servers };
        Self { set, side, mark: audit::mark(&set.world), before, begun: Instant::now() }
    }

    /// Waits until nobody writes any more: what follows is part of the price.
    pub(crate) async fn stop_when_quiet(self) -> Costs {
        self.set.quiet().await;
        self.stop().await
    }

    pub(crate) async fn stop(self) -> Costs {
        let mut costs = Costs { seconds: self.begun.elapsed().as_secs_f64(), ..Costs::default() };
        let world = &self.set.world;
        let used = |pid: u32| process::cpu_seconds(pid) - self.before.cpu.get(&pid).copied().unwrap_or(0.0);
        for (name, pid) in daemons(world).await {
            let used = Process { cpu_seconds: used(pid), peak_megabytes: process::peak_megabytes(pid) };
            costs.daemons.insert(name, used);
        }
        for (cluster, component, pid) in components(world).await {
            let server: &mut Server = costs.servers.entry(cluster.to_owned()).or_default();
            server.cpu_seconds.insert(component.to_string(), used(pid));
        }
        for (cluster, now) in asked(world).await {
            let before = &self.before.servers[cluster];
            let server = costs.servers.entry(cluster.to_owned()).or_default();
            server.requests = more(&now.requests, &before.requests);
            server.bytes = more(&now.bytes, &before.bytes);
        }
        for written in audit::written(world, &self.mark).iter().filter(|written| is_of(self.side, written)) {
            let of_cluster = costs.writes.entry(written.cluster.clone()).or_default();
            *of_cluster.entry(written.what()).or_default() += 1;
        }
        costs
    }
}

/// Whether a write is the work of this side. That of the floor has Namespaces of its own; what its users write there is counted, too.
fn is_of(side: Side, written: &Written) -> bool {
    match side {
        Side::Freeport => written.is_ours(),
        Side::Floor => [side.namespace(), side.area()].contains(&written.namespace()),
    }
}

/// How many writes either side makes in a while.
pub(crate) async fn writes_of_a_while(world: &World) -> usize {
    let mark = audit::mark(world);
    tokio::time::sleep(A_WHILE).await;
    let of_either = |written: &&Written| is_of(Side::Freeport, written) || is_of(Side::Floor, written);
    audit::written(world, &mark).iter().filter(of_either).count()
}

/// Names and processes of the daemons that run.
pub(crate) async fn daemons(world: &World) -> Vec<(String, u32)> {
    let mut running = Vec::new();
    for daemon in &world.real().daemons {
        let process = world.real().fleet.process(&daemon.spec.name).await.unwrap();
        let process = process.filter(|process| process.pid().is_some());
        if let Some(process) = process
            && process.is_running().await.unwrap()
        {
            running.push((daemon.spec.name.clone(), process.pid().unwrap()));
        }
    }
    running
}

async fn components(world: &World) -> Vec<(&'static str, Component, u32)> {
    let mut all = Vec::new();
    for cluster in CLUSTERS {
        for component in Component::CONTROL_PLANE {
            let name = world.real().fleet.cluster(cluster).unwrap().process_name(component);
            let process = world.real().fleet.process(&name).await.unwrap().unwrap();
            all.push((cluster, component, process.pid().unwrap()));
        }
    }
    all
}

async fn asked(world: &World) -> BTreeMap<&'static str, Asked> {
    let mut servers = BTreeMap::new();
    for cluster in CLUSTERS {
        let metrics = Metrics::of_api_server(&world.cluster(cluster).client).await.unwrap();
        let (requests, bytes) = (metrics.by_all(REQUESTS, &KIND), metrics.by_all(BYTES, &KIND[..2]));
        servers.insert(cluster, Asked { requests, bytes });
    }
    servers
}

/// What was added.
fn more(now: &BTreeMap<String, f64>, before: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let added = now.iter().map(|(kind, count)| {
        let had = before.get(kind).copied().unwrap_or(0.0);
        (kind.trim_end().to_owned(), count - had)
    });
    added.filter(|(_, count)| *count > 0.0).collect()
}
