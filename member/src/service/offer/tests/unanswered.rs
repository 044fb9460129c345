//! Whether an endpoint of an export can answer.

use std::sync::Arc;

use kit::index::Part;
use serde_json::json;

use crate::service::{
    index::{cluster::EndpointIp, entry::ServiceEntry, view::Slice},
    offer::{
        fixture::{Settings, entry, known_with, local_service, with},
        offer,
    },
};
use rules::unanswered::{NO_ENDPOINTS, NOT_READY, PORT_MISMATCH};

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

fn of(slices: &[Slice], settings: Settings, change: impl FnOnce(&mut ServiceEntry)) -> Option<&'static str> {
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
