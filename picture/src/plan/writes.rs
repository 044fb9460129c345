//! Number of writes that a change costs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    exporter::Exporter,
    importer::{Address, Imported},
    predicted::Predicted,
};

/// Number of writes that a change costs until all daemons have settled again. Leases and Events are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    /// In the Common Area.
    pub common_area: usize,
    /// In the clusters that were looked at, by their IDs.
    pub clusters: BTreeMap<String, usize>,
}

impl Writes {
    pub(super) fn between(before: &Predicted, after: &Predicted) -> Self {
        let none = Exporter::default();
        let ids: Vec<_> = both(&before.exporters, &after.exporters).collect();
        let of = |all: &Predicted, id: &String| all.exporters.get(id).unwrap_or(&none).clone();
        let pairs: Vec<_> = ids.iter().map(|id| (of(before, id), of(after, id))).collect();
        let records: usize = pairs.iter().map(|(before, after)| record(before, after)).sum();
        let slices: usize = pairs.iter().map(|(before, after)| slices(before, after)).sum();
        let merged = match (&before.merged, &after.merged) {
            (None, None) => 0,
            // It is emptied first.
            (Some(_), None) => 2,
            (before, after) => usize::from(before != after || records > 0),
        };
        let mut clusters = BTreeMap::<String, usize>::new();
        for id in both(&before.imports, &after.imports) {
            let count = import(before.imports.get(id), after.imports.get(id));
            *clusters.entry(id.clone()).or_default() += count;
        }
        for (id, said) in &after.said {
            let is_written = after.exporters.get(id).is_some_and(|exporter| !exporter.said.is_empty());
            let is_news = before.said.get(id) != Some(said);
            *clusters.entry(id.clone()).or_default() += usize::from(is_written && is_news);
        }
        clusters.retain(|_, count| *count > 0);
        Self { common_area: records + slices + merged, clusters }
    }
}

fn both<'a, V>(
    before: &'a BTreeMap<String, V>,
    after: &'a BTreeMap<String, V>,
) -> impl Iterator<Item = &'a String> {
    before.keys().chain(after.keys().filter(|id| !before.contains_key(*id)))
}

/// Those of the Service record. What is withdrawn, the leader deletes.
fn record(before: &Exporter, after: &Exporter) -> usize {
    let payload = |exporter: &Exporter| exporter.offer.as_ref().map(|offer| offer.payload.clone());
    match (payload(before), payload(after)) {
        (before, after) if before == after => 0,
        (Some(_), None) => 2,
        _ => 1,
    }
}

/// Those of slice records. One that goes while others stay is emptied first.
fn slices(before: &Exporter, after: &Exporter) -> usize {
    let of_one = |name: &String| match (before.slices.get(name), after.slices.get(name)) {
        (before, after) if before == after => 0,
        (Some(_), None) if after.offer.is_some() => 2,
        _ => 1,
    };
    both(&before.slices, &after.slices).map(of_one).sum()
}

/// Those of an import: ServiceImport, its status, its Service, its EndpointSlices.
fn import(before: Option<&Imported>, after: Option<&Imported>) -> usize {
    match (before, after) {
        (None, None) => 0,
        (None, Some(one)) => 2 + usize::from(one.has_service) + one.slices.len(),
        (Some(one), None) => 1 + usize::from(one.has_service) + one.slices.len(),
        (Some(before), Some(after)) => {
            let of_slice = |name: &String| usize::from(before.slices.get(name) != after.slices.get(name));
            let slices: usize = both(&before.slices, &after.slices).map(of_slice).sum();
            let content = before.spec != after.spec || before.metadata != after.metadata;
            let status = before.conditions != after.conditions || before.clusters != after.clusters;
            let service = match (before.has_service, after.has_service) {
                (true, true) if after.address == Address::New && before.address == Address::Kept => 2,
                (true, true) => usize::from(content),
                (false, false) => 0,
                _ => 1,
            };
            slices + service + usize::from(content) + usize::from(status)
        }
    }
}
