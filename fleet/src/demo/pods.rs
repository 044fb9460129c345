//! The demo where there are nodes: Pods serve, and a Pod of another cluster gets their answers.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use serde_json::json;

use super::{Error, NAMESPACE, SERVICE, apply, service, until};
use crate::{
    Cluster, Family,
    agnhost::{self, Protocol, SERVICE_PORT},
    dns::clusterset_name,
};

/// The Pod that sends requests.
const CLIENT: &str = "client";
/// At first, and when scaled.
const REPLICAS: [usize; 2] = [2, 3];
/// Questions by each name: with three servers, that one of them is not among the answers is one in ten thousand.
const QUESTIONS: usize = 24;

/// A Deployment and a Service in front of it. Addresses of its Pods, by name, once all are ready.
pub(super) async fn serve(
    exporter: &Client,
    from: &Cluster,
    family: Family,
) -> Result<BTreeMap<String, String>, Error> {
    scale(exporter, REPLICAS[0]).await?;
    service(exporter, from, agnhost::service_spec(SERVICE)).await?;
    let servers = running(exporter, from.name(), (SERVICE, REPLICAS[0]), family).await?;
    for (name, address) in &servers {
        println!("   Pod            {name:19} {address}, ready");
    }
    Ok(servers)
}

/// Makes a Pod of the importing cluster send requests to the ClusterIP and to the name, then scales the Deployment and repeats it.
pub(super) async fn ask(
    exporter: &Client,
    importer: &Client,
    [from, to]: [&str; 2],
    family: Family,
    ip: &str,
) -> Result<(), Error> {
    println!("\n6. A Pod in {to} sends requests, and Pods in {from} answer:");
    let metadata = json!({"name": CLIENT, "labels": {"app": CLIENT}});
    let client: Pod = serde_json::from_value(json!({"metadata": metadata, "spec": agnhost::pod_spec()}))?;
    apply(Api::namespaced(importer.clone(), NAMESPACE), CLIENT, &client).await?;
    running(importer, to, (CLIENT, 1), family).await?;
    let name = clusterset_name(NAMESPACE, SERVICE);
    for host in [ip, &name] {
        show(host, &heard(importer, to, host, REPLICAS[0]).await?);
    }
    println!("\n7. The Deployment in {from} is scaled from {} to {} Pods:", REPLICAS[0], REPLICAS[1]);
    scale(exporter, REPLICAS[1]).await?;
    running(exporter, from, (SERVICE, REPLICAS[1]), family).await?;
    for host in [ip, &name] {
        show(host, &heard(importer, to, host, REPLICAS[1]).await?);
    }
    Ok(())
}

/// See [`super::question`].
pub(super) fn question() -> String {
    let name = clusterset_name(NAMESPACE, SERVICE);
    agnhost::question((NAMESPACE, CLIENT), Protocol::Http, (&name, SERVICE_PORT), "hostname", 4)
}

fn show(host: &str, heard: &BTreeMap<String, usize>) {
    println!("   {host}");
    for (server, times) in heard {
        println!("      {server:19} answered {times} of {QUESTIONS} questions");
    }
}

async fn scale(client: &Client, replicas: usize) -> Result<(), Error> {
    let spec = agnhost::deployment_spec(SERVICE, replicas);
    let deployment: Deployment =
        serde_json::from_value(json!({"metadata": {"name": SERVICE}, "spec": spec}))?;
    apply(Api::namespaced(client.clone(), NAMESPACE), SERVICE, &deployment).await.map(drop)
}

/// Addresses of the family of the Pods with this label, by name, once there are that many and all are ready.
async fn running(
    client: &Client,
    cluster: &str,
    (app, number): (&str, usize),
    family: Family,
) -> Result<BTreeMap<String, String>, Error> {
    let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    let labelled = ListParams::default().labels(&format!("app={app}"));
    until(cluster, async || {
        let pods = pods.list(&labelled).await?.items;
        let ready = |pod: &Pod| {
            let address = agnhost::ready_addresses(pod).into_iter().find(|address| family.is_of(address));
            Some((pod.name_any(), address?))
        };
        let addresses: BTreeMap<_, _> = pods.iter().filter_map(ready).collect();
        let all = addresses.len() == number && pods.len() == number;
        Ok(if all {
            Ok(addresses)
        } else {
            Err(format!("{} of {number} Pods of {app} are ready", addresses.len()))
        })
    })
    .await
}

/// How many questions each server has answered, once all that there are do.
async fn heard(
    client: &Client,
    cluster: &str,
    host: &str,
    servers: usize,
) -> Result<BTreeMap<String, usize>, Error> {
    let from = (NAMESPACE, CLIENT);
    until(cluster, async || {
        let mut heard = BTreeMap::new();
        for _ in 0..QUESTIONS {
            let answer = agnhost::ask(client, from, Protocol::Http, (host, SERVICE_PORT), "hostname").await?;
            match answer {
                Ok(server) => *heard.entry(server).or_default() += 1,
                Err(error) => return Ok(Err(format!("{host} did not answer: {error}"))),
            }
        }
        let all = heard.len() == servers;
        Ok(if all { Ok(heard) } else { Err(format!("only {heard:?} answer as {host}")) })
    })
    .await
}
