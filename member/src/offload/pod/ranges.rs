//! The ranges of this cluster's Services: an address in one of them is no Pod's.

use std::{net::IpAddr, sync::Arc, time::Duration};

use ipnet::IpNet;
use k8s_openapi::api::{core::v1::Service, networking::v1::ServiceCIDR};
use kit::{backoff::Backoff, failure::classify, index::Shared};
use kube::{
    Api, Client, Resource,
    api::{ListParams, ObjectMeta},
};
use serde::Deserialize;
use tokio::time::timeout;

use api::view::{Lenient, lean};

/// A cluster gets another range once in its life.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// After no answer.
const RETRY: Backoff = Backoff { first: Duration::from_secs(3), longest: Duration::from_secs(60) };
/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A ServiceCIDR.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ServiceCIDR)]
struct Ranges {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Spec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    cidrs: Vec<String>,
}

/// The Service of the API server, of which every cluster has one.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Service)]
struct ApiService {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<Addresses>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Addresses {
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
}

/// Asks now and then. `asked` is true once it was tried: nothing waits longer for the answer, since API servers before Kubernetes 1.33 do
/// not tell. Of those the addresses of Service `default/kubernetes` are known at least: who has that one is asked for credentials.
pub(super) async fn learn(
    client: Client,
    services: Shared<Arc<[IpNet]>>,
    asked: tokio::sync::watch::Sender<bool>,
) {
    let api = Api::<Ranges>::all(client.clone());
    let (mut waits, mut is_said) = (RETRY.waits(), false);
    loop {
        let found = match timeout(PATIENCE, api.list(&ListParams::default())).await {
            Ok(found) => found.map_err(|error| classify(&error).to_string()),
            Err(_) => Err("no answer".to_owned()),
        };
        let mut is_new = false;
        let wait = match found {
            Ok(found) => {
                let ranges: Arc<[IpNet]> = found.iter().flat_map(of).collect();
                is_new = services.with(|services| *services != ranges);
                services.with(|services| *services = ranges);
                (waits, is_said) = (RETRY.waits(), false);
                ASK_AGAIN
            }
            Err(why) => {
                if services.with(|services| services.is_empty()) {
                    let own = api_server(&client).await;
                    is_new = !own.is_empty();
                    services.with(|services| *services = own);
                }
                if !std::mem::replace(&mut is_said, true) {
                    tracing::warn!(
                        why,
                        "the ranges of this cluster's Services are not known (ServiceCIDRs): a host may claim one of their addresses for a Pod, but that of the API server"
                    );
                }
                waits.next().unwrap_or(ASK_AGAIN)
            }
        };
        // Whoever waits for it looks again when the ranges are other ones.
        asked.send_if_modified(|asked| !std::mem::replace(asked, true) || is_new);
        tokio::time::sleep(wait).await;
    }
}

/// The addresses of the API server's Service, as ranges; none if it does not answer.
async fn api_server(client: &Client) -> Arc<[IpNet]> {
    let services = Api::<ApiService>::namespaced(client.clone(), "default");
    match timeout(PATIENCE, services.get("kubernetes")).await {
        Ok(Ok(service)) => addresses(&service).into(),
        Ok(Err(_)) | Err(_) => Arc::default(),
    }
}

fn addresses(service: &ApiService) -> Vec<IpNet> {
    let ips = service.spec.0.as_ref().map(|spec| spec.cluster_ips.as_slice()).unwrap_or_default();
    ips.iter().filter_map(|ip| ip.parse::<IpAddr>().ok()).map(IpNet::from).collect()
}

fn of(ranges: &Ranges) -> Vec<IpNet> {
    let cidrs = ranges.spec.0.as_ref().map(|spec| spec.cidrs.as_slice()).unwrap_or_default();
    cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_of_both_families_are_read() {
        let read = |spec| {
            of(&serde_json::from_value(json!({"metadata": {"name": "kubernetes"}, "spec": spec})).unwrap())
        };
        let both = read(json!({"cidrs": ["10.96.0.0/12", "odd", "fd00::/112"]}));
        assert_eq!(both.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.96.0.0/12", "fd00::/112"]);
        assert!(read(json!(7)).is_empty());
    }

    #[test]
    fn without_ranges_the_address_of_the_api_server_is_no_pods() {
        let read = |spec| {
            addresses(
                &serde_json::from_value(json!({"metadata": {"name": "kubernetes"}, "spec": spec})).unwrap(),
            )
        };
        let both = read(json!({"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1", "None"]}));
        assert!(api::offload::address::check("10.96.0.1", &both).is_err());
        assert!(api::offload::address::check("fd00::1", &both).is_err());
        assert_eq!(api::offload::address::check("10.96.0.2", &both), Ok(()));
        assert!(read(json!(7)).is_empty());
    }
}
