//! The shared fleet, and what tests do in it.

use std::{
    env, fs,
    io::Write,
    sync::LazyLock,
    time::{Duration, Instant},
};

use api::mcs::{ServiceExport, ServiceExportSpec};
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Daemon},
};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, Resource, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::{OnceCell, RwLock},
};

/// Far beyond what anything takes: a test that gets here has failed.
pub const LIMIT: Duration = Duration::from_secs(60);
/// For what waits for Leases to be renewed, twice.
pub const VOUCHED: Duration = Duration::from_secs(150);

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const CLUSTERS: [&str; 3] = ["leader", "east", "west"];

/// All tests share it, since the clients' connections live on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static WORLD: OnceCell<World> = OnceCell::const_new();
/// Tests that stop daemons hold it for themselves.
static DAEMONS: RwLock<()> = RwLock::const_new(());

/// Three clusters that are a ClusterSet. Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    pub daemons: Vec<Daemon>,
    clusters: Vec<Cluster>,
}

impl World {
    async fn up() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let dir = env::temp_dir().join(format!("freeport-e2e-{}", std::process::id()));
        let options = Options {
            dir,
            clusters: CLUSTERS.map(str::to_owned).into(),
            lifetime: Lifetime::Attached { remove: env::var_os("FREEPORT_KEEP").is_none() },
        };
        // Past the test runner's capture: the first time this builds for ten minutes.
        let progress = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let fleet = Fleet::up(options, progress).await.unwrap();
        let daemons = cluster_set::set_up(&fleet, SET, &mut |_: &str| {}).await.unwrap();
        for daemon in &daemons {
            daemon.start(&fleet).await.unwrap();
        }
        cluster_set::ready(&fleet, SET, &daemons).await.unwrap();
        let mut clusters = Vec::new();
        for cluster in fleet.clusters() {
            clusters
                .push(Cluster { name: cluster.name().to_owned(), client: cluster.client().await.unwrap() });
        }
        Self { fleet, daemons, clusters }
    }

    pub fn cluster(&self, name: &str) -> &Cluster {
        self.clusters.iter().find(|cluster| cluster.name == name).unwrap()
    }

    pub fn leader(&self) -> &Cluster {
        self.cluster("leader")
    }

    pub fn daemon(&self, name: &str) -> &Daemon {
        self.daemons.iter().find(|daemon| daemon.spec.name == name).unwrap()
    }

    /// A Namespace of a test's own, in these clusters.
    pub async fn namespace(&self, name: &str, clusters: &[&str]) -> String {
        for cluster in clusters {
            self.cluster(cluster).create_namespace(name).await;
        }
        name.to_owned()
    }

    /// What a daemon measures: the value of the metric whose line begins with `metric`, summed over its labels.
    pub async fn metric(&self, daemon: &str, metric: &str) -> f64 {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut connection = tokio::net::TcpStream::connect(self.daemon(daemon).listen).await.unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).await.unwrap();
        let lines = text.lines().filter(|line| line.starts_with(metric));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

/// Runs a test that gets along with others.
pub fn shared<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _others = DAEMONS.read().await;
        test(world).await;
    });
}

/// Runs a test that has the daemons for itself.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _nobody = DAEMONS.write().await;
        test(world).await;
    });
}

/// Looks until `look` is content; fails with what it last saw.
pub async fn eventually<T, F>(what: &str, look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    within(LIMIT, what, look).await
}

/// [`eventually`] with a limit of its own.
pub async fn within<T, F>(limit: Duration, what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => {
                eprintln!("{what}: after {:.2} s", begun.elapsed().as_secs_f64());
                return seen;
            }
            Err(seen) => assert!(begun.elapsed() < limit, "{what}: not within {limit:?}; last seen: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Looks for a while and fails if `look` ever is not content.
pub async fn always<F>(what: &str, mut look: impl FnMut() -> F)
where
    F: Future<Output = Result<(), String>>,
{
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        if let Err(seen) = look().await {
            panic!("{what}: {seen}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An administrator in one cluster.
pub struct Cluster {
    pub name: String,
    pub client: Client,
}

impl Cluster {
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub async fn create<K>(&self, namespace: &str, object: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api::<K>(namespace).create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn create_namespace(&self, name: &str) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    /// Deletes the Namespace and waits until it is gone.
    pub async fn delete_namespace(&self, name: &str) {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
        eventually(&format!("Namespace {name} of {} is gone", self.name), || async {
            match namespaces.get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(namespace) => Err(format!("{:?}", namespace.status)),
            }
        })
        .await;
    }

    /// A Service without selector and ports `(name, number)`: without nodes, tests write the endpoints.
    pub async fn service(&self, namespace: &str, name: &str, ports: &[(&str, i32)]) -> Service {
        let ports: Vec<_> = ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
        self.create(namespace, json!({"metadata": {"name": name}, "spec": {"ports": ports}})).await
    }

    /// A slice of the Service: ready endpoints, and ports `(name, number)`.
    pub async fn slice(
        &self,
        namespace: &str,
        service: &str,
        name: &str,
        addresses: &[&str],
        ports: &[(&str, i32)],
    ) {
        let _: EndpointSlice = self.create(namespace, slice(service, name, addresses, ports)).await;
    }

    pub async fn replace_slice(
        &self,
        namespace: &str,
        service: &str,
        name: &str,
        addresses: &[&str],
        ports: &[(&str, i32)],
    ) {
        let object: EndpointSlice = serde_json::from_value(slice(service, name, addresses, ports)).unwrap();
        self.api(namespace).replace(name, &PostParams::default(), &object).await.unwrap();
    }

    pub async fn export(&self, namespace: &str, name: &str) -> ServiceExport {
        let export = ServiceExport::new(name, ServiceExportSpec::default());
        self.api(namespace).create(&PostParams::default(), &export).await.unwrap()
    }

    pub async fn delete<K>(&self, namespace: &str, name: &str)
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        self.api::<K>(namespace).delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }

    pub async fn unexport(&self, namespace: &str, name: &str) {
        self.delete::<ServiceExport>(namespace, name).await;
    }

    /// Service `name` on port 80 with one slice of these endpoints on 8080, exported.
    pub async fn exported(&self, namespace: &str, name: &str, addresses: &[&str]) {
        self.service(namespace, name, &[("http", 80)]).await;
        self.slice(namespace, name, &format!("{name}-1"), addresses, &[("http", 8080)]).await;
        self.export(namespace, name).await;
    }
}

fn slice(service: &str, name: &str, addresses: &[&str], ports: &[(&str, i32)]) -> Value {
    let endpoint = |a: &&str| json!({"addresses": [a], "conditions": {"ready": true}, "nodeName": "n1"});
    let port = |(name, port): &(&str, i32)| json!({"name": name, "port": port, "protocol": "TCP"});
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": ports.iter().map(port).collect::<Vec<_>>(),
    })
}

/// The last lines of a daemon's log, for failure messages.
pub fn log_tail(world: &World, daemon: &str) -> String {
    let log = world.fleet.dir().join("logs").join(format!("{daemon}.log"));
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().take(15).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}
