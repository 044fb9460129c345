//! Logs and metrics of the daemons of one cluster, through its API server.

use std::collections::BTreeMap;

use api::label;
use futures::future::join_all;
use http::Request;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::{Resource, ResourceExt, api::LogParams};
use serde::Deserialize;

use super::read::Asked;
use crate::{
    Error,
    cluster::Cluster,
    objects::{SYSTEM, offload::webhook},
};

/// Lines of a log that are read, from its end.
const LINES: i64 = 50_000;

/// Label with the name of a daemon.
const DAEMON: &str = "app.kubernetes.io/name";

/// Name of the port that serves metrics.
const METRICS: &str = "metrics";

/// A text, the path of its file, and what to say if it cannot be read.
struct Wanted {
    file: String,
    part: String,
    request: Result<Request<Vec<u8>>, String>,
}

/// Logs and metrics by the paths of their files, and what is missing.
pub(super) async fn read(cluster: &Cluster, asked: &Asked) -> (BTreeMap<String, String>, Vec<String>) {
    if asked.seen.away.is_some() {
        return (BTreeMap::new(), Vec::new());
    }
    let pods: Vec<Pod> = asked.pods().iter().filter_map(|pod| Pod::deserialize(pod).ok()).collect();
    let daemons = [label::LEADER, label::MEMBER, webhook::NAME];
    let is_daemon =
        |pod: &&Pod| pod.labels().get(DAEMON).is_some_and(|name| daemons.contains(&name.as_str()));
    let pods: Vec<_> = pods.iter().filter(is_daemon).collect();
    let mut missing = Vec::new();
    if pods.is_empty() {
        missing.push(format!(
            "{}: no logs and metrics: Namespace {SYSTEM} has no Pod of a daemon, which may run outside of the cluster",
            cluster.name
        ));
    }
    let wanted: Vec<_> = pods.into_iter().flat_map(wanted).collect();
    let all = join_all(wanted.iter().map(|wanted| Box::pin(one(cluster, wanted)))).await;
    let mut texts = BTreeMap::new();
    for (wanted, text) in wanted.into_iter().zip(all) {
        match text {
            Ok(text) => drop(texts.insert(wanted.file, text)),
            Err(error) => missing.push(error.to_string()),
        }
    }
    (texts, missing)
}

async fn one(cluster: &Cluster, wanted: &Wanted) -> Result<String, Error> {
    let request = wanted.request.clone().map_err(Error::Argument)?;
    cluster.request(format!("read the {}", wanted.part), cluster.client.request_text(request)).await
}

fn wanted(pod: &Pod) -> Vec<Wanted> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut all = Vec::new();
    for container in containers {
        all.push(log(pod, container, false));
        if has_restarted(pod, container) {
            all.push(log(pod, container, true));
        }
        all.extend(metrics(pod, container));
    }
    all
}

fn has_restarted(pod: &Pod, container: &Container) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.into_iter().any(|status| status.name == container.name && status.restart_count > 0)
}

fn log(pod: &Pod, container: &Container, previous: bool) -> Wanted {
    let (name, container) = (pod.name_any(), &container.name);
    let params = LogParams {
        container: Some(container.clone()),
        previous,
        tail_lines: Some(LINES),
        timestamps: true,
        ..LogParams::default()
    };
    let (suffix, part) = if previous { (".previous", "previous log") } else { ("", "log") };
    Wanted {
        file: format!("logs/{name}/{container}{suffix}.log"),
        part: format!("{part} of container {container} of Pod {SYSTEM}/{name}"),
        request: kube::core::Request::new(pods()).logs(&name, &params).map_err(|error| error.to_string()),
    }
}

fn metrics(pod: &Pod, container: &Container) -> Option<Wanted> {
    let mut ports = container.ports.iter().flatten();
    let port = ports.find(|port| port.name.as_deref() == Some(METRICS))?.container_port;
    let name = pod.name_any();
    let request = Request::get(format!("{}/{name}:{port}/proxy/metrics", pods())).body(Vec::new());
    Some(Wanted {
        file: format!("metrics/{name}.txt"),
        part: format!("metrics of Pod {SYSTEM}/{name}"),
        request: request.map_err(|error| error.to_string()),
    })
}

fn pods() -> String {
    Pod::url_path(&(), Some(SYSTEM))
}
