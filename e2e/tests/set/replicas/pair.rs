//! Two replicas of a daemon, and the Lease by which they elect.

use api::name::active_lease;
use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{SYSTEM, World},
    metrics::Metrics,
    waiting::eventually,
    world::{Ground, Real},
};
use fleet::{Exit, Process, Signal, cluster_set::Daemon, ports};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde_json::json;
use sim::net::Fault;

/// Two replicas of a daemon, in place of the one of that name.
pub(super) struct Pair {
    world: &'static World,
    /// The daemon that the world has.
    daemon: &'static str,
    replicas: [Replica; 2],
    /// Where they run, and the Lease that says which one is active.
    cluster: &'static str,
    pub(super) lease: String,
}

/// A replica, whether it runs or not.
struct Replica {
    /// What it says it is.
    name: String,
    /// Of its process.
    process: String,
    /// What a real one is started by.
    program: Option<Daemon>,
}

impl Replica {
    fn of(world: &World, daemon: &str, name: String) -> Self {
        let process = format!("{daemon}-{name}");
        let program = match &world.ground {
            Ground::Real(_) => Some(program(world.daemon(daemon), &process, &name)),
            Ground::Simulated(_) => None,
        };
        Self { name, process, program }
    }
}

/// The daemon as a replica of this name.
fn program(daemon: &Daemon, process: &str, replica: &str) -> Daemon {
    let (mut daemon, listen) = (daemon.clone(), ports::free_address().unwrap());
    let at = daemon.spec.args.iter().position(|arg| arg == "--listen").unwrap() + 1;
    daemon.spec.args[at] = listen.to_string();
    process.clone_into(&mut daemon.spec.name);
    daemon.spec = daemon.spec.env("FREEPORT_REPLICA", replica);
    Daemon { listen, ..daemon }
}

async fn process_of(real: &Real, name: &str) -> Process {
    real.fleet.process(name).await.unwrap().unwrap()
}

impl Pair {
    /// Starts both, the first of which becomes the active one.
    pub(super) async fn of(world: &'static World, name: &'static str) -> Self {
        world.end(name, End::Stop).await;
        let (daemon, cluster) = name.rsplit_once('-').unwrap();
        let replicas = ["a", "b"].map(|replica| Replica::of(world, name, format!("{cluster}-{replica}")));
        let pair = Self { world, daemon: name, replicas, cluster, lease: active_lease(daemon) };
        pair.start(0).await;
        pair.becomes_active(0).await;
        pair.start(1).await;
        pair.stands_by(1).await;
        pair
    }

    pub(super) async fn start(&self, index: usize) {
        let Replica { name, program, .. } = &self.replicas[index];
        match program {
            Some(program) => drop(program.start(&self.world.real().fleet).await.unwrap()),
            None => self.world.sim().start_replica(self.daemon, name),
        }
    }

    /// SIGTERM.
    pub(super) async fn stop(&self, index: usize) {
        assert_eq!(self.end(index).await, Exit::Status(0));
    }

    /// [`stop`](Self::stop), also if it has ended; how it did.
    async fn end(&self, index: usize) -> Exit {
        let process = &self.replicas[index].process;
        match &self.world.ground {
            Ground::Real(real) => process_of(real, process).await.stop().await.unwrap(),
            Ground::Simulated(simulated) => {
                simulated.world.stop(process).await;
                Exit::Status(0)
            }
        }
    }

    /// SIGKILL.
    pub(super) async fn kill(&self, index: usize) {
        let process = &self.replicas[index].process;
        match &self.world.ground {
            Ground::Real(real) => drop(process_of(real, process).await.kill().await.unwrap()),
            Ground::Simulated(simulated) => simulated.world.kill(process),
        }
    }

    /// SIGSTOP or SIGCONT. A simulated one reaches no API server meanwhile, and its clock runs on.
    pub(super) async fn pause(&self, index: usize, is_paused: bool) {
        let process = &self.replicas[index].process;
        match &self.world.ground {
            Ground::Real(real) => {
                let signal = if is_paused { Signal::Pause } else { Signal::Resume };
                process_of(real, process).await.signal(signal).await.unwrap();
            }
            Ground::Simulated(simulated) => {
                for cluster in simulated.world.names() {
                    simulated.world.net.set(process, cluster, is_paused.then_some(Fault::Silent));
                }
            }
        }
    }

    /// Waits until it ends, since it finds that another one is active.
    pub(super) async fn loses(&self, index: usize) {
        let process = &self.replicas[index].process;
        match &self.world.ground {
            Ground::Real(real) => {
                assert_eq!(process_of(real, process).await.wait().await.unwrap(), Exit::Status(1));
            }
            Ground::Simulated(simulated) => {
                eventually(&format!("{process} ends"), || async {
                    if simulated.world.is_running(process) { Err("it runs".to_owned()) } else { Ok(()) }
                })
                .await;
            }
        }
    }

    async fn measured(&self, index: usize) -> Result<Metrics, String> {
        let Replica { process, program, .. } = &self.replicas[index];
        match program {
            Some(program) => {
                let read = Metrics::read(program.listen).await;
                read.map_err(|error| format!("{error}: {}", self.world.log_tail(process)))
            }
            None if self.world.sim().is_running(process) => self.world.metrics(process).await,
            None => Err(format!("{process} does not run")),
        }
    }

    pub(super) async fn becomes_active(&self, index: usize) {
        let what = format!("{} is active", self.replicas[index].process);
        eventually(&what, || async {
            let metrics = self.measured(index).await?;
            let seen = ["freeport_active", "freeport_present"].map(|metric| metrics.sum(metric));
            if seen == [1.0, 1.0] { Ok(()) } else { Err(format!("active, present: {seen:?}")) }
        })
        .await;
    }

    /// Waits until it knows all that it needs, and has written nothing.
    pub(super) async fn stands_by(&self, index: usize) {
        let what = format!("{} stands by", self.replicas[index].process);
        eventually(&what, || async {
            let metrics = self.measured(index).await?;
            let lists =
                metrics.of("freeport_watch_lists_total", "kind", "ResourceExport").unwrap_or_default();
            let written = ["freeport_active", "freeport_present", "freeport_writes_total"];
            let written = written.map(|metric| metrics.sum(metric));
            if lists >= 1.0 && written == [0.0; 3] { Ok(()) } else { Err(format!("{lists}, {written:?}")) }
        })
        .await;
    }

    fn cluster(&self) -> &'static Cluster {
        self.world.cluster(self.cluster)
    }

    pub(super) async fn lease(&self) -> Result<Lease, String> {
        self.cluster().api::<Lease>(SYSTEM).get(&self.lease).await.map_err(|error| error.to_string())
    }

    /// Somebody deletes the Lease: the active one, which has that index, makes it anew and stays the active one.
    pub(super) async fn lease_is_deleted(&self, active: usize) {
        let before = self.cluster().take::<Lease>(SYSTEM, &self.lease).await;
        eventually("the active one makes its Lease anew", || async {
            let now = self.lease().await?;
            let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
            let is_anew = now.uid() != before.uid() && holder(&now) == holder(&before);
            if is_anew { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await;
        self.becomes_active(active).await;
    }

    /// Somebody puts an older Lease back, whose holder has ended: the active one, which has that index, ends.
    pub(super) async fn lease_is_restored(&self, older: &Lease, active: usize) {
        let _: Lease = self.cluster().patch(SYSTEM, &self.lease, &json!({"spec": older.spec})).await;
        self.loses(active).await;
    }

    /// How many of them say that they are active.
    pub(super) async fn active(&self) -> usize {
        let mut active = 0;
        for index in [0, 1] {
            let read = self.measured(index).await;
            active += usize::from(read.is_ok_and(|metrics| metrics.sum("freeport_active") == 1.0));
        }
        active
    }

    /// Ends both; the daemon that the world has runs again.
    pub(super) async fn free(self) {
        for index in [0, 1] {
            self.end(index).await;
        }
        self.world.start(self.daemon).await;
    }
}
