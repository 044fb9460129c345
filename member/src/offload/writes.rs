//! Writes that API servers refuse, by the OffloadPeer and the NamespaceOffloading that they are about: condition `WritesAccepted`, which
//! only stands while one is refused. What is noted of a write is its object ([`Request`]); whom that is about follows from its name.

use std::collections::BTreeSet;

use api::{condition::Verdict, offload::names};
use kit::metrics::{Refusals, Request};

use super::{key, knowledge::Knowledge, node, own_map};

/// Returns what is refused of what this member writes about another cluster.
pub(super) fn about_peer(knowledge: &Knowledge, refusals: &Refusals, peer: &str) -> Option<Verdict> {
    if refusals.is_empty() {
        return None;
    }
    let twins = twins(knowledge, peer);
    refusals.verdict_of(|request| is_about_peer(request, peer, &twins))
}

/// Returns what is refused of what this member writes for the NamespaceOffloading of a Namespace.
pub(super) fn about_namespace(
    knowledge: &Knowledge,
    refusals: &Refusals,
    namespace: &str,
) -> Option<Verdict> {
    if refusals.is_empty() {
        return None;
    }
    let us = &knowledge.us.cluster;
    let maps = own_map::differing(knowledge, namespace).into_iter();
    let maps: BTreeSet<_> = maps.map(|host| names::namespace_map(us, &host)).collect();
    refusals.verdict_of(|request| is_about_namespace(request, namespace, &maps))
}

/// Namespaces here that the other cluster has as twins, or wants.
fn twins(knowledge: &Knowledge, home: &str) -> BTreeSet<String> {
    let entry = knowledge.clusters.get(&home.to_owned()).unwrap_or_default();
    let wanted = entry.asked_here().into_iter().flat_map(|spec| spec.desired_mapping.values().cloned());
    let there = knowledge.namespaces.keys().into_iter().filter(|name| knowledge.is_of_home(name, home));
    wanted.chain(there).collect()
}

fn is_about_peer(request: &Request, peer: &str, twins: &BTreeSet<String>) -> bool {
    let is_one = |pair: Option<(&str, &str)>| pair.is_some_and(|(one, other)| one == peer || other == peer);
    let name = request.name.as_str();
    match (request.kind.as_str(), request.namespace.as_deref()) {
        ("OffloadPeer", None) => name == peer,
        ("Node", None) => names::of_virtual_node(name) == Some(peer),
        ("Lease", Some(node::LEASES)) => names::of_virtual_node(name) == Some(peer),
        ("OffloadOffer", _) => is_one(names::of_offer(name)),
        ("NamespaceMap", _) => is_one(names::of_namespace_map(name)),
        ("ShadowPod", _) => is_one(names::of_shadow_pod(name).map(|(home, host, _)| (home, host))),
        ("Namespace", None) => twins.contains(name),
        ("Pod" | "RoleBinding", Some(namespace)) => twins.contains(namespace),
        // Nothing travels without it.
        ("Secret", _) => name == key::SECRET,
        _ => false,
    }
}

fn is_about_namespace(request: &Request, namespace: &str, maps: &BTreeSet<String>) -> bool {
    match (request.kind.as_str(), request.namespace.as_deref()) {
        ("NamespaceOffloading" | "Pod", Some(within)) => within == namespace,
        ("Namespace", None) => request.name == namespace,
        ("NamespaceMap", _) => maps.contains(&request.name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str, namespace: Option<&str>, name: &str) -> Request {
        Request {
            area: "".into(),
            part: "",
            cluster: "local",
            verb: "create".into(),
            group: String::new(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }

    #[test]
    fn each_object_is_about_the_cluster_that_its_name_or_its_twin_says() {
        let twins = BTreeSet::from(["shop-west".to_owned()]);
        let area = Some("clusterset-demo");
        for (kind, namespace, name) in [
            ("OffloadPeer", None, "west"),
            ("Node", None, "freeport-west"),
            ("Lease", Some("kube-node-lease"), "freeport-west"),
            ("OffloadOffer", area, "1.east.west"),
            ("NamespaceMap", area, "1.east.west"),
            ("NamespaceMap", area, "1.west.east"),
            ("ShadowPod", area, "1.west.east.u1"),
            ("Namespace", None, "shop-west"),
            ("RoleBinding", Some("shop-west"), "freeport-offload"),
            ("Pod", Some("shop-west"), "web"),
        ] {
            assert!(is_about_peer(&request(kind, namespace, name), "west", &twins), "{kind} {name}");
            assert!(
                !is_about_peer(&request(kind, namespace, name), "north", &BTreeSet::new()),
                "{kind} {name}"
            );
        }
        for (kind, namespace, name) in [
            ("Lease", Some("freeport-system"), "freeport-west"),
            ("Service", Some("shop-west"), "web"),
            ("Namespace", None, "shop"),
        ] {
            assert!(!is_about_peer(&request(kind, namespace, name), "west", &twins), "{kind} {name}");
        }
        let key = request("Secret", Some("freeport-system"), "freeport-offload-key");
        assert!(is_about_peer(&key, "west", &twins) && is_about_peer(&key, "north", &twins));
    }

    #[test]
    fn a_map_is_about_the_namespaces_that_it_does_not_have_yet() {
        let maps = BTreeSet::from(["1.west.east".to_owned()]);
        let is = |request: Request| is_about_namespace(&request, "shop", &maps);
        assert!(is(request("NamespaceMap", Some("clusterset-demo"), "1.west.east")));
        assert!(!is(request("NamespaceMap", Some("clusterset-demo"), "1.west.north")));
        assert!(is(request("NamespaceOffloading", Some("shop"), "offloading")));
        assert!(is(request("Pod", Some("shop"), "web")) && is(request("Namespace", None, "shop")));
        assert!(!is(request("Service", Some("shop"), "web")) && !is(request("Pod", Some("web"), "shop")));
    }
}
