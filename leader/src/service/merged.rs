//! One Service out of what all clusters export under its name, and where each export differs from it: pure, total, and the
//! same for the same exports in any order (rules ).
//!
//! Ports are united. Everything else is the oldest export's, but for IP families, of which only those that all exporters have
//! lead to all of them. Every difference is told to all exporters, the oldest ones included.

mod ports;
mod property;

use api::{
    family,
    mcs::ServiceImportSpec,
    resource_export::ServicePayload,
    resource_import::{MergedMetadata, MergedService, Objection},
};

use self::property::PROPERTIES;

/// One cluster's export, by its cluster ID.
pub(super) type Exported<'a> = (&'a str, &'a ServicePayload);

/// The Service that these exports make, oldest first; none without any.
pub(super) fn merged(oldest_first: &[Exported<'_>]) -> Option<MergedService> {
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

/// The Service of exports of now and of one merged before, of which some exports cannot be judged any more: all ports, and
/// everything else as `older` says.
pub(super) fn together(older: MergedService, younger: &MergedService) -> MergedService {
    let ports = ports::union_of_merged(&older.spec.ports, &younger.spec.ports);
    MergedService { spec: ServiceImportSpec { ports, ..older.spec }, ..older }
}

/// What is told to each exporter of where the exports differ; in the order of `oldest_first`.
pub(super) fn conflicts(oldest_first: &[Exported<'_>]) -> Vec<Vec<Objection>> {
    let merged = merged(oldest_first).unwrap_or_default().spec;
    let mut told = vec![Vec::new(); oldest_first.len()];
    for (about, told) in oldest_first.iter().zip(&mut told) {
        for property in &PROPERTIES {
            told.extend(property.conflict(oldest_first, about, &merged));
        }
    }
    told
}

/// Families that every exporter has, in the oldest one's order: with more, whom a client reaches would depend on the family it
/// happens to use. An exporter that has not the oldest one's first is passed over, or its coming would take away the address
/// that everybody uses; it is reached in the families that it shares, if any.
///
/// Of a headless import there is no such address: each endpoint has its own, by which it is found, and none goes because another
/// cluster's endpoints have fewer.
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
