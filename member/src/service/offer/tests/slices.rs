//! A Service's endpoints as slices.

use std::{collections::BTreeMap, sync::Arc};

use api::{label, slice::SlicePayload};
use serde_json::json;

use crate::service::{
    index::{cluster::EndpointIp, entry::ServiceEntry},
    offer::{
        fixture::{Settings, entry, known_with},
        offer,
    },
};

const KUBERNETES: &str = "endpointslice-controller.k8s.io";

/// What is exported of a Service, or why nothing is.
struct Offered {
    service: api::resource_export::ServicePayload,
    slices: BTreeMap<String, SlicePayload>,
}

fn offered(change: impl FnOnce(&mut ServiceEntry, &mut Settings)) -> Result<Offered, &'static str> {
    let (mut entry, mut settings) = (entry(), Settings::default());
    change(&mut entry, &mut settings);
    let known = known_with("east", &entry, settings);
    let offered = crate::service::offer::offered(&known);
    let offer = offered.offer.ok_or_else(|| offered.invalid.unwrap().reason)?;
    Ok(Offered { service: offer.service(), slices: offer.slices() })
}

fn spec(entry: &mut ServiceEntry, change: &serde_json::Value) {
    let mut service = serde_json::to_value(&*entry.service.take().unwrap()).unwrap();
    service["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    entry.service = Some(Arc::new(serde_json::from_value(service).unwrap()));
}

fn slice(entry: &mut ServiceEntry, address_type: &str, address: &str, ready: bool) {
    let slice = serde_json::from_value(json!({
        "metadata": {"name": address_type, "namespace": "shop"},
        "addressType": address_type,
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}, "hostname": "db-0"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }));
    entry.slices.insert(address_type.into(), Arc::new(slice.unwrap()));
}

fn addresses(offer: &Offered) -> Vec<(&str, &str)> {
    let mut all: Vec<_> = offer
        .slices
        .values()
        .flat_map(|slice| {
            slice.endpoints.iter().map(|e| (slice.address_type.as_str(), e.addresses[0].as_str()))
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn r12_a_headless_service_is_exported_with_host_names_and_with_or_without_ports() {
    for ports in [json!([{"name": "http", "port": 80}]), json!([])] {
        let headless = offered(|entry, _| {
            entry.slices.clear();
            slice(entry, "IPv4", "10.1.0.7", true);
            spec(entry, &json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": ports}));
        });
        let headless = headless.unwrap();
        assert_eq!(headless.service.service_spec.cluster_ip.as_deref(), Some("None"));
        let slice = headless.slices.values().next().unwrap();
        assert_eq!(slice.endpoints[0].hostname.as_deref(), Some("db-0"));
        assert_eq!(slice.ports.len(), ports.as_array().unwrap().len());
    }
}

/// Issue 14, A5: the API server of the leader would not take it, again and again.
#[test]
fn a5_a_zone_that_nobody_could_use_does_not_travel() {
    let zone = |zone: String| {
        let offered = offered(|entry, _| {
            entry.slices.clear();
            slice(entry, "IPv4", "10.1.0.7", true);
            let slices = entry.slices.values_mut().map(Arc::make_mut);
            slices.for_each(|slice| slice.endpoints[0].shared.zone = Some(zone.clone()));
        });
        let slice = offered.unwrap().slices.into_values().next().unwrap();
        slice.endpoints[0].zone.clone()
    };
    assert_eq!(zone("eu-west-1a".into()).as_deref(), Some("eu-west-1a"));
    assert_eq!(zone("z".repeat(2000)), None);
}

#[test]
fn slices_are_of_the_services_families_and_those_of_this_cluster() {
    let both = |entry: &mut ServiceEntry, _: &mut Settings| {
        entry.slices.clear();
        slice(entry, "IPv4", "10.1.0.7", true);
        slice(entry, "IPv6", "fd00::7", true);
        slice(entry, "FQDN", "example.com", true);
        spec(entry, &json!({"ipFamilies": ["IPv6", "IPv4"]}));
    };
    let offer = offered(both).unwrap();
    assert_eq!(addresses(&offer), [("IPv4", "10.1.0.7"), ("IPv6", "fd00::7")]);
    assert_eq!(offer.service.service_spec.ip_families.unwrap(), ["IPv6", "IPv4"]);
    let six = offered(|entry, settings| {
        both(entry, settings);
        // As a headless Service without selector says wherever it is.
        settings.families = vec!["IPv6".into()];
        entry.slices.remove("IPv4");
    });
    let six = six.unwrap();
    assert_eq!(addresses(&six), [("IPv6", "fd00::7")]);
    assert_eq!(six.service.service_spec.ip_families.unwrap(), ["IPv6"]);
}

#[test]
fn a9_a_port_that_is_named_keeps_its_endpoints_until_kubernetes_has_named_it_in_the_slice() {
    let ports = |by: &str, said: bool| {
        let offered = offered(|entry, _| {
            entry.slices.clear();
            slice(entry, "IPv4", "10.1.0.7", true);
            let unnamed = Arc::make_mut(entry.slices.get_mut("IPv4").unwrap());
            unnamed.metadata.labels = Some([(label::SLICE_MANAGED_BY.to_owned(), by.to_owned())].into());
            unnamed.ports[0].name = Some(String::new());
            spec(entry, &json!({"ports": [{"port": 80}]}));
            if said {
                let known = known_with("east", entry, Settings::default());
                let slices = offer(&known).unwrap().slices();
                entry.own_slices = slices
                    .into_iter()
                    .map(|(name, payload)| {
                        let spec = |spec: &mut api::resource_export::ResourceExportSpec| {
                            spec.endpoint_slice = Some(payload)
                        };
                        (
                            name.clone(),
                            crate::service::offer::record::record(&known, "EndpointSlice", name, spec).into(),
                        )
                    })
                    .collect();
            }
            spec(entry, &json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}));
        });
        let slice = offered.unwrap().slices.into_values().next().unwrap();
        slice.ports.into_iter().map(|port| port.service_port).collect::<Vec<_>>()
    };
    assert_eq!(ports(KUBERNETES, true), [80]);
    assert!(ports(KUBERNETES, false).is_empty(), "nobody knows what it belonged to");
    assert!(ports("somebody", true).is_empty(), "nobody else follows a Service");
}

#[test]
fn a_cluster_ip_stands_for_all_endpoints_and_a_headless_service_has_none() {
    let by_cluster_ip = |entry: &mut ServiceEntry, settings: &mut Settings| {
        settings.endpoint_ip = EndpointIp::Cluster;
        entry.slices.clear();
        slice(entry, "IPv4", "10.1.0.7", false);
        slice(entry, "IPv6", "fd00::7", true);
        let dual = json!({"clusterIPs": ["10.0.0.1", "fd00:1::1"], "ipFamilies": ["IPv4", "IPv6"]});
        spec(entry, &dual);
    };
    let offer = offered(by_cluster_ip).unwrap();
    assert_eq!(addresses(&offer), [("IPv4", "10.0.0.1"), ("IPv6", "fd00:1::1")]);
    for slice in offer.slices.values() {
        assert_eq!((slice.ports[0].port, slice.ports[0].service_port), (80, 80));
        let ready = slice.endpoints[0].conditions.as_ref().unwrap().ready;
        assert_eq!(ready, Some(slice.address_type == "IPv6"), "as what is behind it");
    }
    let headless = offered(|entry, settings| {
        by_cluster_ip(entry, settings);
        spec(entry, &json!({"clusterIP": "None", "clusterIPs": ["None"]}));
    });
    assert_eq!(headless.err(), Some("InvalidServiceType"));
}
