//! What a cluster with a node needs besides, and when it is ready.

use std::{io, net::IpAddr, path::PathBuf};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{Instant, sleep},
};

use super::{LIMIT, POLL, died, until};
use crate::{
    Component, Error,
    cluster::Cluster,
    containerd, dns,
    keeper::{self, machine},
    node,
};

/// What the nodes of a fleet have in common.
pub(crate) struct Nodes {
    /// The process id of the switch.
    pub(crate) switch: u32,
    /// How many there are.
    pub(crate) count: u8,
    /// Images that each has.
    pub(crate) images: Vec<PathBuf>,
}

/// Waits until the switch has made its namespace.
pub(crate) async fn switch(keeper: &keeper::Client, name: &str, pid: u32) -> Result<(), Error> {
    let deadline = Instant::now() + LIMIT;
    while machine::is_complete(pid).is_err() {
        // Its end is the error.
        keeper.pid(name).await?;
        if Instant::now() >= deadline {
            return Err(Error::NoSwitch);
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// The steps that follow the start of a component.
pub(super) async fn go_on(cluster: &Cluster, done: Component, nodes: &Nodes) -> Result<(), Error> {
    let Some(network) = cluster.layout.record.network else { return Ok(()) };
    let index = cluster.layout.record.index;
    match done {
        Component::Machine => {
            Ok(network.attach(nodes.switch, cluster.machine().await?, index, nodes.count).await?)
        }
        Component::Containerd => cluster.load(&nodes.images).await,
        Component::KubeProxy => {
            let client = cluster.client().await?;
            let said = |source| Error::Dns { cluster: cluster.name().to_owned(), source: Box::new(source) };
            dns::deploy(&client, &node::dns_addresses(&cluster.layout)).await.map_err(said)?;
            until(cluster, Component::Kubelet, || dns::ready(&client)).await
        }
        _ => Ok(()),
    }
}

/// Waits until a component that only clusters with nodes have serves.
pub(super) async fn serves(cluster: &Cluster, component: Component) -> Result<(), Error> {
    match component {
        Component::Machine => {
            let machine = cluster.machine().await?;
            until(cluster, component, || async move { machine::is_complete(machine) }).await
        }
        // It has no clients; Pods that run show that it works.
        Component::Scheduler => died(cluster, component).await,
        Component::Containerd => {
            let machine = cluster.machine().await?;
            until(cluster, component, || connect(containerd::socket(machine))).await
        }
        Component::Kubelet => {
            let client = cluster.client().await?;
            let address = (cluster.address(), node::KUBELET_HEALTH_PORT);
            // The Node object may be of an earlier run.
            until(cluster, component, || is_healthy(address)).await?;
            until(cluster, component, || node_is_ready(&client, cluster.name())).await
        }
        Component::KubeProxy => {
            let address = (cluster.address(), node::PROXY_HEALTH_PORT);
            until(cluster, component, || is_healthy(address)).await
        }
        _ => Ok(()),
    }
}

async fn connect(socket: PathBuf) -> Result<(), String> {
    UnixStream::connect(&socket).await.map(drop).map_err(|error| format!("{}: {error}", socket.display()))
}

async fn node_is_ready(client: &Client, name: &str) -> Result<(), String> {
    let node = Api::<Node>::all(client.clone()).get(name).await.map_err(|error| format!("Node: {error}"))?;
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    match conditions.iter().find(|condition| condition.type_ == "Ready") {
        Some(ready) if ready.status == "True" => Ok(()),
        Some(ready) => Err(format!("the Node is not ready: {}", ready.message.clone().unwrap_or_default())),
        None => Err("the Node has no condition Ready yet".into()),
    }
}

/// The kubelet is healthy once it has containerd; kube-proxy, once its rules are in place.
async fn is_healthy(address: (IpAddr, u16)) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.map(|_| answer)
    };
    match ask.await.map_err(|error: io::Error| error.to_string())? {
        answer if answer.split(' ').nth(1) == Some("200") => Ok(()),
        answer => Err(answer),
    }
}
