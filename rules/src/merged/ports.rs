//! Ports of a merged Service.

use std::{cmp::Ordering, collections::BTreeSet, iter};

use api::{
    mcs::ServicePort,
    port::{is_same, protocol},
    resource_export::ServicePayload,
};

use super::Exported;

/// What makes ports equal: name, protocol, number, application protocol.
type Key<'a> = (&'a str, &'a str, i32, Option<&'a str>);

/// Most ports of a merged Service: with more, importers' API servers refuse the ServiceImport (policy `freeport-import-content`). The
/// ports of the youngest exports are left out.
const PORTS_MAX: usize = 250;

/// All ports, older exports first: of two with one name, and of two with one number and protocol, the older stays.
pub(super) fn union(oldest_first: &[Exported<'_>]) -> Vec<ServicePort> {
    unite(oldest_first.iter().flat_map(|(_, payload)| of(payload)))
}

/// [`union`] of ports that were merged before, or are [`plain`].
pub(super) fn union_of_merged<'a>(ports: impl Iterator<Item = &'a ServicePort>) -> Vec<ServicePort> {
    unite(ports.map(key))
}

/// The ports of an export by number, as they are.
pub(super) fn plain(payload: &ServicePayload) -> Vec<ServicePort> {
    of(payload).into_iter().map(port).collect()
}

fn unite<'a>(ports: impl Iterator<Item = Key<'a>>) -> Vec<ServicePort> {
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    let mut union = Vec::new();
    for port in ports {
        let (name, protocol, number, _) = port;
        if names.contains(name) || numbers.contains(&(number, protocol)) {
            continue;
        }
        if union.len() == PORTS_MAX {
            break;
        }
        names.insert(name);
        numbers.insert((number, protocol));
        union.push(port);
    }
    union.sort_by(by_number);
    named(union.into_iter().map(port).collect())
}

fn port((name, protocol, port, app_protocol): Key<'_>) -> ServicePort {
    ServicePort {
        name: Some(name).filter(|name| !name.is_empty()).map(str::to_owned),
        protocol: Some(protocol.to_owned()),
        app_protocol: app_protocol.map(str::to_owned),
        port,
    }
}

/// Kubernetes refuses an unnamed port beside others; such a one is called `p<port>`, with a number behind it if that is taken.
fn named(mut ports: Vec<ServicePort>) -> Vec<ServicePort> {
    let mut taken: BTreeSet<String> = ports.iter().filter_map(|port| port.name.clone()).collect();
    let are_several = ports.len() > 1;
    for port in ports.iter_mut().filter(|port| are_several && port.name.is_none()) {
        let plain = format!("p{}", port.port);
        let mut candidates = iter::once(plain.clone()).chain((2..).map(|n| format!("{plain}-{n}")));
        port.name = candidates.find(|name| taken.insert(name.clone()));
    }
    ports
}

/// The ports as a set in words, by which exports are compared: their order means nothing.
pub(super) fn words(payload: &ServicePayload) -> String {
    let mut ports = of(payload);
    ports.sort_by(by_number);
    ports.dedup();
    list(ports)
}

/// Ports of an export that the merged Service has under no name.
pub(super) fn left_out(payload: &ServicePayload, merged: &[ServicePort]) -> Option<String> {
    let is_there = |(_, protocol, number, _): &Key<'_>| {
        merged.iter().any(|port| is_same(port.port, port.protocol.as_deref(), *number, Some(protocol)))
    };
    let left_out: Vec<_> = of(payload).into_iter().filter(|port| !is_there(port)).collect();
    (!left_out.is_empty()).then(|| list(left_out))
}

/// The merged ports in words.
pub(super) fn words_of_merged(merged: &[ServicePort]) -> String {
    list(merged.iter().map(key).collect())
}

fn key(port: &ServicePort) -> Key<'_> {
    let protocol = protocol(port.protocol.as_deref());
    (port.name.as_deref().unwrap_or_default(), protocol, port.port, port.app_protocol.as_deref())
}

fn of(payload: &ServicePayload) -> Vec<Key<'_>> {
    let ports = payload.service_spec.ports.iter().flatten();
    let mut keys: Vec<_> = ports
        .map(|port| {
            let protocol = protocol(port.protocol.as_deref());
            (port.name.as_deref().unwrap_or_default(), protocol, port.port, port.app_protocol.as_deref())
        })
        .collect();
    keys.sort_by(by_number);
    keys
}

fn by_number(a: &Key<'_>, b: &Key<'_>) -> Ordering {
    (a.2, a.1, a.0, a.3).cmp(&(b.2, b.1, b.0, b.3))
}

fn list(ports: Vec<Key<'_>>) -> String {
    let word = |(name, protocol, number, app_protocol): Key<'_>| {
        let name = if name.is_empty() { String::new() } else { format!("{name} ") };
        let app_protocol = app_protocol.map(|app_protocol| format!(" ({app_protocol})")).unwrap_or_default();
        format!("{name}{number}/{protocol}{app_protocol}")
    };
    ports.into_iter().map(word).collect::<Vec<_>>().join(", ")
}
