//! What an imported slice says of being demoted: whoever starts anew, or has no word of its cluster, knows by it that these endpoints are
//! not ready for that reason alone, and makes them ready again. Pure.

use std::{collections::BTreeSet, iter::once};

use api::{label, resource_import::MergedMetadata};
use jiff::Timestamp;
use kube::ResourceExt;

use super::metadata;
use crate::service::index::view::{Endpoint, Slice};

/// Makes the endpoints of a slice not ready, and says so on it.
pub(super) fn demote(slice: &mut Slice, since: Timestamp) {
    let places = slice.endpoints.iter().enumerate().filter(|(_, endpoint)| !endpoint.shared.is_ready());
    let said = once(since.to_string()).chain(places.map(|(place, _)| place.to_string()));
    let said = [(label::DEMOTED.to_owned(), said.collect::<Vec<_>>().join(" "))].into();
    metadata::add(&MergedMetadata { annotations: said, ..MergedMetadata::default() }, &mut slice.metadata);
    slice.endpoints.iter_mut().for_each(not_ready);
}

/// Not serving either: that would mean that it is only ending, and takes traffic where nobody else does.
fn not_ready(endpoint: &mut Endpoint) {
    let conditions = endpoint.shared.conditions.get_or_insert_default();
    conditions.ready = Some(false);
    conditions.serving = conditions.serving.map(|_| false);
}

/// Since when a slice is demoted, if it is.
pub(crate) fn demoted_since(slice: &Slice) -> Option<Timestamp> {
    slice.annotations().get(label::DEMOTED)?.split(' ').next()?.parse().ok()
}

/// The slice as it was before it was demoted.
pub(super) fn restored(slice: &Slice) -> Slice {
    let mut slice = slice.clone();
    let annotations = &mut slice.metadata.annotations;
    let Some(said) = annotations.as_mut().and_then(|all| all.remove(label::DEMOTED)) else { return slice };
    annotations.iter_mut().for_each(|all| drop(all.remove(label::EXPORTED_METADATA)));
    annotations.take_if(|all| all.is_empty());
    let places: BTreeSet<usize> = said.split(' ').skip(1).filter_map(|place| place.parse().ok()).collect();
    let endpoints = slice.endpoints.iter_mut().enumerate().filter(|(place, _)| !places.contains(place));
    for (_, endpoint) in endpoints {
        let conditions = endpoint.shared.conditions.get_or_insert_default();
        conditions.ready = Some(true);
        conditions.serving = conditions.serving.map(|_| true);
    }
    slice
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(endpoints: &Value) -> Slice {
        let metadata = json!({"name": "s", "labels": {label::MANAGED_BY: label::FREEPORT}});
        let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        serde_json::from_value(slice).unwrap()
    }

    #[test]
    fn a_demoted_slice_becomes_what_it_was() {
        let was = slice(&json!([
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": false}},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": true}},
        ]));
        let at: Timestamp = "2026-11-27T04:00:00.123456789Z".parse().unwrap();
        let mut demoted = was.clone();
        demote(&mut demoted, at);
        assert!(demoted.endpoints.iter().all(|endpoint| !endpoint.shared.is_ready()));
        assert_eq!(demoted.annotations()[label::DEMOTED], "2026-11-27T04:00:00.123456789Z 1");
        assert_eq!((demoted_since(&demoted), demoted_since(&was)), (Some(at), None));
        let read: Slice = serde_json::from_value(json!(demoted)).unwrap();
        assert_eq!(
            (&read, json!(restored(&read))["endpoints"].clone()),
            (&demoted, json!(was)["endpoints"].clone())
        );
        assert_eq!((demoted_since(&restored(&read)), restored(&was)), (None, was));
    }
}
