//! Whole objects that others write, too.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{decoded, owned, weight};

/// Most memory for a status, in bytes: who may write no more than that of an object must not fill the memory of who reads it. That of a binding
/// with 500 APIs takes less.
const STATUS_MAX: usize = 256 << 10;

/// A whole object of a kind that others write, too: where it does not decode, its metadata is kept. A status that is too large or does not
/// decode counts as missing.
#[derive(Clone)]
pub struct Tolerant<K> {
    /// Without managedFields.
    pub metadata: ObjectMeta,
    /// What it says, or why it does not decode.
    pub object: Result<K, String>,
}

impl<K> fmt::Debug for Tolerant<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.name.fmt(f)
    }
}

crate::view_of!([K: Resource] Tolerant<K>, K, metadata);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Tolerant<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Kept as text first: skipping over it has no limit of depth, which decoding has.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut parts: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let metadata = parts.get("metadata").map(|metadata| metadata_of(metadata)).unwrap_or_default();
        let lean = serde_json::value::to_raw_value(&metadata).map_err(serde::de::Error::custom)?;
        parts.insert("metadata".to_owned(), lean);
        if parts.get("status").is_some_and(|status| weight(status.get()) > STATUS_MAX) {
            parts.remove("status");
        }
        let object = whole(&parts).or_else(|error| {
            parts.remove("status");
            whole(&parts).map_err(|_| error)
        });
        Ok(Self { metadata, object })
    }
}

/// Metadata with annotations and owners; empty where it does not decode, which no API server gives.
fn metadata_of(text: &RawValue) -> ObjectMeta {
    let mut text = serde_json::Deserializer::from_str(text.get());
    owned(&mut text).unwrap_or_default()
}

fn whole<K: DeserializeOwned>(parts: &BTreeMap<String, Box<RawValue>>) -> Result<K, String> {
    let text = serde_json::value::to_raw_value(parts).map_err(|error| error.to_string())?;
    decoded(&text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_object_that_does_not_decode_keeps_its_metadata() {
        type Export = crate::bind::export::APIServiceExport;
        let of = |spec: &str, status: &str| {
            let managed = r#"[{"manager": "x", "operation": "Update", "time": "9999-12-31T23:59:59Z"}]"#;
            let metadata = format!(
                r#"{{"name": "odd", "finalizers": ["f"], "ownerReferences": [{{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u"}}], "managedFields": {managed}}}"#
            );
            let object = format!(r#"{{"metadata": {metadata}, "spec": {spec}, "status": {status}}}"#);
            let event = format!(r#"{{"type": "ADDED", "object": {object}}}"#);
            match serde_json::from_str::<kube::core::WatchEvent<Tolerant<Export>>>(&event).unwrap() {
                kube::core::WatchEvent::Added(export) => export,
                other => panic!("{other:?}"),
            }
        };
        let spec = r#"{"informerScope": "Cluster", "isolation": "None", "resources": []}"#;
        let whole = of(spec, "{}").object.unwrap();
        assert_eq!(whole.metadata.finalizers.unwrap(), ["f"]);
        assert_eq!(whole.metadata.owner_references.unwrap().len(), 1);
        let late = r#"{"conditions": [{"type": "T", "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z"}]}"#;
        assert_eq!(of(spec, late).object.unwrap().status, None);
        let condition = r#"{"type": "T", "status": "True", "lastTransitionTime": null}"#;
        let of_status =
            |count| of(spec, &format!(r#"{{"conditions": [{}]}}"#, vec![condition; count].join(",")));
        assert_eq!(of_status(50).object.unwrap().status.unwrap().conditions.len(), 50);
        assert_eq!(of_status(10_000).object.unwrap().status, None, "too large");
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let odd = of(&deep, "{}");
        assert!(odd.object.is_err() && odd.metadata.name.as_deref() == Some("odd"));
    }

    proptest! {
        #[test]
        fn a1_no_object_stops_a_list(
            odd in odd::anything(&["conditions", "lastTransitionTime", "resources", "group", "isolation"]),
        ) {
            odd::everywhere::<Tolerant<crate::bind::export::APIServiceExport>>(&odd).unwrap();
            odd::everywhere::<Tolerant<crate::bind::bound_schema::BoundSchema>>(&odd).unwrap();
            odd::everywhere::<Tolerant<crate::bind::binding::ClusterBinding>>(&odd).unwrap();
        }
    }
}
