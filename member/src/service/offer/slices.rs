//! A Service's endpoints as slices: those that travel, and those that this cluster uses itself. Pure.

mod kept;

use std::collections::BTreeMap;

use api::{
    family, label,
    mcs::ServicePort,
    name, port,
    slice::{self, SlicePayload, SlicePort},
};
use k8s_openapi::api::{core::v1 as core, discovery::v1::EndpointConditions};

use super::Offer;
use crate::service::index::{
    cluster::EndpointIp,
    view::{self, Slice},
};

/// The slices that other clusters get, by the names of their records.
pub(super) fn exported(offer: &Offer<'_>) -> BTreeMap<String, SlicePayload> {
    let known = offer.known;
    match known.cluster.endpoint_ip {
        // A headless Service that was exported before this member exported ClusterIPs has none.
        EndpointIp::Cluster if !(offer.is_kept && offer.payload.is_headless()) => {
            let of_family = |address: &String| {
                // Not the name of any EndpointSlice.
                let source = format!("ClusterIP/{}", family::of(address));
                let record = name::slice_export(known.us(), &known.service, &source);
                (record, cluster_ip(address, offer))
            };
            offer.local.spec.addresses().map(of_family).collect()
        }
        _ => own(offer),
    }
}

/// The slices of the Service here, as other clusters would see them.
pub(super) fn own(offer: &Offer<'_>) -> BTreeMap<String, SlicePayload> {
    let known = offer.known;
    let families = families(offer);
    let of_families = known.entry.slices.iter().filter(|(_, slice)| families.contains(&slice.address_type));
    let of = |source: &String, slice: &Slice| {
        let record = name::slice_export(known.us(), &known.service, source);
        let ports = ports(offer, &record, slice);
        (record, payload(slice, ports))
    };
    of_families.map(|(source, slice)| of(source, slice)).collect()
}

/// The families that slices are exported of.
pub(super) fn families(offer: &Offer<'_>) -> Vec<String> {
    family::said(offer.payload.service_spec.ip_families.as_deref().unwrap_or_default())
}

/// Whether the endpoints of a slice are reached on any port through the Service here.
pub(super) fn has_port(offer: &Offer<'_>, source: &str, slice: &Slice) -> bool {
    let record = name::slice_export(offer.known.us(), &offer.known.service, source);
    !ports(offer, &record, slice).is_empty()
}

/// The ports of that slice, whose record has that name.
fn ports(offer: &Offer<'_>, record: &str, slice: &Slice) -> Vec<SlicePort> {
    match offer.is_kept {
        true => kept::ports(offer, record, slice),
        false => current(slice, &offer.local.spec.ports, said(offer, record)),
    }
}

/// What the record of that name says.
fn said<'a>(offer: &Offer<'a>, record: &str) -> Option<&'a SlicePayload> {
    let record = offer.known.entry.own_slices.get(record)?;
    record.spec.0.as_ref().ok()?.endpoint_slice.as_ref()
}

/// Who writes the slices of Services that select Pods.
const KUBERNETES: &str = "endpointslice-controller.k8s.io";

/// The Service port that a port of a slice of Kubernetes' led to when we `said` it last, if only its name has changed. An unnamed port
/// that gets company gets a name, and the slice gets it a moment later.
fn renamed<'a>(
    slice: &Slice,
    port: &view::SlicePort,
    service_ports: &'a [ServicePort],
    said: Option<&SlicePayload>,
) -> Option<&'a ServicePort> {
    let by_kubernetes =
        slice.metadata.labels.as_ref().and_then(|labels| labels.get(label::SLICE_MANAGED_BY))? == KUBERNETES;
    let (name, protocol) = (word(port.name.as_ref()), port::protocol(port.protocol.as_deref()));
    let led = |said: &&SlicePort| word(said.name.as_ref()) == name && said.protocol == protocol;
    let number = said.filter(|_| by_kubernetes)?.ports.iter().find(led)?.service_port;
    let is_it = |p: &&ServicePort| port::is_same(p.port, p.protocol.as_deref(), number, Some(protocol));
    let service_port = service_ports.iter().find(is_it)?;
    let has_own = slice.ports.iter().any(|p| word(p.name.as_ref()) == word(service_port.name.as_ref()));
    (!has_own).then_some(service_port)
}

/// No name is an empty one.
fn word(name: Option<&String>) -> &str {
    name.map(String::as_str).unwrap_or_default()
}

/// The ports of a slice that belong to Service ports, by name; one that belongs to none is not reached through the Service here, and so not
/// elsewhere.
fn current(slice: &Slice, service_ports: &[ServicePort], said: Option<&SlicePayload>) -> Vec<SlicePort> {
    let of = |port: &view::SlicePort| {
        let name = word(port.name.as_ref());
        let named_so = service_ports.iter().find(|p| word(p.name.as_ref()) == name);
        let of = named_so.or_else(|| renamed(slice, port, service_ports, said))?;
        exported_port(port, of.port, of.app_protocol.clone())
    };
    slice.ports.iter().filter_map(of).collect()
}

/// A port of a slice, which leads to that port of the Service.
fn exported_port(
    port: &view::SlicePort,
    service_port: i32,
    app_protocol: Option<String>,
) -> Option<SlicePort> {
    Some(SlicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: port::protocol(port.protocol.as_deref()).to_owned(),
        port: port.port?,
        service_port,
        app_protocol,
    })
}

/// The slice with these ports as other clusters see it.
fn payload(slice: &Slice, mut ports: Vec<SlicePort>) -> SlicePayload {
    ports.sort_by(|a, b| (a.service_port, &a.protocol).cmp(&(b.service_port, &b.protocol)));
    // A zone is a hint, and nobody could use this one.
    let zone = |zone: Option<String>| zone.filter(|zone| name::is_label_value(zone));
    let travels = |endpoint: slice::Endpoint| slice::Endpoint { zone: zone(endpoint.zone), ..endpoint };
    let shared = slice.endpoints.iter().map(|endpoint| travels(endpoint.shared.clone()));
    let mut endpoints: Vec<_> = shared.collect();
    endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses));
    SlicePayload { address_type: slice.address_type.clone(), ports, endpoints }
}

/// A ClusterIP as an endpoint: ready while any Pod behind it is. A port that the Service does not have any more leads nowhere.
fn cluster_ip(address: &str, offer: &Offer<'_>) -> SlicePayload {
    let address_type = family::of(address);
    let behind = offer.known.entry.slices.values().filter(|slice| slice.address_type == address_type);
    let ready = behind.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.shared.is_ready());
    let conditions = EndpointConditions { ready: Some(ready), ..EndpointConditions::default() };
    let port = |port: &core::ServicePort| SlicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: port::protocol(port.protocol.as_deref()).to_owned(),
        port: port.port,
        service_port: port.port,
        app_protocol: port.app_protocol.clone(),
    };
    let ports = offer.ports().iter().filter(|port| offer.local_port(port).is_some());
    SlicePayload {
        address_type: address_type.to_owned(),
        ports: ports.map(port).collect(),
        endpoints: vec![slice::Endpoint {
            addresses: vec![address.to_owned()],
            conditions: Some(conditions),
            ..slice::Endpoint::default()
        }],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::service::index::entry::ServiceEntry;
    use crate::service::offer::{
        fixture::{Settings, entry, known_with},
        offer,
    };

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
                                crate::service::offer::record::record(&known, "EndpointSlice", name, spec)
                                    .into(),
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
}
