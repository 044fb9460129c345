//! Which endpoints of other clusters there are to ask: those of what is imported here. Pure.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::{IpAddr, SocketAddr},
};

use jiff::Timestamp;

use crate::service::{
    import::demoted_since,
    index::{entry::source_cluster, known::Known, view::Slice},
};

/// How many of a cluster come from one Service: the others say more of the way.
const OF_ONE: usize = 2;

/// Endpoints by cluster, in an order of preference that is another one in each cluster that asks: else all would ask the same Pods.
pub(super) type Endpoints = BTreeMap<String, BTreeMap<u64, SocketAddr>>;

/// Adds those of one import. Of a cluster that is not reached also those that are not ready here, which for a part says just that.
pub(super) fn add(known: &Known, all: &mut Endpoints) {
    let mut of_this = Endpoints::new();
    for slice in known.entry.imported_slices.values() {
        let Some(cluster) = source_cluster(slice).filter(|cluster| *cluster != known.us()) else { continue };
        let is_unreached = known.cluster.links.unreached.contains_key(cluster);
        let these = sockets(slice, is_unreached).map(|socket| (preference(known.us(), socket), socket));
        let of_cluster = of_this.entry(cluster.clone()).or_default();
        of_cluster.extend(these);
        while of_cluster.len() > OF_ONE {
            of_cluster.pop_last();
        }
    }
    for (cluster, endpoints) in of_this {
        all.entry(cluster).or_default().extend(endpoints);
    }
}

/// What TCP connects can ask.
fn sockets(slice: &Slice, also_not_ready: bool) -> impl Iterator<Item = SocketAddr> {
    let is_tcp = |protocol: &Option<String>| protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
    let port = slice.ports.iter().filter(move |port| is_tcp(&port.protocol));
    let port = port.filter_map(|port| port.port?.try_into().ok()).next();
    let endpoints = slice.endpoints.iter().filter(move |e| also_not_ready || e.shared.is_ready());
    let addresses = endpoints.filter_map(|endpoint| endpoint.shared.addresses.first()?.parse().ok());
    addresses.filter_map(move |address: IpAddr| Some(SocketAddr::new(address, port?)))
}

fn preference(us: &str, socket: SocketAddr) -> u64 {
    let mut hasher = DefaultHasher::new();
    (us, socket).hash(&mut hasher);
    hasher.finish()
}

/// Clusters that were demoted here by the process before, as it left word on their slices. Since when.
pub(super) fn demoted(known: &Known) -> impl Iterator<Item = (String, Timestamp)> {
    let slices = known.entry.imported_slices.values();
    slices.filter_map(|slice| Some((source_cluster(slice)?.clone(), demoted_since(slice)?)))
}

#[cfg(test)]
mod tests;
