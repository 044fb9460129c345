//! The simulated ground: each test has a ClusterSet of its own, in this process and in virtual time.
//!
//! The seed of a test comes from its name; `FREEPORT_SIM_SEED` sets another one. When a test fails, `target/e2e/<test>/` has the log of the network
//! and that of the daemons.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, resume_unwind},
    thread,
    time::Duration,
};

use futures::FutureExt;
use sim::{
    simulation,
    world::{ClusterPlan, Plan, SetPlan},
};

use crate::{
    ground::Log,
    harness::record,
    waiting::eventually,
    world::{PACE, World},
};

/// Runs `test` in a ClusterSet of all these clusters, named as [`World::bring_up`] takes them. The first leads.
pub(crate) fn with_set<F: Future<Output = ()>>(
    set: &str,
    clusters: &[&str],
    offload: bool,
    test: impl FnOnce(&'static World) -> F,
) {
    let plan = plan(clusters, &[(set, clusters)]);
    with(Plan { offload, ..plan }, test);
}

/// Plan of these clusters, of which the first leads, and of ClusterSets of some of them. They neither offload nor bind.
pub fn plan(clusters: &[&str], sets: &[(&str, &[&str])]) -> Plan {
    let name = |cluster: &&str| cluster_plan(cluster).name;
    let set = |(set, members): &(&str, &[&str])| SetPlan {
        name: (*set).to_owned(),
        members: members.iter().map(name).collect(),
    };
    Plan {
        seed: seed(),
        clusters: clusters.iter().map(|cluster| cluster_plan(cluster)).collect(),
        sets: sets.iter().map(set).collect(),
        lease_seconds: PACE.seconds().try_into().unwrap(),
        offload: false,
        bind: false,
    }
}

/// Runs `test` in what is planned.
pub fn with<F: Future<Output = ()>>(plan: Plan, test: impl FnOnce(&'static World) -> F) {
    crate::note!("FREEPORT_SIM_SEED={}", plan.seed);
    let ended = simulate(plan, true, test);
    if let Err(failure) = ended.result {
        record::keep_file("network.log", ended.network.as_bytes());
        record::keep_file("daemons.log", &ended.daemons);
        resume_unwind(failure);
    }
}

/// A simulation that has ended.
pub(crate) struct Ended<T> {
    pub(crate) result: thread::Result<T>,
    /// Virtual time that it took.
    pub(crate) lasted: Duration,
    /// How many requests there were.
    pub(crate) requests: u64,
    /// Log of the network.
    pub(crate) network: String,
    /// What the daemons logged, if that was kept.
    pub(crate) daemons: Vec<u8>,
}

/// Runs `test` on this thread in a new ClusterSet. Keeps what the daemons log only if `logs`.
pub(crate) fn simulate<T, F: Future<Output = T>>(
    plan: Plan,
    logs: bool,
    test: impl FnOnce(&'static World) -> F,
) -> Ended<T> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false);
    let subscriber = subscriber.with_max_level(logs.then_some(tracing::Level::INFO)).finish();
    tracing::subscriber::with_default(subscriber, || {
        simulation::here(plan.seed, || async {
            let world = sim::world::World::new(plan);
            record::clock_starts();
            // Tests have it for ever; what it holds ends with them.
            let world: &'static World = Box::leak(Box::new(World::simulated(world, log.clone())));
            let result = AssertUnwindSafe(run(world, test)).catch_unwind().await;
            let sim = world.sim();
            sim.end();
            let (lasted, requests) = (sim.lasted(), sim.net.requests());
            Ended { result, lasted, requests, network: sim.net.take_log(), daemons: log.take() }
        })
    })
}

async fn run<T, F: Future<Output = T>>(world: &'static World, test: impl FnOnce(&'static World) -> F) -> T {
    let sim = world.sim();
    let whole = async {
        sim.start_all();
        eventually("all members are connected", || async { sim.is_connected() }).await;
        test(world).await
    };
    let result = tokio::select! {
        biased;
        violation = sim.violated() => {
            panic!("{violation}\nFREEPORT_SIM_SEED={}\n{}", sim.plan.seed, sim.net.log_tail(LAST_LINES))
        }
        result = whole => result,
    };
    sim.check();
    result
}

/// Lines of the network's log in the failure of a test that broke an invariant.
const LAST_LINES: usize = 20;

fn seed() -> u64 {
    if let Ok(seed) = env::var("FREEPORT_SIM_SEED") {
        return seed.parse().unwrap();
    }
    let mut hasher = DefaultHasher::new();
    record::current().hash(&mut hasher);
    hasher.finish() >> 32
}

/// `east`, or `east=dual`.
fn cluster_plan(cluster: &str) -> ClusterPlan {
    let (name, families) = cluster.split_once('=').unwrap_or((cluster, "ipv4"));
    ClusterPlan { name: name.to_owned(), is_dual: families == "dual" }
}
