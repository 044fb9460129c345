//! The EndpointSlice that travels in a ResourceExport of kind `EndpointSlice`.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::api::discovery::v1::EndpointConditions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name;

/// Most endpoints, addresses of an endpoint, and ports an API server takes.
pub(crate) const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 100;

/// One EndpointSlice of the exporting cluster, without what means nothing elsewhere (nodes, Pods).
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlicePayload {
    /// `IPv4` or `IPv6`.
    pub address_type: String,
    /// Ports of every endpoint here.
    #[serde(default)]
    pub ports: Vec<SlicePort>,
    /// The endpoints. An empty list is said on purpose: this slice has none. It cannot be left out.
    pub endpoints: Vec<Endpoint>,
}

/// A port of the endpoints, and the Service port that leads to it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlicePort {
    /// Name of the port in the exporting cluster; absent on an unnamed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Port number on the endpoints.
    pub port: i32,
    /// Port number on the exporting Service: with the protocol it says which port of the merged Service this is
    /// (rules R-42, R-43).
    pub service_port: i32,
    /// Application protocol, as on the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// One endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Addresses, all of the same endpoint.
    pub addresses: Vec<String>,
    /// Whether it is ready, serving, terminating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<EndpointConditions>,
    /// Host name of the endpoint, for names of single Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Zone it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl SlicePayload {
    /// Whether an API server would take an EndpointSlice made of this; what it would object to otherwise.
    ///
    /// Every importer has to live with what a member says, so the leader reports and importers pass over what fails here.
    pub fn check(&self) -> Result<(), String> {
        let v4 = match self.address_type.as_str() {
            "IPv4" => true,
            "IPv6" => false,
            other => return Err(format!("addressType {other:?} is neither IPv4 nor IPv6")),
        };
        if self.endpoints.len() > ENDPOINTS_MAX {
            return Err(format!(
                "the slice has {} endpoints; the limit is {ENDPOINTS_MAX}",
                self.endpoints.len()
            ));
        }
        self.endpoints.iter().try_for_each(|endpoint| endpoint.check(v4))?;
        if self.ports.len() > PORTS_MAX {
            return Err(format!("the slice has {} ports; the limit is {PORTS_MAX}", self.ports.len()));
        }
        let mut seen = BTreeSet::new();
        for port in &self.ports {
            port.check()?;
            if !seen.insert((&port.protocol, port.service_port)) {
                return Err(format!("servicePort {}/{} occurs twice", port.service_port, port.protocol));
            }
        }
        Ok(())
    }
}

impl SlicePayload {
    /// About how much memory each importer needs for it, in bytes.
    pub fn weight(&self) -> usize {
        let endpoint = |endpoint: &Endpoint| {
            let names = [&endpoint.hostname, &endpoint.zone].into_iter().flatten();
            let texts = endpoint.addresses.iter().chain(names);
            size_of::<Endpoint>() + texts.map(|text| size_of::<String>() + text.len().max(32)).sum::<usize>()
        };
        self.endpoints.iter().map(endpoint).sum()
    }
}

impl Endpoint {
    /// Whether it takes traffic; one that does not say is ready.
    pub fn is_ready(&self) -> bool {
        self.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
    }

    fn check(&self, v4: bool) -> Result<(), String> {
        if self.addresses.is_empty() || self.addresses.len() > ADDRESSES_MAX {
            return Err(format!(
                "an endpoint has {} addresses; it must have between 1 and {ADDRESSES_MAX}",
                self.addresses.len()
            ));
        }
        for address in &self.addresses {
            let fits = address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4() == v4 && reachable(ip));
            if !fits {
                return Err(format!("other clusters cannot reach address {address:?}"));
            }
        }
        if let Some(hostname) = self.hostname.as_ref().filter(|hostname| !name::is_dns_label(hostname)) {
            return Err(format!("hostname {hostname:?} is not a DNS label"));
        }
        // Importers make hints of it, which have to be values of labels.
        match self.zone.as_ref().filter(|zone| !name::is_label_value(zone)) {
            Some(zone) => Err(format!("zone {zone:?} is not the value of a label")),
            None => Ok(()),
        }
    }
}

/// Kubernetes takes no such addresses for endpoints: they mean something else on every node.
fn reachable(ip: IpAddr) -> bool {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    // IPv4 in the form of IPv6: different programs take it for different addresses.
    let is_mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    !(link_local || is_mapped || ip.is_loopback() || ip.is_unspecified() || ip.is_multicast())
}

impl SlicePort {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.protocol.as_str(), "TCP" | "UDP" | "SCTP") {
            return Err(format!("protocol {:?} is none of TCP, UDP and SCTP", self.protocol));
        }
        if !(1..=65535).contains(&self.port) || !(1..=65535).contains(&self.service_port) {
            return Err(format!(
                "port {} or servicePort {} is not a valid port number",
                self.port, self.service_port
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses that mean something else on every node.
    const UNREACHABLE: [(&str, &str); 11] = [
        ("IPv4", "127.0.0.1"),
        ("IPv4", "127.8.0.1"),
        ("IPv4", "169.254.169.254"),
        ("IPv4", "224.0.0.1"),
        ("IPv4", "239.1.2.3"),
        ("IPv4", "0.0.0.0"),
        ("IPv6", "::1"),
        ("IPv6", "fe80::1"),
        ("IPv6", "ff02::1"),
        ("IPv6", "::"),
        ("IPv6", "::ffff:10.0.0.1"),
    ];

    #[test]
    fn what_no_api_server_takes_is_found() {
        let port = SlicePort { protocol: "TCP".into(), port: 8080, service_port: 80, ..SlicePort::default() };
        let endpoint = |address: &str| Endpoint { addresses: vec![address.into()], ..Endpoint::default() };
        let good = SlicePayload {
            address_type: "IPv4".into(),
            ports: vec![port.clone()],
            endpoints: vec![endpoint("10.0.0.1")],
        };
        assert_eq!(good.check(), Ok(()));
        let in_zone = |zone: &str| {
            let endpoints = vec![Endpoint { zone: Some(zone.into()), ..endpoint("10.0.0.1") }];
            SlicePayload { endpoints, ..good.clone() }
        };
        assert_eq!((in_zone("eu-west.1_A").check(), in_zone("").check()), (Ok(()), Ok(())));
        for bad in [
            SlicePayload { address_type: "FQDN".into(), ..good.clone() },
            SlicePayload { address_type: "IPv6".into(), ..good.clone() },
            SlicePayload { endpoints: vec![endpoint("example.com")], ..good.clone() },
            in_zone("a b"),
            in_zone(&"z".repeat(64)),
            SlicePayload { endpoints: vec![Endpoint::default()], ..good.clone() },
            SlicePayload { endpoints: vec![endpoint("10.0.0.1"); 1001], ..good.clone() },
            SlicePayload { ports: vec![port.clone(), port.clone()], ..good.clone() },
            SlicePayload { ports: vec![SlicePort { port: 0, ..port }], ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        let of = |family: &str, address: &str| SlicePayload {
            address_type: family.into(),
            endpoints: vec![endpoint(address)],
            ..good.clone()
        };
        assert_eq!(of("IPv6", "fd00::1").check(), Ok(()));
        for (family, address) in UNREACHABLE {
            assert!(of(family, address).check().is_err(), "{address}");
        }
    }

    #[test]
    fn a_payload_without_endpoints_is_none() {
        assert!(serde_json::from_str::<SlicePayload>(r#"{"addressType": "IPv4", "ports": []}"#).is_err());
    }
}
