//! The ranges of this cluster's Services: an address in one of them is no Pod's, and no endpoint of another cluster has it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use ipnet::IpNet;
use k8s_openapi::api::{core::v1::Service, networking::v1::ServiceCIDR};
use kit::{
    backoff::Backoff,
    failure::{Failure, classify},
    index::Shared,
    list,
};
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

/// Bits of an address that tell Services of one range apart, at the most: API servers take no larger ones.
const RANGE_BITS: u8 = 20;

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

/// A Service of this cluster.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Service)]
struct Addressed {
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

/// Asks now and then. `asked` is true once it was tried: nothing waits longer for the answer. API servers before Kubernetes 1.33 do not
/// tell; of those the addresses of Services show it.
pub(crate) async fn learn(
    client: Client,
    services: Shared<Arc<[IpNet]>>,
    asked: tokio::sync::watch::Sender<bool>,
) {
    let (mut waits, mut is_told, mut is_said) = (RETRY.waits(), false, false);
    loop {
        let answer = match told(&client).await {
            Ok(ranges) => {
                is_told = true;
                Answer { ranges: Some(ranges), failure: None }
            }
            // What was told stays.
            Err(why) if is_told => Answer { ranges: None, failure: Some(why) },
            Err(why) => instead(&client, why).await,
        };
        let is_new = answer.ranges.is_some_and(|ranges| {
            services.with(|services| std::mem::replace(services, ranges.clone()) != ranges)
        });
        let wait = match answer.failure {
            None => {
                (waits, is_said) = (RETRY.waits(), false);
                ASK_AGAIN
            }
            Some(why) => {
                if !std::mem::replace(&mut is_said, true) {
                    tracing::warn!(
                        why = %why,
                        "the ranges of this cluster's Services are not told (ServiceCIDRs): another cluster may claim one of their addresses for \
                         a Pod or an endpoint, but for those that Services show"
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

/// What was found out at once.
struct Answer {
    /// The ranges, as far as anything shows them.
    ranges: Option<Arc<[IpNet]>>,
    /// Why there may be a better answer soon.
    failure: Option<Failure>,
}

/// What the API server tells.
async fn told(client: &Client) -> Result<Arc<[IpNet]>, Failure> {
    let api = Api::<Ranges>::all(client.clone());
    match timeout(PATIENCE, api.list(&ListParams::default())).await {
        Ok(found) => found.map(|found| found.iter().flat_map(of).collect()).map_err(|error| classify(&error)),
        Err(_) => Err(Failure::Unreachable("no answer in time")),
    }
}

/// What there is in place of ranges that are not told. Only where they never will be that is all there is to know: an API server that is
/// overloaded or starts may tell them a moment later.
async fn instead(client: &Client, why: Failure) -> Answer {
    let ranges = shown(client).await;
    let is_settled = ranges.is_some() && matches!(why, Failure::KindMissing | Failure::Forbidden(_));
    Answer { ranges, failure: (!is_settled).then_some(why) }
}

/// What the addresses of Services show; none without an answer.
async fn shown(client: &Client) -> Option<Arc<[IpNet]>> {
    let services = Api::<Addressed>::all(client.clone());
    let addresses = list::all(&services, ListParams::default(), |service| addresses(&service));
    let addresses = timeout(PATIENCE, addresses).await.ok()?.ok()?;
    Some(spanned(addresses.into_iter().flatten()).into())
}

fn addresses(service: &Addressed) -> Vec<IpAddr> {
    let ips = service.spec.0.as_ref().map(|spec| spec.cluster_ips.as_slice()).unwrap_or_default();
    ips.iter().filter_map(|ip| ip.parse().ok()).collect()
}

/// The smallest ranges that these addresses of Services can be from. A cluster that does not tell its ranges has one of each family,
/// with that many addresses at the most: so two that are further apart are of two, as after a change of the range.
fn spanned(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<IpNet> {
    let mut ranges = Vec::<IpNet>::new();
    for address in addresses {
        let joined = ranges.iter_mut().find_map(|range| Some((joined(*range, address)?, range)));
        match joined {
            Some((joined, range)) => *range = joined,
            None => ranges.push(address.into()),
        }
    }
    ranges
}

/// The range with this address; none if it would be too large.
fn joined(mut range: IpNet, address: IpAddr) -> Option<IpNet> {
    while !range.contains(&address) {
        range = range.supernet()?;
    }
    (range.max_prefix_len() - range.prefix_len() <= RANGE_BITS).then_some(range)
}

fn of(ranges: &Ranges) -> Vec<IpNet> {
    let cidrs = ranges.spec.0.as_ref().map(|spec| spec.cidrs.as_slice()).unwrap_or_default();
    cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use kube::client::Body;
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

    /// An API server that answers lists of ServiceCIDRs with this code, and has one Service.
    fn answering(code: u16) -> Client {
        let answer = move |request: http::Request<Body>| async move {
            let is_ranges = request.uri().path().ends_with("/servicecidrs");
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "", "code": code});
            let web = json!({"metadata": {"name": "web"}, "spec": {"clusterIPs": ["10.96.0.1"]}});
            let services = json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": {}, "items": [web]});
            let (code, body) = if is_ranges { (code, status) } else { (200, services) };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
        };
        Client::new(tower::service_fn(answer), "x")
    }

    #[tokio::test]
    async fn only_where_ranges_are_never_told_what_services_show_is_enough() {
        for (code, is_enough) in [(404, true), (403, true), (429, false), (503, false), (401, false)] {
            let client = answering(code);
            let answer = instead(&client, told(&client).await.unwrap_err()).await;
            let shown: [IpNet; 1] = ["10.96.0.1/32".parse().unwrap()];
            assert_eq!(answer.ranges.as_deref(), Some(&shown[..]), "{code}");
            assert_eq!(answer.failure.is_none(), is_enough, "{code}");
        }
    }

    #[test]
    fn where_ranges_are_not_told_services_show_them() {
        let read = |spec| {
            addresses(&serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap())
        };
        let kubernetes =
            read(json!({"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1", "None"]}));
        assert!(read(json!(7)).is_empty());
        let web = read(json!({"clusterIPs": ["10.100.3.4", "fd00::7:1"]}));
        let ranges = spanned([kubernetes, web].concat());
        let words: Vec<_> = ranges.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["10.96.0.0/13", "fd00::/109"]);
        let check = |ip: &str| api::offload::address::check(ip, &ranges);
        assert!(["10.96.0.1", "10.100.3.4", "10.97.0.9", "fd00::2"].iter().all(|ip| check(ip).is_err()));
        assert!(["10.104.0.1", "10.1.0.7", "fd00::8:1"].iter().all(|ip| check(ip).is_ok()), "not shown");
    }

    #[test]
    fn addresses_of_two_ranges_do_not_make_one_of_what_lies_between() {
        let ranges = spanned(["10.96.0.1", "172.20.0.1", "10.96.0.2"].map(|ip| ip.parse().unwrap()));
        let words: Vec<_> = ranges.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["10.96.0.0/30", "172.20.0.1/32"]);
    }
}
