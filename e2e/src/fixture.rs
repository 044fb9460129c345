//! The fleets of a test program, and the ClusterSet on each.

use std::{
    error::Error,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleet::{
    Fleet,
    cluster_set::{self, Daemon},
};
use futures::{FutureExt, future::join_all};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, Semaphore},
};

use crate::{
    bring_up::{bring_up, is_kept},
    cluster::Cluster,
    waiting::{NAMESPACE_GONE, within},
};

/// Namespace of the daemons.
pub use cli::objects::SYSTEM;

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];
/// Their IP families.
const FAMILIES: [&str; 3] = ["leader=dual", "east=dual", "west=ipv4"];

/// All tests share it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The ClusterSet of all tests that get along with each other.
static SHARED: OnceCell<Result<World, String>> = OnceCell::const_new();
/// Tests that have a ClusterSet for themselves run three at a time, since they wait more than they work.
static TURNS: Semaphore = Semaphore::const_new(3);
/// The ClusterSets of such tests that nobody has now, all as they were made.
static FREE: Mutex<Vec<&'static World>> = Mutex::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Three clusters that are a ClusterSet; Services of `leader` and `east` can have IPv6, too. Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    pub daemons: Vec<Daemon>,
    clusters: Vec<Cluster>,
}

impl World {
    async fn up(name: &str) -> Result<Self, Box<dyn Error>> {
        let (fleet, clusters) = bring_up(&format!("e2e-{name}"), &FAMILIES).await?;
        let daemons = cluster_set::set_up(&fleet, SET, &mut |_: &str| {}).await?;
        for daemon in &daemons {
            daemon.start(&fleet).await?;
        }
        cluster_set::ready(&fleet, SET, &daemons).await?;
        Ok(Self { fleet, daemons, clusters })
    }

    pub fn cluster(&self, name: &str) -> &Cluster {
        self.clusters.iter().find(|cluster| cluster.name == name).unwrap()
    }

    pub fn leader(&self) -> &Cluster {
        self.cluster("leader")
    }

    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// A Namespace of a test's own, in these clusters.
    pub async fn namespace(&self, name: &str, clusters: &[&str]) -> String {
        join_all(clusters.iter().map(|cluster| self.cluster(cluster).create_namespace(name))).await;
        name.to_owned()
    }

    /// Lets the Namespace go wherever it is. That takes Kubernetes five seconds, which nobody has to wait for.
    pub async fn release(&self, namespace: &str) {
        join_all(self.clusters.iter().map(|cluster| cluster.release_namespace(namespace))).await;
    }

    /// What earlier tests left is gone.
    async fn quiet(&self) {
        within(NAMESPACE_GONE, "what earlier tests left is gone", || async {
            let going = join_all(self.clusters.iter().map(Cluster::namespaces_going)).await.concat();
            if going.is_empty() { Ok(()) } else { Err(format!("Namespaces {going:?}")) }
        })
        .await;
    }

    /// All daemons run, and every member says that it is connected.
    async fn is_whole(&self) {
        for daemon in &self.daemons {
            daemon.ensure(&self.fleet).await.unwrap();
        }
        cluster_set::ready(&self.fleet, SET, &self.daemons).await.unwrap();
    }

    /// Ends it, unless its files shall be kept.
    async fn discard(&self) {
        if !is_kept() {
            Fleet::down(self.fleet.dir(), |_| {}).await.unwrap();
        }
    }
}

/// Runs a test that gets along with others.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let up = async || World::up("shared").await.map_err(|error| error.to_string());
        let world = SHARED.get_or_init(up).await;
        test(world.as_ref().unwrap_or_else(|error| panic!("no ClusterSet to test: {error}"))).await;
    });
}

/// Runs a test that has a ClusterSet for itself and leaves it as it was, except for daemons, which are started again.
/// Nobody gets the ClusterSet of a test that failed.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let _turn = TURNS.acquire().await.unwrap();
        let world = free().await;
        let whole = async {
            world.quiet().await;
            test(world).await;
            world.is_whole().await;
        };
        if let Err(failure) = AssertUnwindSafe(whole).catch_unwind().await {
            world.discard().await;
            resume_unwind(failure);
        }
        FREE.lock().unwrap().push(world);
    });
}

async fn free() -> &'static World {
    let free = FREE.lock().unwrap().pop();
    if let Some(world) = free {
        return world;
    }
    let name = MADE.fetch_add(1, Ordering::Relaxed).to_string();
    let made = World::up(&name).await.unwrap_or_else(|error| panic!("no ClusterSet to test: {error}"));
    Box::leak(Box::new(made))
}
