//! Pods on a fleet's nodes: servers that say who they are, and programs run in them.

use std::{collections::BTreeSet, sync::Once};

use fleet::agnhost::{self, ready_address};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
};
use kube::{
    ResourceExt,
    api::{AttachParams, AttachedProcess, DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::{cluster::Cluster, say::say, waiting::eventually};

/// So many times in a row a webhook may be late.
const LATE: usize = 3;

/// Whether tests with nodes can run here. Where they cannot, says so in a line; in CI that is a failure.
pub fn nodes_are_possible() -> bool {
    nodes_are_possible_for(&[])
}

/// [`nodes_are_possible`], of clusters named as [`bring_up`](fn@crate::bring_up::bring_up) takes them, some of which may have IPv6.
pub fn nodes_are_possible_for(clusters: &[&str]) -> bool {
    let clusters: Vec<_> = clusters.iter().map(|cluster| cluster.parse().unwrap()).collect();
    let Err(why) = fleet::packages::check_for(&clusters) else { return true };
    let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    assert!(!is_ci, "{why}");
    static SAID: Once = Once::new();
    SAID.call_once(|| eprintln!("skipped: tests with nodes: {why}"));
    false
}

impl Cluster {
    /// A new Pod of the Namespace, or why there is none. It has no image that runs anywhere.
    pub async fn new_pod(&self, namespace: &str) -> Result<Pod, String> {
        self.create_pod(namespace, &PostParams::default()).await
    }

    /// The same without creating it.
    pub async fn try_pod(&self, namespace: &str) -> Result<Pod, String> {
        self.create_pod(namespace, &PostParams { dry_run: true, ..PostParams::default() }).await
    }

    async fn create_pod(&self, namespace: &str, params: &PostParams) -> Result<Pod, String> {
        let spec = json!({"containers": [{"name": "c", "image": "localhost/none"}]});
        let pod = json!({"metadata": {"generateName": "web-"}, "spec": spec});
        self.admit(namespace, params, &serde_json::from_value(pod).unwrap()).await
    }

    /// Creates a Pod. Where a webhook does not answer within its three seconds, as on a machine with too much to do, it is created again, as
    /// controllers and people do.
    pub async fn admit(&self, namespace: &str, params: &PostParams, pod: &Pod) -> Result<Pod, String> {
        let is_late =
            |why: &String| ["failed calling webhook", "deadline exceeded"].iter().all(|it| why.contains(it));
        let create =
            async || self.api::<Pod>(namespace).create(params, pod).await.map_err(|error| error.to_string());
        for _ in 0..LATE {
            match create().await {
                Err(why) if is_late(&why) => say(&why),
                created => return created,
            }
        }
        create().await
    }

    /// A Pod that answers by HTTP who it is (`/hostname`) and who asks (`/clientip`), with the label `app`. Comes
    /// back with its address once it is ready.
    pub async fn run_server(&self, namespace: &str, name: &str) -> String {
        let metadata = json!({"name": name, "labels": {"app": name}});
        let pod = json!({"metadata": metadata, "spec": agnhost::pod_spec()});
        let _: Pod = self.create(namespace, pod).await;
        let what = format!("Pod {name} of {} is ready", self.name);
        eventually(&what, || async {
            let pod = self.api::<Pod>(namespace).get(name).await.map_err(|error| error.to_string())?;
            ready_address(&pod).ok_or_else(|| format!("{:?}", pod.status))
        })
        .await
    }

    /// Service `name`, port 80 TCP and UDP, in front of a Deployment of servers. The names of its Pods once all are ready.
    pub async fn run_service(&self, namespace: &str, name: &str, replicas: usize) -> BTreeSet<String> {
        self.run_service_of(namespace, name, replicas, None).await
    }

    /// [`Cluster::run_service`] with this IP family, or the one that the cluster prefers.
    pub async fn run_service_of(
        &self,
        namespace: &str,
        name: &str,
        replicas: usize,
        family: Option<&str>,
    ) -> BTreeSet<String> {
        let metadata = json!({"name": name});
        let spec = agnhost::deployment_spec(name, replicas);
        let _: Deployment = self.create(namespace, json!({"metadata": metadata, "spec": spec})).await;
        let mut spec = agnhost::service_spec(name);
        if let Some(family) = family {
            spec["ipFamilies"] = json!([family]);
        }
        let _: Service = self.create(namespace, json!({"metadata": metadata, "spec": spec})).await;
        self.servers(namespace, name, replicas).await
    }

    /// The names of the ready Pods with label `app`, once there are that many and no others.
    pub async fn servers(&self, namespace: &str, app: &str, number: usize) -> BTreeSet<String> {
        let what = format!("{number} Pods of {app} in {} are ready", self.name);
        eventually(&what, || async {
            let params = ListParams::default().labels(&format!("app={app}"));
            let pods = self.api::<Pod>(namespace).list(&params).await.map_err(|error| error.to_string())?;
            let ready = pods.iter().filter(|pod| ready_address(pod).is_some()).count();
            let names: BTreeSet<_> = pods.iter().map(ResourceExt::name_any).collect();
            if ready == number && names.len() == number {
                Ok(names)
            } else {
                Err(format!("{ready} of {names:?}"))
            }
        })
        .await
    }

    /// Deletes all Pods of a Namespace and waits until they are gone, whatever comes in their place.
    pub async fn replace_pods(&self, namespace: &str) {
        let pods = self.api::<Pod>(namespace);
        let had = pods.list(&ListParams::default()).await.unwrap();
        for pod in &had {
            pods.delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        }
        let had: BTreeSet<_> = had.iter().map(ResourceExt::uid).collect();
        eventually(&format!("other Pods in {namespace} of {}", self.name), || async {
            let there = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let left: Vec<_> = there.iter().filter(|pod| had.contains(&pod.uid())).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
    }

    /// Waits until no Pod has this label.
    pub async fn pods_end(&self, namespace: &str, label: &str) {
        eventually(&format!("no Pod of {} with {label}", self.name), || async {
            let params = ListParams::default().labels(label);
            let pods = self.api::<Pod>(namespace).list(&params).await.map_err(|error| error.to_string())?;
            if pods.items.is_empty() { Ok(()) } else { Err(format!("{:?}", pods.items)) }
        })
        .await;
    }

    /// Runs a program in a Pod; what it wrote to stdout, or to stderr if it failed.
    pub async fn exec(&self, namespace: &str, pod: &str, command: &[&str]) -> Result<String, String> {
        let params = AttachParams::default().stdout(true).stderr(true);
        let mut running = self
            .api::<Pod>(namespace)
            .exec(pod, command.iter().copied(), &params)
            .await
            .map_err(|error| error.to_string())?;
        let [stdout, stderr] = output(&mut running).await;
        let status = running.take_status().unwrap().await;
        match status {
            Some(status) if status.status.as_deref() == Some("Success") => Ok(stdout),
            status => Err(format!("{stdout}{stderr} ({status:?})")),
        }
    }
}

async fn output(running: &mut AttachedProcess) -> [String; 2] {
    let (mut stdout, mut stderr) = (running.stdout().unwrap(), running.stderr().unwrap());
    let (mut out, mut err) = (String::new(), String::new());
    let (read, failed) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
    read.and(failed).unwrap();
    [out, err]
}
