//! Two replicas of a daemon, and the Lease by which they elect.

use api::name::active_lease;
use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{SYSTEM, World},
    metrics::Metrics,
    waiting::eventually,
};
use fleet::{Exit, Process, Signal, cluster_set::Daemon, ports};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde_json::json;

/// Two replicas of a daemon, in place of the one of that name.
pub(super) struct Pair {
    world: &'static World,
    replicas: [Daemon; 2],
    /// Where they run, and the Lease that says which one is active.
    cluster: &'static str,
    pub(super) lease: String,
}

impl Pair {
    /// Starts both, the first of which becomes the active one.
    pub(super) async fn of(world: &'static World, name: &'static str) -> Self {
        world.end(name, End::Stop).await;
        let (daemon, cluster) = name.rsplit_once('-').unwrap();
        let replicas = ["a", "b"].map(|replica| {
            let mut daemon = world.daemon(name).clone();
            let listen = ports::free_address().unwrap();
            let at = daemon.spec.args.iter().position(|arg| arg == "--listen").unwrap() + 1;
            daemon.spec.args[at] = listen.to_string();
            daemon.spec.name = format!("{name}-{replica}");
            daemon.spec = daemon.spec.env("FREEPORT_REPLICA", format!("{name}-{replica}"));
            Daemon { listen, ..daemon }
        });
        let pair = Self { world, replicas, cluster, lease: active_lease(daemon) };
        pair.start(0).await;
        pair.becomes_active(0).await;
        pair.start(1).await;
        pair.stands_by(1).await;
        pair
    }

    pub(super) async fn start(&self, index: usize) {
        self.replicas[index].start(&self.world.real().fleet).await.unwrap();
    }

    async fn measured(&self, index: usize) -> Result<Metrics, String> {
        let read = Metrics::read(self.replicas[index].listen).await;
        read.map_err(|error| format!("{error}: {}", self.world.log_tail(&self.replicas[index].spec.name)))
    }

    pub(super) async fn becomes_active(&self, index: usize) {
        let what = format!("{} is active", self.replicas[index].spec.name);
        eventually(&what, || async {
            let metrics = self.measured(index).await?;
            let seen = ["freeport_active", "freeport_present"].map(|metric| metrics.sum(metric));
            if seen == [1.0, 1.0] { Ok(()) } else { Err(format!("active, present: {seen:?}")) }
        })
        .await;
    }

    /// Waits until it knows all that it needs, and has written nothing.
    pub(super) async fn stands_by(&self, index: usize) {
        let what = format!("{} stands by", self.replicas[index].spec.name);
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

    pub(super) async fn signal(&self, index: usize, signal: Signal) {
        self.process(index).await.signal(signal).await.unwrap();
    }

    pub(super) async fn process(&self, index: usize) -> Process {
        self.world.real().fleet.process(&self.replicas[index].spec.name).await.unwrap().unwrap()
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
        let exit = self.process(active).await.wait().await.unwrap();
        assert_eq!(exit, Exit::Status(1), "it finds that another one is active");
    }

    /// How many of them say that they are active.
    pub(super) async fn active(&self) -> usize {
        let mut active = 0;
        for replica in &self.replicas {
            let read = Metrics::read(replica.listen).await;
            active += usize::from(read.is_ok_and(|metrics| metrics.sum("freeport_active") == 1.0));
        }
        active
    }

    /// Ends both; the daemon that the world has runs again.
    pub(super) async fn free(self) {
        for index in [0, 1] {
            self.process(index).await.stop().await.unwrap();
        }
        let name = self.replicas[0].spec.name.trim_end_matches("-a");
        self.world.start(name).await;
    }
}
