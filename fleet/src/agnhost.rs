//! Test servers in Pods, which answer with their name and send requests to each other: Kubernetes' `test/images/agnhost netexec`.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, core::response::reason};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::images;

/// Where a server listens for HTTP: `/hostname`, `/clientip`.
pub const HTTP_PORT: u16 = 8080;
/// Where it listens for UDP.
const UDP_PORT: u16 = 8081;
/// Of a Service in front of servers.
pub const SERVICE_PORT: u16 = 80;

/// The protocol of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, a connection for each question.
    Http,
    /// A packet for each.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Udp => "udp",
        })
    }
}

/// `spec` of a Pod that is a server.
pub fn pod_spec() -> Value {
    let container = json!({
        "name": "server",
        "image": images::agnhost(),
        "imagePullPolicy": "Never",
        "args": ["netexec", format!("--http-port={HTTP_PORT}"), format!("--udp-port={UDP_PORT}")],
        "readinessProbe": {"httpGet": {"path": "/hostname", "port": HTTP_PORT}, "periodSeconds": 1},
        // What asks for no processor time gets none for seconds on a machine that is busy.
        "resources": {"requests": {"cpu": "50m"}},
    });
    json!({"containers": [container], "terminationGracePeriodSeconds": 0})
}

/// `spec` of a Deployment of servers with label `app`.
pub fn deployment_spec(app: &str, replicas: usize) -> Value {
    let labels = json!({"app": app});
    json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
    })
}

/// `spec` of a Service of all servers with label `app`: TCP and UDP on [`SERVICE_PORT`].
pub fn service_spec(app: &str) -> Value {
    json!({
        "selector": {"app": app},
        "ports": [
            {"name": "http", "port": SERVICE_PORT, "targetPort": HTTP_PORT},
            {"name": "udp", "port": SERVICE_PORT, "protocol": "UDP", "targetPort": UDP_PORT},
        ],
    })
}

/// The address of a Pod that is ready and stays: the first if it has several.
pub fn ready_address(pod: &Pod) -> Option<String> {
    ready_addresses(pod).into_iter().next()
}

/// All addresses of a Pod that is ready and stays.
pub fn ready_addresses(pod: &Pod) -> Vec<String> {
    let status = pod.status.clone().unwrap_or_default();
    let is_ready = status.conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True");
    let addresses = status.pod_ips.into_iter().flatten().map(|address| address.ip);
    addresses.filter(|_| is_ready && pod.metadata.deletion_timestamp.is_none()).collect()
}

/// Makes the server in Pod `from` (Namespace and name) send a request for `what` to another one. Returns the answer, or why there is none.
///
/// # Errors
/// The Pod could not be reached through its API server, or has no address there: a kubelet that starts says none for a moment.
pub async fn ask(
    client: &Client,
    from: (&str, &str),
    protocol: Protocol,
    server: (&str, u16),
    what: &str,
) -> kube::Result<Result<String, String>> {
    let request = http::Request::get(question(from, protocol, server, what, 1))
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    match client.request::<Replies>(request).await {
        Ok(heard) => Ok(heard.responses.into_iter().next().ok_or_else(|| heard.errors.join(", "))),
        // Its answer for a name that does not resolve; the API server's own refusal has a reason.
        Err(kube::Error::Api(status)) if status.code == 400 && !reason::is_known(&status.reason) => {
            Ok(Err(status.message))
        }
        Err(error) => Err(error),
    }
}

/// The path on the API server that makes Pod `from` send so many requests.
pub fn question(
    (namespace, pod): (&str, &str),
    protocol: Protocol,
    (host, port): (&str, u16),
    what: &str,
    times: u32,
) -> String {
    format!(
        "/api/v1/namespaces/{namespace}/pods/{pod}:{HTTP_PORT}/proxy/dial\
         ?protocol={protocol}&tries={times}&host={host}&port={port}&request={what}"
    )
}

/// What `netexec` returns about its requests.
#[derive(Deserialize)]
struct Replies {
    #[serde(default)]
    responses: Vec<String>,
    #[serde(default)]
    errors: Vec<String>,
}
