//! Starting a cluster and waiting until it is ready.

mod node;

use std::{future::Future, time::Duration};

use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use kube::{Api, Client};
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::node::{Nodes, switch};
use super::Cluster;
use crate::{Component, Error, assembly, client, log_tail};

/// A loaded machine takes a while; ready within 6 seconds otherwise.
const LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(100);
/// For one request: a server that starts may accept and not answer.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Starts all components and waits until the cluster is usable.
pub(crate) async fn bring_up(
    cluster: &Cluster,
    nodes: Option<&Nodes>,
    progress: &impl Fn(&str),
) -> Result<(), Error> {
    let begun = Instant::now();
    for part in cluster.components() {
        start(cluster, *part).await?;
        if *part != Component::ControllerManager {
            progress(&format!("{}: {part} up", cluster.name()));
        }
        if let Some(fleet) = nodes {
            node::go_on(cluster, *part, fleet).await?;
        }
    }
    progress(&format!("{}: ready in {:.1} s", cluster.name(), begun.elapsed().as_secs_f64()));
    Ok(())
}

/// Starts a component and waits until it serves.
pub(crate) async fn start(cluster: &Cluster, component: Component) -> Result<(), Error> {
    let spec = assembly::spec(&cluster.layout, &cluster.equipment, component)
        .map_err(Error::file(component.name()))?;
    cluster.keeper.start(spec).await?;
    serves(cluster, component).await
}

async fn serves(cluster: &Cluster, component: Component) -> Result<(), Error> {
    match component {
        Component::Etcd => {
            let client = client::of_etcd(&cluster.layout).await?;
            until(cluster, component, || get(&client, "/health", "\"true\"")).await
        }
        Component::ApiServer => {
            let client = cluster.client().await?;
            until(cluster, component, || get(&client, "/readyz", "ok")).await
        }
        Component::ControllerManager => {
            let client = cluster.client().await?;
            until(cluster, component, || defaults(&client)).await
        }
        part_of_node => node::serves(cluster, part_of_node).await,
    }
}

/// Polls until the probe succeeds. A component that ends meanwhile is an error at once.
async fn until<F>(cluster: &Cluster, component: Component, probe: impl Fn() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), String>>,
{
    let deadline = Instant::now() + LIMIT;
    loop {
        let reason = match timeout(REQUEST_LIMIT, probe()).await {
            // Another program may answer on the port, if our process found it taken. (Its
            // certificate would be wrong too, but here the reason is known.)
            Ok(Ok(())) => return died(cluster, component).await,
            Ok(Err(reason)) => reason,
            Err(_) => "no answer".to_owned(),
        };
        died(cluster, component).await?;
        if Instant::now() >= deadline {
            let log = cluster.log(component);
            return Err(Error::NotReady {
                cluster: cluster.name().to_owned(),
                seconds: LIMIT.as_secs(),
                reason: format!("{component}: {reason}"),
                tail: log_tail::of_file(&log),
                log,
            });
        }
        sleep(POLL).await;
    }
}

/// An error if the component, or one it needs, has ended.
async fn died(cluster: &Cluster, waited_for: Component) -> Result<(), Error> {
    let processes = cluster.keeper.list().await?;
    for component in cluster.components().iter().copied().filter(|component| *component <= waited_for) {
        let name = cluster.process_name(component);
        let exit = processes.iter().find(|process| process.name == name).and_then(|state| state.exit.clone());
        let Some(exit) = exit else { continue };
        let log = cluster.log(component);
        let tail = log_tail::of_file(&log);
        let cluster_name = cluster.name().to_owned();
        if let Some(port) = cluster.layout.port_in_use(component, &tail) {
            return Err(Error::PortTaken { cluster: cluster_name, component, port });
        }
        return Err(Error::Died { cluster: cluster_name, component, exit, log, tail });
    }
    Ok(())
}

async fn get(client: &Client, path: &str, expected: &str) -> Result<(), String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match client.request_text(request).await {
        Ok(text) if text.contains(expected) => Ok(()),
        Ok(text) => Err(format!("{path}: {text}")),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

/// Whether the objects exist that the API server and the controllers create by themselves. The ServiceAccount is the last, from
/// kube-controller-manager.
async fn defaults(client: &Client) -> Result<(), String> {
    let said = |what: &'static str| move |error: kube::Error| format!("{what}: {error}");
    Api::<Namespace>::all(client.clone()).get("default").await.map_err(said("Namespace default"))?;
    let services = Api::<Service>::namespaced(client.clone(), "default");
    services.get("kubernetes").await.map_err(said("Service kubernetes"))?;
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    accounts.get("default").await.map_err(said("ServiceAccount default"))?;
    Ok(())
}
