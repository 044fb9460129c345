//! The fleets of a test program, and the ClusterSet on each.

use std::{
    env,
    error::Error,
    io::Write,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{LazyLock, Mutex},
};

use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Daemon},
};
use futures::{FutureExt, future::join_all};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, Semaphore},
};

use crate::{cluster::Cluster, waiting::eventually};

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

/// All tests share it, since the clients' connections live on it.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The ClusterSet of all tests that get along with each other, and those that one test at a time has for itself: tests wait
/// more than they work, so several fleets on one machine save time.
static SHARED: OnceCell<Result<World, String>> = OnceCell::const_new();
static ALONE: [OnceCell<Result<World, String>>; 2] = [const { OnceCell::const_new() }; 2];
/// Which of [`ALONE`] nobody has.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static ANY_FREE: LazyLock<Semaphore> = LazyLock::new(|| {
    FREE.lock().unwrap().extend(0..ALONE.len());
    Semaphore::new(ALONE.len())
});

/// Three clusters that are a ClusterSet. Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    pub daemons: Vec<Daemon>,
    clusters: Vec<Cluster>,
}

impl World {
    async fn up(name: &str) -> Result<Self, Box<dyn Error>> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = env::temp_dir().join(format!("freeport-e2e-{}-{name}", std::process::id()));
        let options = Options {
            dir,
            clusters: CLUSTERS.map(str::to_owned).into(),
            lifetime: Lifetime::Attached { remove: env::var_os("FREEPORT_KEEP").is_none() },
        };
        // Past the test runner's capture: the first time this builds for ten minutes.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let fleet = Fleet::up(options, progress).await?;
        let daemons = cluster_set::set_up(&fleet, SET, &mut |_: &str| {}).await?;
        for daemon in &daemons {
            daemon.start(&fleet).await?;
        }
        cluster_set::ready(&fleet, SET, &daemons).await?;
        let mut clusters = Vec::new();
        for cluster in fleet.clusters() {
            clusters.push(Cluster { name: cluster.name().to_owned(), client: cluster.client().await? });
        }
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
        eventually("what earlier tests left is gone", || async {
            let going = join_all(self.clusters.iter().map(Cluster::namespaces_going)).await.concat();
            if going.is_empty() { Ok(()) } else { Err(format!("Namespaces {going:?}")) }
        })
        .await;
    }
}

async fn world(cell: &'static OnceCell<Result<World, String>>, name: &str) -> &'static World {
    let made = cell.get_or_init(|| async { World::up(name).await.map_err(|error| error.to_string()) }).await;
    made.as_ref().unwrap_or_else(|error| panic!("no ClusterSet to test: {error}"))
}

/// Runs a test that gets along with others.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async { test(world(&SHARED, "shared").await).await });
}

/// Runs a test that has a ClusterSet for itself, and may leave daemons stopped when it fails.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let _permit = ANY_FREE.acquire().await.unwrap();
        let index = FREE.lock().unwrap().pop().unwrap();
        let outcome = AssertUnwindSafe(by_itself(index, test)).catch_unwind().await;
        FREE.lock().unwrap().push(index);
        if let Err(failure) = outcome {
            resume_unwind(failure);
        }
    });
}

async fn by_itself<F: Future<Output = ()>>(index: usize, test: impl FnOnce(&'static World) -> F) {
    let world = world(&ALONE[index], &index.to_string()).await;
    world.quiet().await;
    let outcome = AssertUnwindSafe(test(world)).catch_unwind().await;
    for daemon in &world.daemons {
        daemon.ensure(&world.fleet).await.unwrap();
    }
    if let Err(failure) = outcome {
        resume_unwind(failure);
    }
}
