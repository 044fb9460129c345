//! The replicas of one daemon: which of them is active, how they are restarted and killed.

use std::{
    fmt, fs,
    time::{Duration, Instant},
};

use api::{
    lease::{LeaseView, replica_of},
    name,
};
use e2e::{
    cluster::Cluster,
    fixture::SYSTEM,
    waiting::{PODS_READY, within},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

/// How many there are.
const REPLICAS: Option<i32> = Some(2);

/// Of a daemon in a cluster.
pub(super) struct Replicas<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) daemon: &'static str,
}

impl fmt::Display for Replicas<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.daemon, self.cluster.name)
    }
}

impl Replicas<'_> {
    /// All are replaced, one after the other, as by `kubectl rollout restart`.
    pub(super) async fn restart(&self) {
        let again = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
        let again = json!({"spec": {"template": again}});
        let _: Deployment = self.cluster.patch(SYSTEM, self.daemon, &again).await;
        self.run().await;
    }

    /// Kills the processes of all at once; the kubelet starts them again.
    pub(super) async fn crash(&self) {
        let before = self.active().await.unwrap();
        let name = format!("app.kubernetes.io/name={}", self.daemon);
        let pods = self.cluster.api::<Pod>(SYSTEM).list(&ListParams::default().labels(&name)).await.unwrap();
        for pod in &pods {
            kill_process_of(&pod.name_any());
        }
        self.becomes_active("another process", |holder| holder != before).await;
        self.run().await;
    }

    /// Kills the active one with its Pod, so that it does not come back; how long it takes until another one is active.
    pub(super) async fn take_over(&self) -> Duration {
        let before = self.active().await.unwrap();
        let lost = replica_of(&before);
        let begun = Instant::now();
        kill_process_of(lost);
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        self.cluster.api::<Pod>(SYSTEM).delete(lost, &at_once).await.unwrap();
        self.becomes_active("another replica", |holder| replica_of(holder) != lost).await;
        let took = begun.elapsed();
        self.run().await;
        took
    }

    /// Waits until as many run as there have to be, all of the same generation.
    async fn run(&self) {
        let deployments = self.cluster.api::<Deployment>(SYSTEM);
        within(PODS_READY, &format!("all replicas run: {self}"), || async {
            let found = deployments.get(self.daemon).await.map_err(|error| error.to_string())?;
            let status = found.status.unwrap_or_default();
            let is_new = status.observed_generation == found.metadata.generation;
            let numbers = [status.replicas, status.updated_replicas, status.available_replicas];
            if is_new && numbers == [REPLICAS; 3] { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    async fn becomes_active(&self, who: &str, is_it: impl Fn(&str) -> bool) {
        within(PODS_READY, &format!("{who} is active: {self}"), || async {
            let holder = self.active().await?;
            if is_it(&holder) { Ok(()) } else { Err(holder) }
        })
        .await;
    }

    /// Who holds the Lease of the active one.
    async fn active(&self) -> Result<String, String> {
        let leases = self.cluster.api::<LeaseView>(SYSTEM);
        let lease = leases.get(&name::active_lease(self.daemon)).await.map_err(|error| error.to_string())?;
        lease.holder().map(str::to_owned).ok_or_else(|| "nobody".to_owned())
    }
}

/// SIGKILL for the daemon that runs in this Pod, which it knows by its environment.
fn kill_process_of(pod: &str) {
    let told = format!("FREEPORT_REPLICA={pod}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let its = processes.filter(|process| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == told.as_bytes())
    });
    let pids: Vec<i32> = its.filter_map(|process| process.file_name().to_str()?.parse().ok()).collect();
    assert_eq!(pids.len(), 1, "the processes of {pod}: {pids:?}");
    kill(Pid::from_raw(pids[0]), Signal::SIGKILL).unwrap();
}
