//! How requests, events and bytes grow with members and with Services: `cargo bench -p sim --bench scale`. It prints tables for
//! docs/performance.md. Counts alone: virtual time tells nothing about speed. One seed gives the same counts every time.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

use std::{ops::Add, time::Duration};

use clap::Parser;
use serde_json::{Value, json};
use sim::{
    net::Traffic,
    simulation::simulate,
    world::{ClusterPlan, Plan, SetPlan, World},
};
use tokio::time::{Instant, sleep};

/// The Namespace of all Services.
const NAMESPACE: &str = "shop";
/// Without a write for so long, nothing is left to do.
const QUIET: Duration = Duration::from_secs(20);
/// What takes longer does not end.
const LIMIT: Duration = Duration::from_secs(3600);

/// Counts requests, events and bytes as members and Services become more.
#[derive(Parser)]
struct Args {
    /// Numbers of members, the leader's among them, each with one Service.
    #[arg(long, value_delimiter = ',', default_value = "10,100,500")]
    members: Vec<usize>,
    /// Numbers of Services, each with three members.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    services: Vec<usize>,
    /// Passed by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let args = Args::parse();
    println!(
        "Per change, by members: one Service with three endpoints, exported by one member, imported by all.\n"
    );
    heading("members");
    for members in args.members {
        simulate(1, move || by_members(members));
    }
    println!("\nPer Service, by Services: three members, one exports all of them at once.\n");
    heading("Services");
    for services in args.services {
        simulate(1, move || by_services(services));
    }
}

fn heading(of: &str) {
    println!(
        "| {of} | change | leader: reads | writes | events | kB | each member: reads | writes | events | kB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
}

async fn by_members(members: usize) {
    let set = Set::up(members).await;
    let row = |change: &str, passed: &Passed| passed.print(members, change, 1.0);
    row("one minute, Leases alone", &set.idle().await);
    set.create("web");
    row("export", &set.passes(|| set.all_have("web")).await);
    set.change("web");
    row("an endpoint changes", &set.passes(|| true).await);
    set.withdraw("web");
    row("withdrawal", &set.passes(|| set.none_has("web")).await);
}

async fn by_services(services: usize) {
    let set = Set::up(3).await;
    let names: Vec<_> = (0..services).map(|number| format!("web-{number}")).collect();
    let row = |change: &str, passed: &Passed| passed.print(services, change, services as f64);
    names.iter().for_each(|name| set.create(name));
    row("export", &set.passes(|| set.have(services)).await);
    names.iter().for_each(|name| set.change(name));
    row("an endpoint changes", &set.passes(|| true).await);
    names.iter().for_each(|name| set.withdraw(name));
    row("withdrawal", &set.passes(|| set.have(0)).await);
}

/// A connected ClusterSet.
struct Set(World);

impl Set {
    async fn up(members: usize) -> Self {
        let name = |number: usize| if number == 0 { "leader".to_owned() } else { format!("m{number}") };
        let cluster = |number| ClusterPlan { name: name(number), is_dual: false };
        let world = World::new(Plan {
            seed: 1,
            clusters: (0..members).map(cluster).collect(),
            sets: vec![SetPlan { name: "demo".into(), members: (0..members).map(name).collect() }],
            lease_seconds: 30,
            offload: false,
            bind: false,
        });
        for cluster in world.names() {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            world.server(cluster).install(&namespace);
        }
        world.start_all();
        let set = Self(world);
        set.passes(|| set.0.is_connected().is_ok()).await;
        set
    }

    /// The cluster that exports.
    fn exporter(&self) -> &sim::api::Server {
        self.0.server("m1")
    }

    fn create(&self, name: &str) {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let ports = json!([{"name": "http", "port": 80}]);
        self.exporter().install(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": name}, "ports": ports},
        }));
        self.exporter().install(&slice(name, 3));
        self.exporter().install(&json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": metadata,
        }));
    }

    fn change(&self, name: &str) {
        self.exporter().install(&slice(name, 2));
    }

    fn withdraw(&self, name: &str) {
        self.exporter().remove("multicluster.x-k8s.io", "serviceexports", NAMESPACE, name);
    }

    fn has(&self, cluster: &str, name: &str) -> bool {
        self.0.server(cluster).names("", "services").contains(&format!("antrea-mc-{name}"))
    }

    fn all_have(&self, name: &str) -> bool {
        self.0.names().all(|cluster| self.has(cluster, name))
    }

    fn none_has(&self, name: &str) -> bool {
        !self.0.names().any(|cluster| self.has(cluster, name))
    }

    /// Whether every cluster has so many imports.
    fn have(&self, imports: usize) -> bool {
        let of = |cluster| self.0.server(cluster).names("multicluster.x-k8s.io", "serviceimports").len();
        self.0.names().all(|cluster| of(cluster) == imports)
    }

    /// What passes until `holds`, and nobody writes any more.
    async fn passes(&self, holds: impl Fn() -> bool) -> Passed {
        let (before, begun) = (self.sum(false), Instant::now());
        let (mut writes, mut quiet_since) = (before.writes(), begun);
        while quiet_since.elapsed() < QUIET || !holds() {
            assert!(begun.elapsed() < LIMIT, "nothing settles");
            sleep(Duration::from_secs(1)).await;
            let now = self.sum(false).writes();
            if now != writes {
                (writes, quiet_since) = (now, Instant::now());
            }
        }
        self.0.check();
        // Logs of a long run are larger than all else.
        self.0.net.take_log();
        self.sum(false).since(&before)
    }

    /// What Leases cost in a minute.
    async fn idle(&self) -> Passed {
        let before = self.sum(true);
        sleep(Duration::from_secs(60)).await;
        self.sum(true).since(&before)
    }

    fn sum(&self, is_of_leases: bool) -> Passed {
        let of = |cluster| self.0.net.traffic(cluster, is_of_leases);
        let others = self.0.names().skip(1).map(of).fold(Traffic::default(), Add::add);
        Passed { leader: of(self.0.leader()), others, count: self.0.names().count() - 1 }
    }
}

/// Slice of a Service with so many endpoints.
fn slice(name: &str, endpoints: usize) -> Value {
    let endpoint =
        |number| json!({"addresses": [format!("172.20.0.{number}")], "conditions": {"ready": true}});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{name}-1"), "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": name}},
        "ports": [{"name": "http", "port": 80}], "endpoints": (1..=endpoints).map(endpoint).collect::<Vec<_>>(),
    })
}

/// What passed at the leader's API server, and at those of all other members together.
struct Passed {
    leader: Traffic,
    others: Traffic,
    count: usize,
}

impl Passed {
    fn writes(&self) -> u64 {
        self.leader.writes + self.others.writes
    }

    fn since(&self, earlier: &Self) -> Self {
        let (leader, others) = (self.leader.since(earlier.leader), self.others.since(earlier.others));
        Self { leader, others, count: self.count }
    }

    /// A row for one of `changes` changes.
    fn print(&self, of: usize, change: &str, changes: f64) {
        let cells = |traffic: Traffic, by: f64| {
            let cell = |count: u64| format!("{:.1}", count as f64 / by);
            [
                cell(traffic.reads),
                cell(traffic.writes),
                cell(traffic.events),
                format!("{:.1}", traffic.bytes as f64 / by / 1000.0),
            ]
            .join(" | ")
        };
        let members = cells(self.others, changes * self.count as f64);
        println!("| {of} | {change} | {} | {members} |", cells(self.leader, changes));
    }
}
