//! ClusterSet `demo` of three clusters without nodes, with its daemons: one that most tests share, and some that a test has for
//! itself.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use api::{announce::MemberClusterAnnounce, name};
use fleet::cluster_set::{self, Composition};
use futures::{FutureExt, future::join_all};
use kube::{ResourceExt, api::ListParams};
use tokio::sync::Semaphore;

use crate::{
    shared::{RUNTIME, Shared, timed},
    waiting::eventually,
};

pub use crate::world::World;
/// Namespace of the daemons.
pub use cli::objects::SYSTEM;

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// Their IP families: Services of `leader` and `east` can have IPv6, too.
const FAMILIES: [&str; 3] = ["leader=dual", "east=dual", "west=ipv4"];

/// The ClusterSet of all tests that get along with each other.
static SHARED: Shared<World> =
    Shared::new(|| Box::pin(async { with_set(World::at_once("e2e-shared", &FAMILIES).await).await }));
/// Tests that have a ClusterSet for themselves run three at a time, since they wait more than they work.
static TURNS: Semaphore = Semaphore::const_new(3);
/// The ClusterSets of such tests that nobody has now, all as they were made.
static FREE: Mutex<Vec<&'static World>> = Mutex::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Tests that wait for one or have one.
static USERS: AtomicUsize = AtomicUsize::new(0);

async fn with_set(mut world: World) -> World {
    let set = Composition::of_all(&world.fleet, SET);
    world.add_set(&set).await;
    world
}

/// Runs a test that gets along with others.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    SHARED.beside(test);
}

/// Runs a test that has a ClusterSet for itself and leaves it as it was, except for daemons, which are started again.
/// Nobody gets the ClusterSet of a test that failed.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    USERS.fetch_add(1, Ordering::SeqCst);
    RUNTIME.block_on(async {
        let result = AssertUnwindSafe(has_it(test)).catch_unwind().await;
        if USERS.fetch_sub(1, Ordering::SeqCst) == 1 {
            let free = std::mem::take(&mut *FREE.lock().unwrap());
            join_all(free.into_iter().map(World::discard)).await;
        }
        if let Err(failure) = result {
            resume_unwind(failure);
        }
    });
}

async fn has_it<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    let _turn = TURNS.acquire().await.unwrap();
    let world = free().await;
    let whole = async {
        world.quiet().await;
        timed(test(world)).await;
        is_whole(world).await;
    };
    if let Err(failure) = AssertUnwindSafe(whole).catch_unwind().await {
        world.discard().await;
        resume_unwind(failure);
    }
    FREE.lock().unwrap().push(world);
}

async fn free() -> &'static World {
    let free = FREE.lock().unwrap().pop();
    match free {
        Some(world) => world,
        None => {
            let name = format!("e2e-{}", MADE.fetch_add(1, Ordering::Relaxed));
            Box::leak(Box::new(with_set(World::bring_up(&name, &FAMILIES).await).await))
        }
    }
}

/// All daemons run, and every member says that it is connected.
async fn is_whole(world: &World) {
    for daemon in &world.daemons {
        daemon.ensure(&world.fleet).await.unwrap();
    }
    cluster_set::ready(&world.fleet, SET, &world.daemons).await.unwrap();
    // The test may have deleted one, and its member does not put it back at once.
    let announces = world.leader().api::<MemberClusterAnnounce>(AREA);
    eventually("all members are announced", || async {
        let there =
            announces.list_metadata(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let there: Vec<_> = there.items.iter().map(ResourceExt::name_any).collect();
        match CLUSTERS.iter().all(|cluster| there.contains(&name::announce(cluster))) {
            true => Ok(()),
            false => Err(format!("{there:?}")),
        }
    })
    .await;
}
