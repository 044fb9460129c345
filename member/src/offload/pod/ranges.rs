//! The ranges of this cluster's Services: an address in one of them is no Pod's.

use std::{sync::Arc, time::Duration};

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::ServiceCIDR;
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

/// Asks now and then. `asked` is true once it was tried: nothing waits longer for the answer, since API servers before Kubernetes 1.33 do
/// not tell.
pub(super) async fn learn(
    client: Client,
    services: Shared<Arc<[IpNet]>>,
    asked: tokio::sync::watch::Sender<bool>,
) {
    let api = Api::<Ranges>::all(client);
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
                if !std::mem::replace(&mut is_said, true) {
                    tracing::warn!(
                        why,
                        "the ranges of this cluster's Services are not known (ServiceCIDRs): a host may claim one of their addresses for a Pod"
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
}
