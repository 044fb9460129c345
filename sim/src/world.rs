//! A ClusterSet in one process: an API server for each cluster, and the daemons.

mod daemon;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cli::objects::{Object, access, area, bind, crds, leader, member, offload};
use k8s_openapi::ByteString;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::daemon::Daemon;
pub use self::daemon::{leader_name, member_name};
use crate::{
    api::Server,
    authority,
    invariant::{Monitor, Violation},
    net::{Caller, Net},
    random::Random,
};

/// How often the controllers of Kubernetes look at a cluster.
const CONTROLLERS: Duration = Duration::from_secs(2);

/// Second number of the addresses of Services in the first cluster. Up to 256 clusters have ranges of their own.
const FIRST_RANGE: u8 = 96;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of everything random.
    pub seed: u64,
    /// The first one leads all ClusterSets.
    pub clusters: Vec<ClusterPlan>,
    pub sets: Vec<SetPlan>,
    /// See `--lease-seconds`.
    pub lease_seconds: u16,
    /// All members offload Namespaces.
    pub offload: bool,
    /// The leader offers APIs, and members bind them.
    pub bind: bool,
}

/// A cluster that is simulated.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// Its name, which is its ID.
    pub name: String,
    /// Services have both IP families.
    pub is_dual: bool,
}

/// A ClusterSet that is simulated.
#[derive(Clone, Debug)]
pub struct SetPlan {
    pub name: String,
    /// Clusters that export and import; each is in one ClusterSet.
    pub members: Vec<String>,
}

/// Clusters that are ClusterSets.
pub struct World {
    pub net: Arc<Net>,
    pub plan: Plan,
    servers: BTreeMap<String, Arc<Server>>,
    daemons: Mutex<BTreeMap<String, Daemon>>,
    /// Certificate of every API server's authority, PEM.
    authority: String,
    monitor: Arc<Monitor>,
    _controllers: JoinSet<()>,
}

/// Creates what is missing of these objects.
fn ensure(server: &Server, all: &[Object]) {
    all.iter().for_each(|object| server.ensure(&object.body));
}

/// Address of a cluster's API server.
pub fn address(cluster: &str) -> String {
    format!("https://{cluster}.sim:6443")
}

impl World {
    /// Clusters with everything that `freeport init` and `join` install, in which no daemon runs yet.
    pub fn new(plan: Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let net = Net::new(random.draw());
        let authority = authority::certificate();
        let ranges = (0..=u8::MAX).cycle().skip(FIRST_RANGE.into());
        let servers = plan.clusters.iter().zip(ranges).map(|(ClusterPlan { name, is_dual }, range)| {
            (name.clone(), Server::new(name, random.draw(), *is_dual, range, &authority))
        });
        let servers: BTreeMap<_, _> = servers.collect();
        let monitor = Monitor::new();
        servers.values().for_each(|server| server.show(&monitor));
        let mut controllers = JoinSet::new();
        let all: Vec<_> = servers.values().cloned().collect();
        controllers.spawn(async move {
            loop {
                tokio::time::sleep(CONTROLLERS).await;
                all.iter().for_each(|server| server.tick());
            }
        });
        let world = Self {
            net,
            plan,
            servers,
            daemons: Mutex::default(),
            authority,
            monitor,
            _controllers: controllers,
        };
        world.install("first");
        world
    }

    /// Installs what `freeport init` and `join` do. Members with another `token` start another session.
    pub fn install(&self, token: &str) {
        let hub = self.server(self.leader());
        crds::leader().iter().for_each(|object| hub.install(&object.body));
        ensure(hub, &leader::objects());
        if self.plan.offload {
            ensure(hub, &offload::leader_crds());
        }
        if self.plan.bind {
            ensure(hub, &bind::provider_crds());
            ensure(hub, &bind::provider());
        }
        self.plan.sets.iter().for_each(|set| self.install_set(set, token));
    }

    /// Installs what one ClusterSet needs, [`install`](Self::install) what all need.
    pub fn install_set(&self, SetPlan { name: set, members }: &SetPlan, token: &str) {
        let hub = self.server(self.leader());
        ensure(hub, &area::objects(set, self.leader()));
        for id in members {
            let server = self.server(id);
            ensure(hub, &access::objects(set, id, server.uid("namespaces", "kube-system").as_deref()));
            crds::member().iter().for_each(|object| server.install(&object.body));
            ensure(server, &member::objects());
            if self.plan.offload {
                ensure(server, &offload::member_crds());
                ensure(server, &offload::member());
            }
            if self.plan.bind {
                ensure(server, &bind::consumer_crds());
                ensure(server, &bind::consumer());
            }
            for mut object in member::credential(set) {
                if object.body["kind"] == "Secret" {
                    object.body["data"] = self.credential(id, token);
                }
                server.install(&object.body);
            }
            server.ensure(&member::cluster_set(set, id, self.leader(), &address(self.leader())).body);
        }
    }

    /// Replaces a cluster by an empty one at the same address.
    pub fn replace(&self, cluster: &str) {
        self.net.log(format_args!("-- {cluster} is replaced by an empty cluster"));
        let seed = self.net.below(u64::MAX);
        self.server(cluster).replace(seed);
    }

    /// Runs `freeport init` and `join` again; a leader that runs starts again, as it does with another credential.
    pub async fn install_again(&self) {
        self.install("again");
        let leader = leader_name(self.leader());
        if self.is_running(&leader) {
            self.stop(&leader).await;
            self.start(&leader);
        }
    }

    fn credential(&self, id: &str, token: &str) -> Value {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        json!({"ca.crt": bytes(&self.authority), "named-ca.crt": bytes(&self.authority), "token": bytes(&format!("{id}-{token}"))})
    }

    /// Name of the cluster that leads.
    pub fn leader(&self) -> &str {
        self.plan.clusters.first().map_or("", |cluster| &cluster.name)
    }

    /// Names of all clusters, the leader's first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plan.clusters.iter().map(|cluster| cluster.name.as_str())
    }

    /// Names of the clusters that export and import.
    pub fn members(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| self.set_of(name).is_some())
    }

    /// Name of the ClusterSet of which a cluster is a member.
    fn set_of(&self, cluster: &str) -> Option<&str> {
        let is_member = |set: &&SetPlan| set.members.iter().any(|member| member == cluster);
        self.plan.sets.iter().find(is_member).map(|set| set.name.as_str())
    }

    pub fn server(&self, name: &str) -> &Arc<Server> {
        match self.servers.get(name) {
            Some(server) => server,
            None => panic!("there is no cluster {name}"),
        }
    }

    /// A client of an administrator.
    pub fn admin(&self, cluster: &str) -> Client {
        self.client(cluster, Caller::admin())
    }

    /// A client of somebody else.
    pub fn client(&self, cluster: &str, caller: Caller) -> Client {
        self.net.client(self.server(cluster), caller)
    }

    /// Whether every member reports that it is connected; if not, what one of them reports.
    pub fn is_connected(&self) -> Result<(), String> {
        for name in self.members() {
            let sets = self.server(name).all("multicluster.crd.antrea.io", "clustersets");
            let conditions =
                sets.iter().flat_map(|set| set["status"]["conditions"].as_array().into_iter().flatten());
            let ready: Vec<_> = conditions.filter(|condition| condition["type"] == "Ready").collect();
            if !ready.iter().any(|condition| condition["status"] == "True") {
                return Err(format!("{name}: {ready:?}"));
            }
        }
        Ok(())
    }

    /// Checks the invariants about exports, too. What users export has to be written after this, and no cluster may leave.
    pub fn check_exports(&self) {
        self.monitor.add_exports();
    }

    /// Waits until an invariant is broken.
    pub async fn violated(&self) -> Violation {
        self.monitor.violated().await
    }

    /// Virtual time since the start.
    pub fn lasted(&self) -> Duration {
        self.monitor.now()
    }

    fn daemons(&self) -> MutexGuard<'_, BTreeMap<String, Daemon>> {
        self.daemons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
