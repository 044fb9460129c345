//! The ResourceImport of a Service: what the records of all clusters come to, and a verdict for each exporter.

use api::{
    ServiceName,
    resource_export::{ServicePayload, can_be_written},
    resource_import::{Exporter, MergedService, ResourceImportSpec, SERVICE_IMPORT},
    words::first_names,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::merged::{conflicts, merged, ports_of, with_ports_of};

/// A cluster's Service, by a valid record.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// Of the record: identifies what a verdict is about.
    pub metadata: ObjectMeta,
    /// What it exports.
    pub payload: ServicePayload,
}

impl Offer {
    /// Reports whether both say the same, in the same version of the record.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let version = |offer: &Self| (offer.metadata.uid.clone(), offer.metadata.generation);
        version(self) == version(other) && self.payload == other.payload
    }
}

/// The import of these offers, none of them withdrawn, and of the exporters `kept` of the import that was: they keep what they had until
/// they write valid records, or withdraw. `had`: the Service of that import.
pub fn import(
    service: &ServiceName,
    live: Vec<(&str, &Offer)>,
    had: Option<&MergedService>,
    kept: Vec<&Exporter>,
) -> ResourceImportSpec {
    let (service_import, exporters) = with_kept(merge(live), had, kept);
    ResourceImportSpec {
        name: Some(service.name.clone()),
        namespace: Some(service.namespace.clone()),
        kind: Some(SERVICE_IMPORT.into()),
        service_import,
        exported_by: exported_by(&exporters),
        exporters: Some(exporters),
        ..ResourceImportSpec::default()
    }
}

/// Names the exporters for people, as in `north, west, east and 2 more`.
fn exported_by(exporters: &[Exporter]) -> Option<String> {
    let names = exporters.iter().map(|exporter| &exporter.cluster_id);
    (!exporters.is_empty()).then(|| first_names(names))
}

/// What is merged, by whom, with the parts of those whose records are refused or vanished: they keep what they had until they write
/// valid ones, or withdraw.
fn with_kept(
    (merged, mut exporters): (Option<MergedService>, Vec<Exporter>),
    had: Option<&MergedService>,
    kept: Vec<&Exporter>,
) -> (Option<MergedService>, Vec<Exporter>) {
    if exporters.is_empty() && kept.is_empty() {
        return (had.cloned(), exporters);
    }
    let age = |e: &Exporter| (e.exported_at.as_ref().map(|time| time.0), e.cluster_id.clone());
    let had_ports = had.map(|had| had.spec.ports.clone()).unwrap_or_default();
    let kept: Vec<_> = kept
        .into_iter()
        .map(|exporter| Exporter {
            exported_at: exporter.exported_at.clone().filter(can_be_written),
            // It does not say ports that are those of the import.
            ports: exporter.ports.clone().or_else(|| Some(had_ports.clone())),
            ..exporter.clone()
        })
        .collect();
    let is_kept_oldest = match (exporters.iter().map(age).min(), kept.iter().map(age).min()) {
        (Some(live), Some(kept)) => kept < live,
        (live, _) => live.is_none(),
    };
    exporters.extend(kept);
    exporters.sort_by_key(age);
    let oldest = if is_kept_oldest { had.cloned().or(merged) } else { merged };
    let service_import = oldest.map(|oldest| with_ports_of(oldest, &exporters));
    let ports = service_import.as_ref().map(|merged| &merged.spec.ports);
    for exporter in &mut exporters {
        exporter.ports = exporter.ports.take().filter(|own| Some(own) != ports);
    }
    (service_import, exporters)
}

/// The merged Service and a verdict for each exporter, oldest first; the same input in any order gives the same output.
/// Precedence is the age of the export (rule R-34), then the cluster ID.
pub fn merge(mut offers: Vec<(&str, &Offer)>) -> (Option<MergedService>, Vec<Exporter>) {
    offers.sort_by_key(|(cluster, offer)| (exported_at(offer).map(|time| time.0), *cluster));
    let exported: Vec<_> = offers.iter().map(|(cluster, offer)| (*cluster, &offer.payload)).collect();
    let verdicts = offers.iter().zip(conflicts(&exported));
    let exporters = verdicts.map(|((cluster, offer), conflicts)| Exporter {
        cluster_id: (*cluster).to_owned(),
        exported_at: exported_at(offer),
        observed: observed(&offer.metadata),
        ports: Some(ports_of(&offer.payload)),
        conflicts,
        ..Exporter::default()
    });
    (merged(&exported), exporters.collect())
}

/// When the export was made; a record that does not say it (Antrea's do not) is as old as itself.
pub fn exported_at(offer: &Offer) -> Option<Time> {
    offer.payload.exported_at.clone().or_else(|| offer.metadata.creation_timestamp.clone())
}

/// What a verdict is about, so that an exporter can tell it from one about an older record.
fn observed(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_of_exporters_names_three_and_counts_the_rest() {
        let named = |ids: &[&str]| {
            let exporter = |id: &&str| Exporter { cluster_id: (*id).into(), ..Exporter::default() };
            exported_by(&ids.iter().map(exporter).collect::<Vec<_>>())
        };
        assert_eq!(named(&[]), None);
        assert_eq!(named(&["b", "a"]).as_deref(), Some("b, a"));
        assert_eq!(named(&["e", "d", "c", "b", "a"]).as_deref(), Some("e, d, c and 2 more"));
    }
}
