//! The shared fleet, and what tests do to it.

use std::{
    env, fmt, fs,
    io::Write,
    sync::LazyLock,
    time::{Duration, Instant},
};

use api::{
    announce::MemberClusterAnnounce,
    cluster_set::{ClusterSet, ClusterSetStatus},
    mcs::{ServiceExport, ServiceExportSpec, ServiceImport},
    membership, name,
    resource_export::ResourceExport,
};
use fleet::{
    Fleet, Lifetime, Options,
    cluster_set::{self, Daemon},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Secret, Service},
        discovery::v1::EndpointSlice,
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::{Mutex, OnceCell},
};

/// Far beyond what anything takes, back-off and two stale Leases included: a test that gets here has failed.
const LIMIT: Duration = Duration::from_secs(180);

pub const SET: &str = "demo";
pub const AREA: &str = "clusterset-demo";
pub const SYSTEM: &str = "freeport-system";
pub const SECRET: &str = "freeport-leader-demo";
const CLUSTERS: [&str; 2] = ["leader", "east"];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static WORLD: OnceCell<World> = OnceCell::const_new();
static TURN: Mutex<()> = Mutex::const_new(());

/// Two clusters that are a ClusterSet. Never dropped: the fleet ends with this process, whatever ends it.
pub struct World {
    pub fleet: Fleet,
    daemons: Vec<Daemon>,
    pub leader: Cluster,
    pub east: Cluster,
}

impl World {
    async fn up() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = Options {
            dir: env::temp_dir().join(format!("freeport-membership-{}", std::process::id())),
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
        let cluster =
            async |name: &str| Cluster { client: fleet.cluster(name).unwrap().client().await.unwrap() };
        let (leader, east) = (cluster("leader").await, cluster("east").await);
        Self { daemons, leader, east, fleet }
    }

    pub async fn stop(&self, daemon: &str) {
        self.fleet.process(daemon).await.unwrap().unwrap().stop().await.unwrap();
    }

    pub async fn start(&self, daemon: &str) {
        let daemon = self.daemons.iter().find(|known| known.spec.name == daemon).unwrap();
        daemon.start(&self.fleet).await.unwrap();
    }

    /// The last lines of the member of `east`, for failure messages.
    fn log(&self) -> String {
        let log = self.fleet.dir().join("logs/freeport-member-east.log");
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Waits until the condition `Ready` of `east`'s ClusterSet has this status and reason; its message.
    pub async fn says(&self, status: &str, reason: &str) -> String {
        eventually(&format!("{status}/{reason}"), async || {
            let seen = self.east.set_status(SYSTEM).await?;
            let ready = seen.conditions.first().ok_or("no condition")?;
            if (ready.status.as_deref(), ready.reason.as_deref()) == (Some(status), Some(reason)) {
                return Ok(ready.message.clone().unwrap_or_default());
            }
            Err(format!("{ready:?}; log:\n{}", self.log()))
        })
        .await
    }

    pub async fn connected(&self) {
        self.says("True", "Connected").await;
    }

    /// Service `name` of both clusters, exported by both, in a Namespace of the test's own; imported by `east`.
    pub async fn exchanged(&self, namespace: &str) {
        for (cluster, address) in [(&self.leader, "10.1.0.1"), (&self.east, "10.2.0.1")] {
            let object: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
            cluster.all::<Namespace>().create(&PostParams::default(), &object).await.unwrap();
            cluster.export(namespace, address).await;
        }
        self.imported(namespace).await;
    }

    /// Waits until `east` imports the Service from both; uid and address of its Service.
    pub async fn imported(&self, namespace: &str) -> (String, String) {
        eventually("imported from both", async || {
            let seen = self.east.imported(namespace).await;
            let service = seen.0.first().cloned().ok_or(format!("{seen:?}; log:\n{}", self.log()))?;
            if seen.1.len() == 2 { Ok(service) } else { Err(format!("{seen:?}; log:\n{}", self.log())) }
        })
        .await
    }

    /// Waits until the leader holds nothing of `east` and `east` nothing of the set.
    pub async fn left(&self, namespace: &str) {
        eventually("east has left", async || {
            let there = self.traces().await;
            let (services, slices, imports) = self.east.imported(namespace).await;
            let note = self.east.get::<ConfigMap>(SYSTEM, membership::NAME).await;
            if there.is_empty() && services.is_empty() && slices.is_empty() && imports == 0 && note.is_none()
            {
                return Ok(());
            }
            let note = note.and_then(|note| note.data);
            let log = self.log();
            Err(format!(
                "at the leader {there:?}, here {services:?} {slices:?} {imports}, note {note:?}; log:\n{log}"
            ))
        })
        .await;
    }

    /// What the leader holds of `east`.
    pub async fn traces(&self) -> Vec<String> {
        let records = self.leader.api::<ResourceExport>(AREA);
        let own = ListParams::default().labels("sourceClusterID=east");
        let records = records.list(&own).await.unwrap().items;
        let mut traces: Vec<_> = records.into_iter().map(|record| record.name_any()).collect();
        let (lease, announce) = (name::member_lease("east"), name::announce("east"));
        if self.leader.get::<Lease>(AREA, &lease).await.is_some() {
            traces.push(lease);
        }
        if self.leader.get::<MemberClusterAnnounce>(AREA, &announce).await.is_some() {
            traces.push(announce);
        }
        traces
    }

    /// An Event with this reason is about an object of that name in `cluster`.
    pub async fn event(&self, cluster: &Cluster, namespace: &str, of: &str, reason: &str) {
        eventually(&format!("Event {reason} on {of}"), async || {
            let events = cluster.api::<Event>(namespace).list(&ListParams::default()).await;
            let events = events.map_err(|e| e.to_string())?.items;
            let about =
                |event: &&Event| event.regarding.as_ref().is_some_and(|r| r.name.as_deref() == Some(of));
            let said: Vec<_> = events.iter().filter(about).filter_map(|e| e.reason.clone()).collect();
            if said.iter().any(|said| said == reason) { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
    }
}

/// Runs a test that has the fleet for itself.
pub fn alone<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    RUNTIME.block_on(async {
        let world = WORLD.get_or_init(World::up).await;
        let _turn = TURN.lock().await;
        world.connected().await;
        test(world).await;
    });
}

/// Looks until `look` is content; fails with what it last saw.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(seen) => {
                eprintln!("{what}: after {:.2} s", begun.elapsed().as_secs_f64());
                return seen;
            }
            Err(seen) => assert!(begun.elapsed() < LIMIT, "{what}: not within {LIMIT:?}; last seen: {seen}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Looks for a while and fails if `look` ever is not content.
pub async fn always(what: &str, mut look: impl AsyncFnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) {
        if let Err(seen) = look().await {
            panic!("{what}: {seen}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// An administrator in one cluster.
pub struct Cluster {
    client: Client,
}

impl Cluster {
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    pub async fn get<K>(&self, namespace: &str, name: &str) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        self.api(namespace).get_opt(name).await.unwrap()
    }

    /// Deletes it; as it was.
    pub async fn delete<K>(&self, namespace: &str, name: &str) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        let had = self.get::<K>(namespace, name).await.unwrap();
        self.api::<K>(namespace).delete(name, &DeleteParams::default()).await.unwrap();
        had
    }

    /// Creates it as it was, as another object.
    pub async fn create<K>(&self, mut object: K)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Serialize
            + DeserializeOwned
            + fmt::Debug,
    {
        let meta = object.meta_mut();
        (meta.uid, meta.resource_version, meta.creation_timestamp) = (None, None, None);
        let namespace = meta.namespace.clone().unwrap();
        self.api::<K>(&namespace).create(&PostParams::default(), &object).await.unwrap();
    }

    pub async fn patch<K>(&self, namespace: &str, name: &str, patch: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
    {
        let api = self.api::<K>(namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Puts these keys into the member's Secret; `None` removes one.
    pub async fn put_secret(&self, entries: &[(&str, Option<&[u8]>)]) {
        let encoded = |bytes: &[u8]| json!(k8s_openapi::ByteString(bytes.to_vec()));
        let data: serde_json::Map<_, _> = entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.map_or(Value::Null, encoded)))
            .collect();
        self.patch::<Secret>(SYSTEM, SECRET, json!({"data": data})).await;
    }

    /// The ClusterSet's status.
    pub async fn set_status(&self, namespace: &str) -> Result<ClusterSetStatus, String> {
        let set = self.api::<ClusterSet>(namespace).get_opt(SET).await.map_err(|error| error.to_string())?;
        set.ok_or("no ClusterSet")?.status.ok_or("no status".to_owned())
    }

    async fn export(&self, namespace: &str, address: &str) {
        let service = json!({
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"ports": [{"name": "http", "port": 80}]},
        });
        self.create::<Service>(serde_json::from_value(service).unwrap()).await;
        let slice = json!({
            "metadata": {
                "name": "web-1",
                "namespace": namespace,
                "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        self.create::<EndpointSlice>(serde_json::from_value(slice).unwrap()).await;
        let mut export = ServiceExport::new("web", ServiceExportSpec::default());
        export.metadata.namespace = Some(namespace.into());
        self.create(export).await;
    }

    /// What is imported into the Namespace: uid and address of the Service, clusters of the slices, number of ServiceImports.
    pub async fn imported(&self, namespace: &str) -> (Vec<(String, String)>, Vec<String>, usize) {
        let ours = ListParams::default().labels("app.kubernetes.io/managed-by=freeport");
        let services = self.api::<Service>(namespace).list(&ours).await.unwrap().items;
        let services = services.into_iter().map(|service| {
            let address = service.spec.clone().unwrap_or_default().cluster_ip.unwrap_or_default();
            (service.uid().unwrap(), address)
        });
        let slices = self.api::<EndpointSlice>(namespace).list(&ours).await.unwrap().items;
        let from =
            |slice: &EndpointSlice| slice.labels()["multicluster.kubernetes.io/source-cluster"].clone();
        let slices = slices.iter().map(from).collect();
        let imports = self.api::<ServiceImport>(namespace).list(&ours).await.unwrap().items.len();
        (services.collect(), slices, imports)
    }

    /// Deletes a CRD and waits until it is gone; as it was.
    pub async fn delete_crd(&self, name: &str) -> CustomResourceDefinition {
        let crds = self.all::<CustomResourceDefinition>();
        let had = crds.get(name).await.unwrap();
        crds.delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("CRD {name} is gone"), async || match crds.get_opt(name).await.unwrap() {
            None => Ok(()),
            Some(crd) => Err(format!("{:?}", crd.status)),
        })
        .await;
        had
    }

    pub async fn create_crd(&self, mut crd: CustomResourceDefinition) {
        let meta = &mut crd.metadata;
        (meta.uid, meta.resource_version, meta.creation_timestamp) = (None, None, None);
        crd.status = None;
        let crds = self.all::<CustomResourceDefinition>();
        crds.create(&PostParams::default(), &crd).await.unwrap();
        eventually("the CRD is served", async || {
            let conditions = crds.get(&crd.name_any()).await.unwrap().status.and_then(|s| s.conditions);
            let is =
                |type_: &str| conditions.iter().flatten().any(|c| c.type_ == type_ && c.status == "True");
            if is("Established") { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await;
    }
}
