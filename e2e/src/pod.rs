//! Pods on a fleet's nodes, and what they see from where they are.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, AttachedProcess};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::{cluster::Cluster, waiting::eventually};

/// Where `agnhost netexec` listens for HTTP.
pub const HTTP_PORT: u16 = 8080;

/// Whether tests with nodes can run here. Where they cannot, says so in a line.
pub fn nodes_are_possible() -> bool {
    let Err(why) = fleet::packages::check() else { return true };
    eprintln!("skipped: {}", why.to_string().lines().next().unwrap_or_default());
    false
}

impl Cluster {
    /// A Pod that answers by HTTP who it is (`/hostname`) and who asks (`/clientip`), with the label `app`. Comes
    /// back with its address once it is ready.
    pub async fn run_server(&self, namespace: &str, name: &str) -> String {
        let container = json!({
            "name": "server",
            "image": fleet::images::agnhost(),
            "imagePullPolicy": "Never",
            "args": ["netexec", format!("--http-port={HTTP_PORT}")],
            "readinessProbe": {"httpGet": {"path": "/hostname", "port": HTTP_PORT}, "periodSeconds": 1},
        });
        let spec = json!({"containers": [container], "terminationGracePeriodSeconds": 0});
        let metadata = json!({"name": name, "labels": {"app": name}});
        let _: Pod = self.create(namespace, json!({"metadata": metadata, "spec": spec})).await;
        let what = format!("Pod {name} of {} is ready", self.name);
        eventually(&what, || async {
            let pod = self.api::<Pod>(namespace).get(name).await.map_err(|error| error.to_string())?;
            ready_address(&pod).ok_or_else(|| format!("{:?}", pod.status))
        })
        .await
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

    /// Asks a server for a path by HTTP, from a Pod of [`Cluster::run_server`].
    pub async fn ask_from(
        &self,
        namespace: &str,
        pod: &str,
        server: (&str, u16),
        path: &str,
    ) -> Result<String, String> {
        let (host, port) = server;
        let url = format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}:{HTTP_PORT}/proxy/dial\
             ?protocol=http&tries=1&host={host}&port={port}&request={path}"
        );
        let request = http::Request::get(url).body(Vec::new()).unwrap();
        let answer = self.client.request::<Dialed>(request).await.map_err(|error| error.to_string())?;
        answer.responses.into_iter().next().ok_or_else(|| answer.errors.join(", "))
    }
}

/// What `agnhost netexec` says of a request it has made.
#[derive(Deserialize)]
struct Dialed {
    #[serde(default)]
    responses: Vec<String>,
    #[serde(default)]
    errors: Vec<String>,
}

async fn output(running: &mut AttachedProcess) -> [String; 2] {
    let (mut stdout, mut stderr) = (running.stdout().unwrap(), running.stderr().unwrap());
    let (mut out, mut err) = (String::new(), String::new());
    let (read, failed) = tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
    read.and(failed).unwrap();
    [out, err]
}

fn ready_address(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let ready = status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    status.pod_ip.clone().filter(|_| ready)
}
