//! The simulated ground: each test has a ClusterSet of its own, in this process and in virtual time.
//!
//! The seed of a test comes from its name; `FREEPORT_SIM_SEED` sets another one. When a test fails, `target/e2e/<test>/` has the log of the network
//! and that of the daemons.

use std::{
    cell::Cell,
    env,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{Arc, Condvar, Mutex, PoisonError},
};

use futures::FutureExt;
use sim::{
    simulation,
    world::{ClusterPlan, Plan},
};
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    fixture::SET,
    harness::record,
    waiting::eventually,
    world::{PACE, World},
};

/// Bytes of stack of a test: futures of whole daemons are large where they are not optimized.
const STACK: usize = 64 << 20;

thread_local! {
    /// Whether the test that this thread runs is on the simulated ground.
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `test` on a thread with a stack of its own, on the simulated ground. At most one for each two cores run at once: they wait for nothing, and
/// tests of real programs run beside them.
pub(crate) fn on_ground<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let _slot = Slot::take();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
            IS_SIMULATED.set(true);
            test()
        });
        thread.unwrap().join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Whether the test that this thread runs is on the simulated ground.
pub fn is_simulated() -> bool {
    IS_SIMULATED.get()
}

/// Runs `test` in a ClusterSet of these clusters, named as [`World::bring_up`] takes them. The first leads.
pub(crate) fn with_set<F: Future<Output = ()>>(
    clusters: &[&str],
    offload: bool,
    test: impl FnOnce(&'static World) -> F,
) {
    let plan = Plan {
        seed: seed(),
        set: SET.to_owned(),
        clusters: clusters.iter().map(|cluster| cluster_plan(cluster)).collect(),
        is_dedicated: false,
        lease_seconds: PACE.seconds().try_into().unwrap(),
        offload,
    };
    crate::note!("FREEPORT_SIM_SEED={}", plan.seed);
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, || {
        simulation::here(plan.seed, || async {
            let world = sim::world::World::new(plan);
            record::clock_starts();
            let world: &'static World = Box::leak(Box::new(World::simulated(world)));
            let ended = AssertUnwindSafe(run(world, test)).catch_unwind().await;
            let world = world.sim();
            world.end();
            if let Err(failure) = ended {
                record::keep_file("network.log", world.net.take_log().as_bytes());
                record::keep_file("daemons.log", &lines.take());
                resume_unwind(failure);
            }
        });
    });
}

async fn run<F: Future<Output = ()>>(world: &'static World, test: impl FnOnce(&'static World) -> F) {
    world.sim().start_all();
    eventually("all members are connected", || async { world.sim().is_connected() }).await;
    test(world).await;
    world.sim().check();
}

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

/// What the daemons of a test log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// One of the few tests that run on this ground at once.
struct Slot;

static RUNNING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Slot {
    fn take() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let running = RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = RUNNING.1.wait_while(running, |running| *running >= cores.div_ceil(2));
        *free.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *RUNNING.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        RUNNING.1.notify_one();
    }
}
