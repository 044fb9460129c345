//! The shared fleet, and accounts in it.

use std::{
    env,
    io::Write,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::LazyLock,
    time::{Duration, Instant},
};

use api::name::LEADER_LEASE;
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Daemon},
};
use futures::FutureExt;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, RwLock},
};

use crate::{
    account::{self, Rights},
    others,
};

/// Far beyond what anything takes: a test that gets here has failed.
pub const LIMIT: Duration = Duration::from_secs(60);

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
/// Namespace of the daemons.
pub const SYSTEM: &str = "freeport-system";
/// A Common Area of another ClusterSet that the same cluster leads.
pub const OTHER_AREA: &str = "clusterset-other";
const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

/// All tests share it, since the clients' connections live on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static WORLD: OnceCell<World> = OnceCell::const_new();
/// A test that runs daemons holds it for itself.
static DAEMONS: RwLock<()> = RwLock::const_new(());

/// Three clusters that are a ClusterSet, and who tries what in them. Never dropped: the fleet ends with this process.
pub struct World {
    pub fleet: Fleet,
    pub daemons: Vec<Daemon>,
    /// Administrators.
    pub clusters: Vec<(String, Client)>,
    /// Member `east` at the leader, with the credential the daemon in east uses.
    pub east: Client,
    /// A member `north` whose Role allows whatever one may want to try: what keeps it is the policy alone.
    pub north: Client,
}

impl World {
    async fn up() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = env::temp_dir().join(format!("freeport-rights-{}", std::process::id()));
        let options = Options {
            dir,
            clusters: CLUSTERS.map(str::to_owned).into(),
            lifetime: Lifetime::Attached { remove: env::var_os("FREEPORT_KEEP").is_none() },
        };
        // Past the test runner's capture: the first time this builds for ten minutes.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let fleet = Fleet::up(options, progress).await.unwrap();
        let daemons = cluster_set::set_up(&fleet, SET, &mut |_: &str| {}).await.unwrap();
        let mut clusters = Vec::new();
        for cluster in fleet.clusters() {
            clusters.push((cluster.name().to_owned(), cluster.client().await.unwrap()));
        }
        let find = |name: &str| clusters.iter().find(|(of, _)| of == name).unwrap().1.clone();

        let leader = find("leader");
        let area = json!({"metadata": {
            "name": OTHER_AREA, "labels": {"multicluster.freeport.dev/common-area": "true"},
        }});
        create(&Api::<Namespace>::all(leader.clone()), area).await;
        others::of_others(&leader).await;

        let east = account::member(&find("east")).await;
        let rights = Rights::Role(account::any_right("north"));
        let north = account::with(&fleet, "leader", AREA, "freeport-member-north", rights).await;
        let world = Self { fleet, daemons, clusters, east, north };
        for member in [&world.east, &world.north] {
            others::until_refused(member).await;
        }
        world
    }

    /// An administrator of the cluster.
    pub fn cluster(&self, name: &str) -> Client {
        self.clusters.iter().find(|(of, _)| of == name).unwrap().1.clone()
    }

    async fn start_daemons(&self) {
        // The one that is there has no holder that could be told to go.
        let leases = Api::<Lease>::namespaced(self.cluster("leader"), AREA);
        leases.delete(LEADER_LEASE, &DeleteParams::default()).await.unwrap();
        for daemon in &self.daemons {
            daemon.start(&self.fleet).await.unwrap();
        }
        cluster_set::ready(&self.fleet, SET, &self.daemons).await.unwrap();
    }

    async fn stop_daemons(&self) {
        for daemon in &self.daemons {
            if let Some(process) = self.fleet.process(&daemon.spec.name).await.unwrap() {
                process.stop().await.unwrap();
            }
        }
    }
}

/// Runs a test while no daemon does.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _others = DAEMONS.read().await;
        test(world).await;
    });
}

/// Runs a test while all daemons do; no other test runs meanwhile, and no daemon afterwards.
pub fn with_daemons<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _nobody = DAEMONS.write().await;
        let seen = AssertUnwindSafe(async {
            world.start_daemons().await;
            test(world).await;
        });
        let seen = seen.catch_unwind().await;
        world.stop_daemons().await;
        if let Err(panic) = seen {
            resume_unwind(panic);
        }
    });
}

/// Looks until `look` is content; fails with what it last saw.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => return seen,
            Err(seen) => assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}; last seen: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}
