//! What can differ between exports of one Service, and the message about it.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    family,
    mcs::{ClientIpConfig, ServiceImportSpec, ServiceImportType, SessionAffinityConfig},
    resource_export::ServicePayload,
    resource_import::Objection,
    words::first_names,
};
use k8s_openapi::api::core::v1 as core;

use super::{Exported, ports};

/// Longest value in a message: labels can be long, and the message of a condition has a limit.
const SHOWN: usize = 400;

/// The value of a field that is not set.
const UNSET: &str = "unset";

/// A property of an export.
pub(super) struct Property {
    /// Of the condition `Conflict`: a reason of the Multi-Cluster Services API.
    reason: &'static str,
    field: &'static str,
    /// Equal for exports that agree; shown in the message.
    value: fn(&ServicePayload) -> String,
    wins: Wins,
}

#[derive(PartialEq)]
enum Wins {
    /// The value of the oldest export.
    Oldest,
    /// All ports.
    Union,
    /// What all have in common.
    Intersection,
}

/// In the order in which they are reported.
pub(super) const PROPERTIES: [Property; 9] = [
    Property { reason: "PortConflict", field: "ports", value: ports::words, wins: Wins::Union },
    Property { reason: "TypeConflict", field: "type", value: type_name, wins: Wins::Oldest },
    Property {
        reason: "SessionAffinityConflict",
        field: "sessionAffinity",
        value: affinity,
        wins: Wins::Oldest,
    },
    Property {
        reason: "SessionAffinityConfigConflict",
        field: "sessionAffinityConfig.clientIP.timeoutSeconds",
        value: affinity_timeout,
        wins: Wins::Oldest,
    },
    Property {
        reason: "InternalTrafficPolicyConflict",
        field: "internalTrafficPolicy",
        value: internal_traffic_policy,
        wins: Wins::Oldest,
    },
    Property {
        reason: "TrafficDistributionConflict",
        field: "trafficDistribution",
        value: traffic_distribution,
        wins: Wins::Oldest,
    },
    Property { reason: "IPFamilyConflict", field: "ipFamilies", value: family_set, wins: Wins::Intersection },
    Property { reason: "LabelsConflict", field: "exportedLabels", value: labels, wins: Wins::Oldest },
    Property {
        reason: "AnnotationsConflict",
        field: "exportedAnnotations",
        value: annotations,
        wins: Wins::Oldest,
    },
];

impl Property {
    /// What is reported to the exporter `about` if not all agree: field, winning value and cluster, how many disagree, and
    /// what this export has.
    pub(super) fn conflict(
        &self,
        oldest_first: &[Exported<'_>],
        about: &Exported<'_>,
        merged: &ServiceImportSpec,
    ) -> Option<Objection> {
        let (winner, oldest) = oldest_first.first()?;
        let winning = (self.value)(oldest);
        let others = oldest_first.iter().filter(|(_, payload)| (self.value)(payload) != winning);
        let others: Vec<_> = others.map(|(cluster, _)| *cluster).collect();
        if others.is_empty() {
            return None;
        }
        let (field, all) = (self.field, oldest_first.len());
        let from = match self.wins {
            Wins::Oldest => format!("{field} {}, as in cluster {winner}, the oldest export", is(&winning)),
            Wins::Union => format!(
                "{field}: the Service has the ports of all exports; where two ports have the same name or number, it has the port of the \
                 older export (cluster {winner} has the oldest export): {}",
                short(&ports::words_of_merged(&merged.ports))
            ),
            Wins::Intersection if oldest.is_headless() => {
                format!(
                    "{field}: all families are used, each for the endpoints that have it: {}",
                    merged.ip_families.join(", ")
                )
            }
            Wins::Intersection => format!(
                "{field}: {} is used: the first IP family of cluster {winner}, the oldest export, always; its second one only while every \
                 other export that has the first also has the second",
                merged.ip_families.join(", ")
            ),
        };
        let own = (self.value)(about.1);
        let used = match self.wins {
            Wins::Intersection => set(merged.ip_families.clone()),
            Wins::Oldest | Wins::Union => winning.clone(),
        };
        let side = match self.wins {
            _ if own == used => "this export agrees with it".to_owned(),
            Wins::Oldest => format!("in this export it {}", is(&own)),
            Wins::Union => {
                let left_out = ports::left_out(about.1, &merged.ports);
                let lost = left_out.map(|ports| format!("; clients cannot reach {}", short(&ports)));
                format!("this export has {}{}", short(&own), lost.unwrap_or_default())
            }
            Wins::Intersection => {
                let is_reached = !family::common(&families_of(about.1), &merged.ip_families).is_empty();
                let lost = if is_reached { "" } else { "; clients cannot reach it" };
                format!("this export has {own}{lost}")
            }
        };
        let disagree = match others.len() {
            1 => format!("cluster {} disagrees (1 of {all})", others[0]),
            several => format!("clusters {} disagree ({several} of {all})", first_names(&others)),
        };
        let message = format!("{from}; {disagree}; {side}");
        Some(Objection { reason: self.reason.to_owned(), message })
    }
}

/// A value as a sentence has it.
fn is(value: &str) -> String {
    match value {
        UNSET | "" => "is not set".to_owned(),
        map if map.contains('"') => format!("is {}", short(map)),
        word => format!("is {:?}", short(word)),
    }
}

fn short(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

/// Headless or not.
pub(super) fn type_of(payload: &ServicePayload) -> ServiceImportType {
    if payload.is_headless() { ServiceImportType::Headless } else { ServiceImportType::ClusterSetIP }
}

fn type_name(payload: &ServicePayload) -> String {
    format!("{:?}", type_of(payload))
}

/// Unset means `None`.
fn affinity(payload: &ServicePayload) -> String {
    let said = payload.service_spec.session_affinity.as_deref();
    said.filter(|affinity| !affinity.is_empty()).unwrap_or("None").to_owned()
}

fn affinity_timeout(payload: &ServicePayload) -> String {
    let config = payload.service_spec.session_affinity_config.as_ref().map(affinity_config);
    let seconds = config.and_then(|config| config.client_ip?.timeout_seconds);
    seconds.map_or_else(|| UNSET.to_owned(), |seconds| seconds.to_string())
}

pub(super) fn affinity_config(config: &core::SessionAffinityConfig) -> SessionAffinityConfig {
    let client_ip = config.client_ip.as_ref();
    SessionAffinityConfig {
        client_ip: client_ip.map(|c| ClientIpConfig { timeout_seconds: c.timeout_seconds }),
    }
}

/// Unset means `Cluster`.
fn internal_traffic_policy(payload: &ServicePayload) -> String {
    payload.service_spec.internal_traffic_policy.clone().unwrap_or_else(|| "Cluster".into())
}

/// Unset is a value of its own; one value has two names.
fn traffic_distribution(payload: &ServicePayload) -> String {
    match payload.service_spec.traffic_distribution.as_deref() {
        None => UNSET.into(),
        Some("PreferClose") => "PreferSameZone".into(),
        Some(other) => other.into(),
    }
}

/// Families of an export.
pub(super) fn families_of(payload: &ServicePayload) -> Vec<String> {
    family::said(payload.service_spec.ip_families.as_deref().unwrap_or_default())
}

/// Their order means nothing.
fn family_set(payload: &ServicePayload) -> String {
    set(families_of(payload))
}

fn set(families: Vec<String>) -> String {
    families.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

fn labels(payload: &ServicePayload) -> String {
    words(&payload.exported_labels)
}

fn annotations(payload: &ServicePayload) -> String {
    words(&payload.exported_annotations)
}

/// Different for different maps, whatever is in them.
fn words(map: &BTreeMap<String, String>) -> String {
    let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    pairs.join(", ")
}
