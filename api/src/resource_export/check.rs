//! Whether every importer's API server would take what an export says: pure. A member asks before it exports, and the leader before it
//! merges.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

use super::{ServicePayload, can_be_written};
use crate::{family, name, port};

/// Most bytes of exported labels and annotations: a quarter of what an API server takes on one object.
const METADATA_MAX: usize = 64 * 1024;
/// Most exported labels and annotations: short ones take thirty times as much memory as they have bytes.
const ENTRIES_MAX: usize = 256;
/// Most ports a Service may have: what a ServiceImport of many exporters can still hold.
const PORTS_MAX: usize = 100;
/// Longest session affinity, in seconds: a day.
const AFFINITY_MAX: i32 = 86_400;

/// Whether there are not too many exported labels and annotations.
pub fn check_size(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Result<(), String> {
    let count = labels.len() + annotations.len();
    if count > ENTRIES_MAX {
        return Err(format!(
            "exportedLabels and exportedAnnotations have {count} entries together, and at most {ENTRIES_MAX} can be exported"
        ));
    }
    let size: usize = labels.iter().chain(annotations).map(|(key, value)| key.len() + value.len()).sum();
    match size > METADATA_MAX {
        true => Err(format!(
            "exportedLabels and exportedAnnotations have {size} bytes together, and at most {METADATA_MAX} can be exported"
        )),
        false => Ok(()),
    }
}

/// Why an export cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It has so many ports.
    #[error("the Service has {0} ports, and at most {PORTS_MAX} can be exported")]
    Ports(usize),
    /// A value of it is one that no API server would take; a sentence.
    #[error("{0}")]
    Value(String),
}

impl Unfit {
    /// In CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Ports(_) => "TooManyPorts",
            Self::Value(_) => "InvalidService",
        }
    }
}

impl From<String> for Unfit {
    fn from(message: String) -> Self {
        Self::Value(message)
    }
}

impl ServicePayload {
    /// Whether this can be a Service that is not withdrawn.
    pub fn check(&self) -> Result<(), Unfit> {
        check_families(self)?;
        check_ports(self)?;
        check_policies(&self.service_spec)?;
        self.check_metadata()?;
        Ok(self.check_time()?)
    }

    /// Whether the time of the export can be copied into an import.
    fn check_time(&self) -> Result<(), String> {
        match self.exported_at.as_ref().filter(|time| !can_be_written(time)) {
            Some(time) => Err(format!("exportedAt {} has no year between 1 and 9999 in UTC", time.0)),
            None => Ok(()),
        }
    }

    /// Whether an API server would take the exported labels and annotations on an object; what it would object to otherwise.
    pub fn check_metadata(&self) -> Result<(), String> {
        check_size(&self.exported_labels, &self.exported_annotations)?;
        let all = self.exported_labels.iter().chain(&self.exported_annotations);
        // An API server compares keys of annotations in lower case.
        if let Some((key, _)) =
            all.clone().find(|(key, _)| !name::is_qualified_name(&key.to_ascii_lowercase()))
        {
            return Err(format!("{key:?} is not a valid key of a label or an annotation"));
        }
        match self
            .exported_labels
            .iter()
            .find(|(key, value)| !name::is_qualified_name(key) || !name::is_label_value(value))
        {
            Some((key, value)) => {
                Err(format!("exportedLabels: {value:?} is not a valid value for label {key:?}"))
            }
            None => Ok(()),
        }
    }
}

fn check_families(payload: &ServicePayload) -> Result<(), String> {
    let families = payload.service_spec.ip_families.as_deref().unwrap_or_default();
    let is_known = |family: &String| family == family::IPV4 || family == family::IPV6;
    if families.len() > 2
        || !families.iter().all(is_known)
        || (families.len() == 2 && families[0] == families[1])
    {
        return Err(format!("IP families {families:?} are not IPv4, IPv6 or both"));
    }
    Ok(())
}

fn check_ports(payload: &ServicePayload) -> Result<(), Unfit> {
    let ports = payload.service_spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !payload.is_headless() {
        return Err(Unfit::Value("the Service has no ports; only a headless Service can have none".into()));
    }
    if ports.len() > PORTS_MAX {
        return Err(Unfit::Ports(ports.len()));
    }
    let mut seen = BTreeSet::new();
    for port in ports {
        check_port(port)?;
        let protocol = port::protocol(port.protocol.as_deref());
        let name = port.name.as_deref().unwrap_or_default();
        if !seen.insert((protocol, port.port.to_string())) || !seen.insert(("", name.to_owned())) {
            return Err(format!("two ports are {}/{protocol} or have the name {name:?}", port.port).into());
        }
    }
    Ok(())
}

fn check_port(port: &ServicePort) -> Result<(), String> {
    let protocol = port::protocol(port.protocol.as_deref());
    let name = port.name.as_deref().unwrap_or_default();
    if !(1..=65535).contains(&port.port) {
        return Err(format!("port {} is not a valid port number", port.port));
    }
    if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
        return Err(format!(
            "port {} has protocol {protocol:?}, which is none of TCP, UDP and SCTP",
            port.port
        ));
    }
    if !name.is_empty() && !name::is_dns_label(name) {
        return Err(format!("port name {name:?} is not a DNS label"));
    }
    match port.app_protocol.as_deref().filter(|protocol| !name::is_qualified_name(protocol)) {
        Some(protocol) => Err(format!("application protocol {protocol:?} is not a qualified name")),
        None => Ok(()),
    }
}

/// Whether the rest of the spec that is merged has values that Kubernetes knows.
fn check_policies(spec: &ServiceSpec) -> Result<(), String> {
    let known = |field: &str, value: &Option<String>, known: &[&str]| match value.as_deref() {
        Some(value) if !known.contains(&value) => {
            Err(format!("{field} {value:?} is none of {}", known.join(", ")))
        }
        _ => Ok(()),
    };
    known("sessionAffinity", &spec.session_affinity, &["", "None", "ClientIP"])?;
    known("internalTrafficPolicy", &spec.internal_traffic_policy, &["Cluster", "Local"])?;
    known(
        "trafficDistribution",
        &spec.traffic_distribution,
        &["PreferClose", "PreferSameZone", "PreferSameNode"],
    )?;
    let config = spec.session_affinity_config.as_ref();
    match config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds) {
        Some(seconds) if !(1..=AFFINITY_MAX).contains(&seconds) => {
            Err(format!("sessionAffinityConfig: {seconds} seconds is not between 1 and {AFFINITY_MAX}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(count: usize) -> ServicePayload {
        let exported_labels = (0..count).map(|n| (format!("k{n}"), String::new())).collect();
        ServicePayload { exported_labels, ..ServicePayload::default() }
    }

    #[test]
    fn a4_many_short_labels_are_too_many_and_weigh_what_they_take() {
        assert_eq!(labelled(ENTRIES_MAX).check_metadata(), Ok(()));
        assert!(labelled(ENTRIES_MAX + 1).check_metadata().unwrap_err().contains("257 entries"));
        let json = serde_json::to_string(&labelled(ENTRIES_MAX)).unwrap().len();
        assert!(labelled(ENTRIES_MAX).weight() > 10 * json, "their JSON has {json} bytes");
        let spec = serde_json::from_value(serde_json::json!({"ports": [{"port": 1}, {"port": 2}]})).unwrap();
        let ports = ServicePayload { service_spec: spec, ..ServicePayload::default() };
        assert!(ports.weight() >= 200, "{}", ports.weight());
    }
}
