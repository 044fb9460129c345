//! Metadata of what an import makes here: our label, and the labels and annotations that exporters gave it.

use std::collections::BTreeMap;

use api::{ServiceName, label, resource_import::MergedMetadata};
use kube::api::ObjectMeta;
use serde_json::json;

use crate::keys::is_for_services;

/// Metadata of an object of that name that we make for the import. It has no finalizers and no owners: nobody else says how long it
/// is there.
pub fn of_ours(service: &ServiceName, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(service.namespace.clone()),
        labels: Some([(label::MANAGED_BY.to_owned(), label::FREEPORT.to_owned())].into()),
        finalizers: Some(vec![]),
        owner_references: Some(vec![]),
        ..ObjectMeta::default()
    }
}

/// What is exported of the metadata of a ServiceImport of ours.
pub fn exported(metadata: &ObjectMeta) -> MergedMetadata {
    let note = metadata.annotations.as_ref().and_then(|all| all.get(label::EXPORTED_METADATA));
    let note: BTreeMap<String, Vec<String>> =
        note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
    let noted = |field: &str, all: Option<&BTreeMap<String, String>>| {
        let keys = note.get(field).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), all?.get(key)?.clone()))).collect()
    };
    MergedMetadata {
        labels: noted("labels", metadata.labels.as_ref()),
        annotations: noted("annotations", metadata.annotations.as_ref()),
    }
}

/// Adds what is `given`, and the note of it. Keys of our own stay ours, whatever is given under them.
pub fn add(given: &MergedMetadata, metadata: &mut ObjectMeta) {
    let labels = new(&given.labels, metadata.labels.as_ref());
    let annotations = new(&given.annotations, metadata.annotations.as_ref());
    if labels.is_empty() && annotations.is_empty() {
        return;
    }
    let keys = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
    let note = json!({"labels": keys(&labels), "annotations": keys(&annotations)}).to_string();
    metadata.labels.get_or_insert_default().extend(labels);
    let all = metadata.annotations.get_or_insert_default();
    all.extend(annotations);
    all.insert(label::EXPORTED_METADATA.into(), note);
}

/// The part of the exported labels and annotations that the Service of the import gets.
pub fn for_service(given: &MergedMetadata) -> MergedMetadata {
    let kept = |all: &BTreeMap<String, String>| {
        all.iter()
            .filter(|(key, _)| is_for_services(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    MergedMetadata { labels: kept(&given.labels), annotations: kept(&given.annotations) }
}

fn new(given: &BTreeMap<String, String>, own: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let is_ours = |key: &str| {
        own.is_some_and(|own| own.contains_key(key))
            || [label::HUB, label::WITHHELD, label::EXPORTED_METADATA, label::DERIVED_SERVICE].contains(&key)
    };
    given.iter().filter(|(key, _)| !is_ours(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_again_and_ours_stays_ours() {
        let text = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let mut metadata = ObjectMeta {
            labels: Some(text(&[(label::MANAGED_BY, label::FREEPORT)])),
            ..ObjectMeta::default()
        };
        let plain = metadata.clone();
        add(&MergedMetadata::default(), &mut metadata);
        assert_eq!(metadata, plain, "nothing to note");

        let exported = MergedMetadata {
            labels: text(&[("team", "shop"), (label::MANAGED_BY, "helm")]),
            annotations: text(&[("note", "a"), (label::HUB, "stolen"), (label::EXPORTED_METADATA, "{}")]),
        };
        add(&exported, &mut metadata);
        assert_eq!(metadata.labels.as_ref().unwrap()[label::MANAGED_BY], label::FREEPORT);
        assert_eq!(metadata.annotations.as_ref().unwrap().get(label::HUB), None);
        metadata.labels.get_or_insert_default().insert("theirs".into(), "x".into());
        let found = super::exported(&metadata);
        assert_eq!((found.labels, found.annotations), (text(&[("team", "shop")]), text(&[("note", "a")])));
    }
}
