//! Whether an endpoint of an export can answer: pure.

use std::collections::BTreeSet;

use api::label::SERVICE_NAME;

use super::{Offer, slices};
use crate::service::unanswered::{NO_ENDPOINTS, NOT_READY, PORT_MISMATCH, Unanswered};

/// The address type of EndpointSlices with names of hosts.
const FQDN: &str = "FQDN";

/// Why nobody answers who connects to what is exported; none if an endpoint can.
pub(super) fn unanswered(offer: &Offer<'_>) -> Option<Unanswered> {
    let families = slices::families(offer);
    let (mut in_family, mut with_port, mut others) = (0, 0, BTreeSet::new());
    let all = offer.known.entry.slices.iter().filter(|(_, slice)| !slice.endpoints.is_empty());
    for (source, slice) in all {
        if !families.contains(&slice.address_type) {
            others.insert(slice.address_type.as_str());
            continue;
        }
        in_family += slice.endpoints.len();
        // By an address of its own an endpoint is reached on all its ports.
        if offer.payload.is_headless() || slices::has_port(offer, source, slice) {
            with_port += slice.endpoints.len();
            if slice.endpoints.iter().any(|endpoint| endpoint.shared.is_ready()) {
                return None;
            }
        }
    }
    let service = &offer.known.service;
    Some(match () {
        () if with_port > 0 => {
            let all = if with_port == 1 { "its one endpoint is not" } else { "none of its endpoints is" };
            Unanswered::new(NOT_READY, format!("no endpoint of Service {service} can answer: {all} ready"))
        }
        () if in_family > 0 => {
            let message = format!(
                "no endpoint of Service {service} can answer: none of their ports has the name of a port of the \
                 Service"
            );
            Unanswered::new(PORT_MISMATCH, message)
        }
        () if others.contains(FQDN) => {
            let message = format!(
                "no endpoint of Service {service} can answer: its EndpointSlices have names of hosts (addressType FQDN), and other \
                 clusters are given addresses only"
            );
            Unanswered::new("OnlyFQDN", message)
        }
        () if !others.is_empty() => {
            let (have, want) = (others.into_iter().collect::<Vec<_>>().join(" and "), families.join(" and "));
            let message = format!(
                "no endpoint of Service {service} can answer: the Service has IP family {want}, and its endpoints have {have}"
            );
            Unanswered::new("IPFamilyMismatch", message)
        }
        () => {
            let has_selector =
                offer.known.entry.service.as_ref().is_some_and(|it| !it.spec.never.selector.is_empty());
            let why = match has_selector {
                true => "Does its selector match Pods?".to_owned(),
                false => format!(
                    "It has no selector, so Kubernetes makes none: create EndpointSlices with label {SERVICE_NAME}={}",
                    service.name
                ),
            };
            Unanswered::new(
                NO_ENDPOINTS,
                format!("no endpoint of Service {service} can answer: it has none. {why}"),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kit::index::Part;
    use serde_json::json;

    use super::*;
    use crate::service::{
        index::{cluster::EndpointIp, entry::ServiceEntry, view::Slice},
        offer::{
            fixture::{Settings, entry, known_with, local_service, with},
            offer,
        },
    };

    fn slice(address_type: &str, addresses: &[&str], ready: bool, port: &str) -> Slice {
        let endpoint = |address: &&str| json!({"addresses": [address], "conditions": {"ready": ready}});
        serde_json::from_value(json!({
            "metadata": {"name": format!("{address_type}-{port}-{ready}"), "namespace": "shop"},
            "addressType": address_type,
            "endpoints": addresses.iter().map(endpoint).collect::<Vec<_>>(),
            "ports": [{"name": port, "port": 8080, "protocol": "TCP"}],
        }))
        .unwrap()
    }

    fn of(
        slices: &[Slice],
        settings: Settings,
        change: impl FnOnce(&mut ServiceEntry),
    ) -> Option<&'static str> {
        let entry = with(entry(), |entry| {
            let named = |slice: &Slice| (slice.metadata.name.clone().unwrap(), Arc::new(slice.clone()));
            entry.slices = slices.iter().map(named).collect();
            change(entry);
        });
        let known = known_with("east", &entry, settings);
        offer(&known).unwrap().unanswered().map(|unanswered| unanswered.reason)
    }

    #[test]
    fn why_nobody_answers_is_told_apart() {
        let good = slice("IPv4", &["10.1.0.7"], true, "http");
        let not_ready = slice("IPv4", &["10.1.0.7", "10.1.0.8"], false, "http");
        let other_port = slice("IPv4", &["10.1.0.7"], true, "web");
        let names = slice("FQDN", &["a.example.com"], true, "http");
        let other_family = slice("IPv6", &["fd00::7"], true, "http");
        let all = [
            (vec![], Some(NO_ENDPOINTS)),
            (vec![slice("IPv4", &[], true, "http")], Some(NO_ENDPOINTS)),
            (vec![not_ready.clone()], Some(NOT_READY)),
            (vec![not_ready.clone(), other_port.clone(), names.clone()], Some(NOT_READY)),
            (vec![other_port.clone(), names.clone()], Some(PORT_MISMATCH)),
            (vec![names.clone(), other_family.clone()], Some("OnlyFQDN")),
            (vec![other_family], Some("IPFamilyMismatch")),
            (vec![names, not_ready, other_port.clone(), good], None),
        ];
        for (slices, reason) in all {
            for endpoint_ip in [EndpointIp::Pod, EndpointIp::Cluster] {
                let settings = Settings { endpoint_ip, ..Settings::default() };
                assert_eq!(of(&slices, settings, |_| {}), reason, "{slices:?}");
            }
        }
        for (selector, advice) in
            [(json!({"app": "web"}), "Does its selector match Pods?"), (json!({}), "It has no selector")]
        {
            let entry = with(entry(), |entry| {
                entry.slices.clear();
                local_service(|service| service["spec"]["selector"] = selector).put(entry);
            });
            let known = known_with("east", &entry, Settings::default());
            let unanswered = offer(&known).unwrap().unanswered().unwrap();
            assert!(unanswered.message.contains(advice), "{}", unanswered.message);
        }
        let headless = |entry: &mut ServiceEntry| {
            let headless = local_service(|service| service["spec"]["clusterIP"] = json!("None"));
            entry.service = Some(Arc::new(headless));
        };
        assert_eq!(of(&[other_port], Settings::default(), headless), None, "by its address");
    }
}
