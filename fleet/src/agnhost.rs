//! Servers that say who they are and ask others, in Pods: Kubernetes' `test/images/agnhost`, called with `netexec`.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::images;

/// Where a server listens for HTTP: `/hostname`, `/clientip`.
pub const HTTP_PORT: u16 = 8080;
/// Where it listens for UDP.
const UDP_PORT: u16 = 8081;
/// Of a Service in front of servers.
pub const SERVICE_PORT: u16 = 80;

/// By what a server is asked.
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

/// Lets the server that Pod `from` (Namespace and name) is ask another one for `what`. Its answer, or why it got none.
///
/// # Errors
/// The Pod could not be reached, by way of its API server.
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
    match client.request::<Heard>(request).await {
        Ok(heard) => Ok(heard.responses.into_iter().next().ok_or_else(|| heard.errors.join(", "))),
        // What it says of a name that stands for nothing.
        Err(kube::Error::Api(status)) if status.code == 400 => Ok(Err(status.message)),
        Err(error) => Err(error),
    }
}

/// The path on the API server that lets Pod `from` ask so many times.
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

/// What `netexec` says of a question it has asked.
#[derive(Deserialize)]
struct Heard {
    #[serde(default)]
    responses: Vec<String>,
    #[serde(default)]
    errors: Vec<String>,
}
