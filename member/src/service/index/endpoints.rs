//! Core Endpoints that we make beside the slices of an import, and the order in which they are compared.

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize};

use api::view::ours_annotated;

/// The Endpoints `antrea-mc-<name>`.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = Endpoints)]
pub(crate) struct CoreEndpoints {
    /// Name, labels, and whether addresses were left out.
    #[serde(deserialize_with = "ours_annotated")]
    pub(crate) metadata: ObjectMeta,
    /// Addresses by the ports that they serve.
    #[serde(default, deserialize_with = "in_order")]
    pub(crate) subsets: Vec<EndpointSubset>,
}

/// An API server puts subsets into an order of its own.
fn in_order<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<EndpointSubset>, D::Error> {
    Ok(canonical(Option::deserialize(deserializer)?.unwrap_or_default()))
}

/// The same subsets, addresses and ports in our order; what is empty is left out, as Go does.
pub(crate) fn canonical(mut subsets: Vec<EndpointSubset>) -> Vec<EndpointSubset> {
    fn sorted<T, K: Ord>(list: &mut Option<Vec<T>>, key: impl FnMut(&T) -> K) {
        if let Some(list) = list {
            list.sort_by_cached_key(key);
        }
        list.take_if(|list| list.is_empty());
    }
    for subset in &mut subsets {
        sorted(&mut subset.addresses, |address: &EndpointAddress| address.ip.clone());
        sorted(&mut subset.not_ready_addresses, |address: &EndpointAddress| address.ip.clone());
        sorted(&mut subset.ports, place);
    }
    let first = |addresses: &Option<Vec<EndpointAddress>>| {
        addresses.as_ref().and_then(|addresses| addresses.first()).map(|address| address.ip.clone())
    };
    subsets.sort_by_cached_key(|subset| {
        let ports: Vec<_> = subset.ports.iter().flatten().map(place).collect();
        (ports, first(&subset.addresses), first(&subset.not_ready_addresses))
    });
    subsets
}

/// What orders the ports of a subset.
fn place(port: &EndpointPort) -> (Option<String>, i32, Option<String>) {
    (port.name.clone(), port.port, port.protocol.clone())
}
