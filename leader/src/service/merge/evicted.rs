//! Which clusters an import lost because they were silent for too long: importers say it where users look. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::resource_import::{Evicted, ResourceImportSpec};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Those of the `evicted` that took part in what there was, as long as they do not take part again.
pub(super) fn lost(
    had: Option<&ResourceImportSpec>,
    want: &ResourceImportSpec,
    evicted: &BTreeMap<String, Timestamp>,
) -> Vec<Evicted> {
    let named = |spec: &ResourceImportSpec| -> BTreeSet<String> {
        spec.exporters.iter().flatten().map(|exporter| exporter.cluster_id.clone()).collect()
    };
    let (before, now) = (had.map(named).unwrap_or_default(), named(want));
    let said: BTreeMap<_, _> =
        had.iter().flat_map(|had| &had.evicted).map(|of| (&of.cluster_id, &of.since)).collect();
    let is_lost = |cluster: &&String| {
        !now.contains(*cluster) && (before.contains(*cluster) || said.contains_key(cluster))
    };
    let since = |cluster: &String| {
        let said = said.get(cluster).map(|since| (*since).clone());
        said.unwrap_or_else(|| Time(evicted[cluster]))
    };
    let lost = evicted.keys().filter(is_lost);
    lost.map(|cluster| Evicted { cluster_id: cluster.clone(), since: since(cluster) }).collect()
}

/// Whether nobody reads anything in such an import. Of who was evicted importers learn nowhere else that its part is taken back, and some
/// of them may be away for long.
pub(super) fn is_over(import: &ResourceImportSpec) -> bool {
    import.exporters.as_ref().is_some_and(Vec::is_empty) && import.evicted.is_empty()
}

#[cfg(test)]
mod tests {
    use api::resource_import::Exporter;

    use super::*;

    fn spec(exporters: &[&str], evicted: Vec<Evicted>) -> ResourceImportSpec {
        let exporter = |id: &&str| Exporter { cluster_id: (*id).into(), ..Exporter::default() };
        let exporters = Some(exporters.iter().map(exporter).collect());
        ResourceImportSpec { exporters, evicted, ..ResourceImportSpec::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn who_was_lost_is_named_until_it_takes_part_again() {
        let evicted = |second| [("east".to_owned(), at(second)), ("other".to_owned(), at(second))].into();
        let (both, west) = (spec(&["east", "west"], vec![]), spec(&["west"], vec![]));
        assert_eq!(lost(Some(&both), &both, &evicted(1)), [], "it is named yet");
        let east = vec![Evicted { cluster_id: "east".into(), since: Time(at(1)) }];
        assert_eq!(lost(Some(&both), &west, &evicted(1)), east);
        let noted = spec(&["west"], east.clone());
        assert_eq!(lost(Some(&noted), &west, &evicted(9)), east, "since when stays, whoever asks");
        assert_eq!(lost(Some(&noted), &both, &evicted(9)), []);
        assert_eq!(lost(Some(&noted), &west, &BTreeMap::new()), [], "it is back, and exports something else");
        assert_eq!(lost(Some(&both), &west, &BTreeMap::new()), [], "it withdrew by itself");
        assert_eq!(lost(None, &west, &evicted(1)), []);
    }
}
