//! An `Endpoints` record (Antrea) told as slices, and slices told as an `Endpoints` record.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use k8s_openapi::api::{
    core::v1::{EndpointAddress, EndpointPort, EndpointSubset, ServicePort},
    discovery::v1::EndpointConditions,
};

use crate::{
    port::protocol,
    resource_export::EndpointsPayload,
    slice::{ENDPOINTS_MAX, Endpoint, SlicePayload, SlicePort},
};

/// Ports by (servicePort, protocol).
type Ports = BTreeMap<(i32, String), SlicePort>;
/// Addresses in the order of their numbers, each with its endpoint.
type Endpoints = BTreeMap<Ipv6Addr, Endpoint>;

/// The slices that say what `payload` says of a Service with these ports, in an order of their own; an address that is listed
/// several times is one endpoint.
///
/// # Errors
/// What an API server would object to.
pub fn slices(
    payload: &EndpointsPayload,
    service_ports: &[ServicePort],
) -> Result<Vec<SlicePayload>, String> {
    let mut groups = BTreeMap::<(&str, Vec<(i32, String, i32)>), (Ports, Endpoints)>::new();
    for subset in &payload.subsets {
        let ports = ports(subset, service_ports);
        let numbers: Vec<_> = ports.values().map(|p| (p.service_port, p.protocol.clone(), p.port)).collect();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        // Those that are not ready first: an address that is listed as both is ready.
        for (address, is_ready) in not_ready.chain(ready) {
            let ip: IpAddr =
                address.ip.parse().map_err(|_| format!("{:?} is not an IP address", address.ip))?;
            let (address_type, number) = match ip {
                IpAddr::V4(ip) => ("IPv4", ip.to_ipv6_mapped()),
                IpAddr::V6(ip) => ("IPv6", ip),
            };
            let group = groups.entry((address_type, numbers.clone()));
            let (_, endpoints) = group.or_insert_with(|| (ports.clone(), Endpoints::new()));
            endpoints.insert(number, endpoint(address, is_ready));
        }
    }
    let mut slices = Vec::new();
    for ((address_type, _), (ports, endpoints)) in groups {
        let ports: Vec<_> = ports.into_values().collect();
        let endpoints: Vec<_> = endpoints.into_values().collect();
        slices.extend(endpoints.chunks(ENDPOINTS_MAX).map(|endpoints| SlicePayload {
            address_type: address_type.into(),
            ports: ports.clone(),
            endpoints: endpoints.to_vec(),
        }));
    }
    slices.iter().try_for_each(SlicePayload::check)?;
    Ok(slices)
}

/// A port of endpoints belongs to the Service's port of the same name, as Kubernetes sees it; one that belongs to none is not
/// reached through the Service.
fn ports(subset: &EndpointSubset, service_ports: &[ServicePort]) -> Ports {
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let resolve = |port: &EndpointPort| {
        let (name, own) = (named(&port.name), protocol(port.protocol.as_deref()));
        let leads = |p: &&ServicePort| named(&p.name) == name && protocol(p.protocol.as_deref()) == own;
        let service_port = service_ports.iter().find(leads)?;
        let app_protocol = port.app_protocol.clone().or_else(|| service_port.app_protocol.clone());
        let (port, service_port) = (port.port, service_port.port);
        let key = (service_port, own.to_owned());
        Some((key, SlicePort { name, protocol: own.to_owned(), port, service_port, app_protocol }))
    };
    subset.ports.iter().flatten().filter_map(resolve).collect()
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone(),
        zone: None,
    }
}

/// What these slices say, as Antrea says it: only endpoints that are ready, one subset for each set of ports, in an order that
/// does not depend on theirs. `name` gives a port its name there; one without is left out.
pub fn payload<'a>(
    slices: impl IntoIterator<Item = &'a SlicePayload>,
    name: impl Fn(&SlicePort) -> Option<Option<String>>,
) -> EndpointsPayload {
    let mut subsets = BTreeMap::<Vec<(i32, String, Option<String>)>, BTreeMap<String, Option<String>>>::new();
    for slice in slices {
        let port = |port: &SlicePort| Some((port.port, port.protocol.clone(), name(port)?));
        let mut ports: Vec<_> = slice.ports.iter().filter_map(port).collect();
        ports.sort();
        let ready = slice.endpoints.iter().filter(|endpoint| endpoint.is_ready());
        let addresses: Vec<_> =
            ready.filter_map(|e| Some((e.addresses.first()?.clone(), e.hostname.clone()))).collect();
        if !ports.is_empty() && !addresses.is_empty() {
            subsets.entry(ports).or_default().extend(addresses);
        }
    }
    EndpointsPayload {
        subsets: subsets.into_iter().map(|(ports, addresses)| subset(ports, addresses)).collect(),
    }
}

fn subset(
    ports: Vec<(i32, String, Option<String>)>,
    addresses: BTreeMap<String, Option<String>>,
) -> EndpointSubset {
    let port =
        |(port, protocol, name)| EndpointPort { name, port, protocol: Some(protocol), app_protocol: None };
    let address = |(ip, hostname)| EndpointAddress { ip, hostname, ..EndpointAddress::default() };
    EndpointSubset {
        addresses: Some(addresses.into_iter().map(address).collect()),
        not_ready_addresses: None,
        ports: Some(ports.into_iter().map(port).collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(subsets: &serde_json::Value) -> EndpointsPayload {
        serde_json::from_value(json!({ "subsets": subsets })).unwrap()
    }

    fn service_ports() -> Vec<ServicePort> {
        serde_json::from_value(json!([
            {"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"},
        ]))
        .unwrap()
    }

    fn addresses(slice: &SlicePayload) -> Vec<&str> {
        slice.endpoints.iter().map(|endpoint| endpoint.addresses[0].as_str()).collect()
    }

    #[test]
    fn subsets_with_the_same_ports_are_one_slice() {
        let http = json!([{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "metrics", "port": 9, "protocol": "TCP"}]);
        // As Antrea's PodIP mode repeats itself.
        let told = slices(
            &says(&json!([
                {"addresses": [{"ip": "10.0.0.9"}], "ports": http},
                {"addresses": [{"ip": "10.0.0.9"}, {"ip": "10.0.0.10"}], "ports": http},
                {"addresses": [{"ip": "10.0.0.11"}], "notReadyAddresses": [{"ip": "10.0.0.10"}],
                 "ports": [{"name": "dns", "port": 5353, "protocol": "UDP"}]},
            ])),
            &service_ports(),
        )
        .unwrap();
        assert_eq!(told.len(), 2);
        assert_eq!(addresses(&told[0]), ["10.0.0.10", "10.0.0.11"]);
        assert_eq!(told[0].endpoints[0].conditions.as_ref().unwrap().ready, Some(false));
        assert_eq!(addresses(&told[1]), ["10.0.0.9", "10.0.0.10"], "by number");
        let [http] = told[1].ports.as_slice() else {
            panic!("only ports of the Service: {:?}", told[1].ports)
        };
        assert_eq!((http.port, http.service_port), (8080, 80));
    }

    #[test]
    fn many_endpoints_are_several_slices() {
        let all: Vec<_> = (0..1500).map(|n| json!({"ip": format!("10.0.{}.{}", n / 250, n % 250)})).collect();
        let many =
            says(&json!([{"addresses": all, "ports": [{"name": "http", "port": 1, "protocol": "TCP"}]}]));
        let told: Vec<_> =
            slices(&many, &service_ports()).unwrap().iter().map(|s| s.endpoints.len()).collect();
        assert_eq!(told, [1000, 500]);
    }

    #[test]
    fn what_no_api_server_takes_is_found() {
        for ip in ["example.com", "127.0.0.1"] {
            let bad = says(&json!([{"addresses": [{"ip": ip}], "ports": [{"name": "http", "port": 1}]}]));
            assert!(slices(&bad, &service_ports()).is_err(), "{ip}");
        }
    }

    #[test]
    fn what_is_told_and_told_back_is_the_same() {
        let antrea = says(&json!([
            {"addresses": [{"ip": "10.1.0.7"}, {"ip": "10.1.0.8"}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
        ]));
        let told = slices(&antrea, &service_ports()).unwrap();
        assert_eq!(payload(&told, |port| Some(port.name.clone())), antrea);
        assert_eq!(payload(&told, |_| None), EndpointsPayload::default());
    }
}
