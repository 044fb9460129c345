//! Clusters as tests use them: an administrator in each, and the daemons. They are real programs, or simulated.

use std::{path::Path, time::Duration};

use api::lease::Pace;
use cli::objects::member::secret_name;
use fleet::{
    Component, Fleet,
    cluster_set::{self, Composition, Daemon},
};
use futures::future::{join_all, try_join_all};
use k8s_openapi::api::core::v1::Secret;

use crate::{
    bring_up::bring_up,
    cluster::Cluster,
    ground::Log,
    say::note,
    shared::{Fixture, end_fleet},
    waiting::{NAMESPACE_GONE, eventually, within},
};

/// How often daemons of tests renew their Leases: five times as often as usual, so that nobody waits long for a silence.
pub const PACE: Pace = Pace::lasting(6);

/// [`PACE`] in the environment of a daemon: name and value.
pub fn pace() -> (String, String) {
    ("FREEPORT_LEASE_SECONDS".to_owned(), PACE.seconds().to_string())
}

/// In the environment of a daemon that connects to no endpoints: those of most tests have addresses that nobody gave them.
pub fn no_probes() -> (String, String) {
    ("FREEPORT_PROBE".to_owned(), "off".to_owned())
}

/// In the environment of a daemon that looks at its credential for the leader every ten seconds, since its tokens live so shortly.
pub fn short_tokens() -> (String, String) {
    ("FREEPORT_TOKEN_SECONDS".to_owned(), "600".to_owned())
}

/// Clusters, their administrators and their daemons.
pub struct World {
    pub ground: Ground,
    clusters: Vec<Cluster>,
}

/// What clusters and daemons are made of.
pub enum Ground {
    /// Programs that run on this machine.
    Real(Real),
    /// Tasks in this process; see [`crate::simulated`].
    Simulated(Simulated),
}

/// A fleet and its daemons.
pub struct Real {
    pub fleet: Fleet,
    /// Those that run beside the fleet; in clusters with nodes they run in Pods.
    pub daemons: Vec<Daemon>,
    /// The ClusterSets that the clusters are.
    pub sets: Vec<Composition>,
    /// Environment in which they run: [`pace`], [`no_probes`] and [`short_tokens`], unless something is measured.
    pub env: Vec<(String, String)>,
}

/// A simulated ClusterSet.
pub struct Simulated {
    pub world: sim::world::World,
    /// What its daemons log.
    pub log: Log,
}

impl Fixture for World {
    fn dir(&self) -> &Path {
        self.real().fleet.dir()
    }
}

impl World {
    pub fn new(fleet: Fleet, clusters: Vec<Cluster>) -> Self {
        let env = vec![pace(), no_probes(), short_tokens()];
        Self { ground: Ground::Real(Real { fleet, daemons: Vec::new(), sets: Vec::new(), env }), clusters }
    }

    /// Simulated clusters, whose daemons write `log`.
    pub fn simulated(world: sim::world::World, log: Log) -> Self {
        let administrator = |name: &str| Cluster { name: name.to_owned(), client: world.admin(name) };
        let clusters = world.names().map(administrator).collect();
        Self { ground: Ground::Simulated(Simulated { world, log }), clusters }
    }

    /// The simulated ClusterSet.
    pub fn sim(&self) -> &sim::world::World {
        match &self.ground {
            Ground::Simulated(simulated) => &simulated.world,
            Ground::Real(_) => panic!("this test needs a simulation"),
        }
    }

    /// The fleet and its daemons. A test that needs them says so: `#[e2e::test(real)]`.
    pub fn real(&self) -> &Real {
        match &self.ground {
            Ground::Real(real) => real,
            Ground::Simulated(_) => panic!("this test needs real programs"),
        }
    }

    pub fn real_mut(&mut self) -> &mut Real {
        match &mut self.ground {
            Ground::Real(real) => real,
            Ground::Simulated(_) => panic!("this test needs real programs"),
        }
    }

    /// Clusters without nodes, named as [`bring_up`](fn@bring_up) takes them, with nothing but Kubernetes.
    pub async fn bring_up(name: &str, clusters: &[&str]) -> Self {
        let (fleet, clusters) = bring_up(name, clusters).await.unwrap();
        Self::new(fleet, clusters)
    }

    /// Makes clusters a ClusterSet, and waits until its daemons are ready. A cluster has one daemon of a kind, however many
    /// sets there are.
    pub async fn add_set(&mut self, set: &Composition) {
        let daemons = self.set_up(set).await;
        for daemon in &daemons {
            daemon.ensure(&self.real().fleet).await.unwrap();
        }
        cluster_set::ready(&self.real().fleet, &set.set, &daemons).await.unwrap();
        for daemon in daemons.iter().filter(|daemon| daemon.is_member) {
            self.knows_authorities(&daemon.cluster, &set.set).await;
        }
        let had = self.real_mut();
        had.daemons.retain(|had| daemons.iter().all(|daemon| daemon.spec.name != had.spec.name));
        had.daemons.extend(daemons);
        had.sets.push(set.clone());
    }

    /// Waits until it is noted with the credential of a member which authorities the leader's cluster publishes. A member that joined before
    /// they were published does that at some time in its first minutes.
    async fn knows_authorities(&self, member: &str, set: &str) {
        let secrets = self.cluster(member).api::<Secret>(cli::objects::SYSTEM);
        eventually(&format!("{member} knows the authorities"), || async {
            let secret = secrets.get(&secret_name(set)).await.map_err(|error| error.to_string())?;
            let keys: Vec<_> = secret.data.unwrap_or_default().into_keys().collect();
            if keys.iter().any(|key| key == "named-ca.crt") { Ok(()) } else { Err(format!("{keys:?}")) }
        })
        .await;
    }

    /// Runs `freeport init` and `join`; the set's daemons, which it does not start.
    pub async fn set_up(&self, set: &Composition) -> Vec<Daemon> {
        let mut daemons = cluster_set::set_up_as(&self.real().fleet, set, &mut note).await.unwrap();
        for daemon in &mut daemons {
            daemon.spec.env.extend(self.real().env.clone());
        }
        daemons
    }

    pub fn daemon(&self, name: &str) -> &Daemon {
        self.real().daemons.iter().find(|daemon| daemon.spec.name == name).unwrap()
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

    /// [`namespace`](Self::namespace) in all clusters.
    pub async fn namespace_everywhere(&self, name: &str) -> String {
        join_all(self.clusters.iter().map(|cluster| cluster.create_namespace(name))).await;
        name.to_owned()
    }

    /// Lets the Namespace go wherever it is. That takes Kubernetes five seconds, which nobody has to wait for.
    pub async fn release(&self, namespace: &str) {
        join_all(self.clusters.iter().map(|cluster| cluster.release_namespace(namespace))).await;
    }

    /// Waits until what earlier tests left is gone.
    pub async fn quiet(&self) {
        within(NAMESPACE_GONE, "what earlier tests left is gone", || async {
            let going = try_join_all(self.clusters.iter().map(Cluster::namespaces_going)).await?.concat();
            if going.is_empty() { Ok(()) } else { Err(format!("Namespaces {going:?}")) }
        })
        .await;
    }

    /// Address of a cluster's API server.
    pub fn address(&self, cluster: &str) -> String {
        match &self.ground {
            Ground::Real(real) => real.fleet.cluster(cluster).unwrap().server(),
            Ground::Simulated(_) => sim::world::address(cluster),
        }
    }

    /// Ends the API server of a cluster, until [`start_api_server`](Self::start_api_server).
    pub async fn kill_api_server(&self, cluster: &str) {
        match &self.ground {
            Ground::Real(real) => {
                real.fleet.cluster(cluster).unwrap().kill(Component::ApiServer).await.unwrap();
            }
            Ground::Simulated(simulated) => simulated.world.net.set_down(cluster, true),
        }
    }

    /// Starts the API server of a cluster.
    pub async fn start_api_server(&self, cluster: &str) {
        match &self.ground {
            Ground::Real(real) => {
                real.fleet.cluster(cluster).unwrap().start(Component::ApiServer).await.unwrap();
            }
            Ground::Simulated(simulated) => simulated.world.net.set_down(cluster, false),
        }
    }

    /// Starts a part of a control plane that does not run.
    pub async fn run_again(&self, cluster: &str, component: Component) {
        let cluster = self.real().fleet.cluster(cluster).unwrap();
        eventually(&format!("{component} of {} runs again", cluster.name()), || async {
            cluster.start(component).await.map_err(|error| error.to_string())
        })
        .await;
    }

    /// Kills a part of a control plane, and starts it again.
    pub async fn without(&self, cluster: &str, component: Component, away: Duration) {
        self.real().fleet.cluster(cluster).unwrap().kill(component).await.unwrap();
        tokio::time::sleep(away).await;
        self.run_again(cluster, component).await;
    }

    /// Starts what has ended of all control planes: kube-controller-manager ends where its API server goes while it starts.
    pub async fn mend(&self) {
        let Ground::Real(real) = &self.ground else { return };
        for cluster in real.fleet.clusters() {
            for component in Component::CONTROL_PLANE {
                let name = cluster.process_name(component);
                let process = real.fleet.process(&name).await.unwrap().unwrap();
                if !process.is_running().await.unwrap() {
                    crate::note!("{name} had ended");
                    self.run_again(cluster.name(), component).await;
                }
            }
        }
    }

    /// Ends the fleet.
    pub async fn discard(&self) {
        end_fleet(self.real().fleet.dir()).await;
    }
}
