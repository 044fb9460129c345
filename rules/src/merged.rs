//! One Service out of what all clusters export under its name, and where each export differs from it: pure, total, and the
//! same for the same exports in any order (rules ).
//!
//! The Service has the ports of all exports. Everything else is as in the oldest export, except IP families: only through a family
//! that all exporters have does a client reach all of them. Each difference is reported to all exporters, also to the oldest.

mod ports;
mod property;

use api::{
    family,
    mcs::{ServiceImportSpec, ServicePort},
    resource_export::ServicePayload,
    resource_import::{Exporter, MergedMetadata, MergedService, Objection},
};

use self::property::PROPERTIES;

/// One cluster's export, by its cluster ID.
pub type Exported<'a> = (&'a str, &'a ServicePayload);

/// The Service that these exports make, oldest first; none without any.
pub fn merged(oldest_first: &[Exported<'_>]) -> Option<MergedService> {
    let (_, oldest) = oldest_first.first()?;
    let spec = &oldest.service_spec;
    let affinity_config = spec.session_affinity_config.as_ref();
    Some(MergedService {
        spec: ServiceImportSpec {
            type_: property::type_of(oldest),
            ports: ports::union(oldest_first),
            ips: vec![],
            ip_families: families(oldest_first),
            session_affinity: spec.session_affinity.clone(),
            session_affinity_config: affinity_config.map(property::affinity_config),
            internal_traffic_policy: spec.internal_traffic_policy.clone(),
            traffic_distribution: spec.traffic_distribution.clone(),
        },
        metadata: metadata(oldest),
        status: None,
    })
}

/// The merged Service with the ports of these exporters, oldest first.
pub fn with_ports_of(merged: MergedService, oldest_first: &[Exporter]) -> MergedService {
    let ports = oldest_first.iter().flat_map(|exporter| exporter.ports.iter().flatten());
    let ports = ports::union_of_merged(ports);
    MergedService { spec: ServiceImportSpec { ports, ..merged.spec }, ..merged }
}

/// The ports of an export, as a merged Service of it alone has them.
pub fn ports_of(payload: &ServicePayload) -> Vec<ServicePort> {
    ports::plain(payload)
}

/// Where the exports differ, as it is reported to each exporter; in the order of `oldest_first`.
pub fn conflicts(oldest_first: &[Exported<'_>]) -> Vec<Vec<Objection>> {
    let merged = merged(oldest_first).unwrap_or_default().spec;
    let mut conflicts = vec![Vec::new(); oldest_first.len()];
    for (about, conflicts) in oldest_first.iter().zip(&mut conflicts) {
        for property in &PROPERTIES {
            conflicts.extend(property.conflict(oldest_first, about, &merged));
        }
    }
    conflicts
}

/// Families that every exporter has, in the order of the oldest export: with more, it would depend on the family that a client
/// happens to use which exporters it reaches. An exporter without the first family of the oldest export does not count here:
/// otherwise its export would take away the address that everybody uses. Clients reach it through the families that it
/// shares, if any.
///
/// A headless import has no such address: clients find each endpoint by the endpoint's own address, so a headless import has the
/// families of all exporters.
fn families(oldest_first: &[Exported<'_>]) -> Vec<String> {
    let mut exporters = oldest_first.iter().map(|(_, payload)| property::families_of(payload));
    let mut common = exporters.next().unwrap_or_default();
    let is_headless = oldest_first.first().is_some_and(|(_, oldest)| oldest.is_headless());
    for families in exporters {
        if is_headless {
            common.extend(families.into_iter().filter(|family| !common.contains(family)).collect::<Vec<_>>());
        } else if common.first().is_some_and(|first| families.contains(first)) {
            common = family::common(&common, &families);
        }
    }
    common
}

fn metadata(oldest: &ServicePayload) -> Option<MergedMetadata> {
    let metadata = MergedMetadata {
        labels: oldest.exported_labels.clone(),
        annotations: oldest.exported_annotations.clone(),
    };
    (metadata != MergedMetadata::default()).then_some(metadata)
}

#[cfg(test)]
mod tests;
