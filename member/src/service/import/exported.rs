//! Labels and annotations that exporters gave a ServiceImport, beside those of others.

use std::collections::BTreeMap;

use api::{label, resource_import::MergedMetadata};
use kube::api::ObjectMeta;
use serde_json::json;

/// What is exported of the metadata of a ServiceImport of ours.
pub fn of(metadata: &ObjectMeta) -> MergedMetadata {
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

/// Adds what is exported, and the note of it. Keys of our own stay ours, whatever is exported under them.
pub fn add(exported: &MergedMetadata, metadata: &mut ObjectMeta) {
    let labels = new(&exported.labels, metadata.labels.as_ref());
    let annotations = new(&exported.annotations, metadata.annotations.as_ref());
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

fn new(
    exported: &BTreeMap<String, String>,
    own: Option<&BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let is_ours = |key: &str| {
        own.is_some_and(|own| own.contains_key(key)) || key == label::HUB || key == label::EXPORTED_METADATA
    };
    exported
        .iter()
        .filter(|(key, _)| !is_ours(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
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
        let found = of(&metadata);
        assert_eq!((found.labels, found.annotations), (text(&[("team", "shop")]), text(&[("note", "a")])));
    }
}
