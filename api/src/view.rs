//! Decoding only what is used. A view type stands for a kind but holds just the fields a controller reads, so that a
//! watched object costs a fraction of the full type in time and memory, and cannot be written back by mistake.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// Decodes metadata without managedFields, annotations and owners: `#[serde(deserialize_with = "lean")]`.
pub fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let lean = Lean::deserialize(deserializer)?;
    Ok(lean.into_meta(None))
}

/// [`lean`] with annotations.
pub fn annotated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let Annotated { lean, annotations } = Annotated::deserialize(deserializer)?;
    Ok(lean.into_meta(annotations))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lean {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Annotated {
    #[serde(flatten)]
    lean: Lean,
    annotations: Option<BTreeMap<String, String>>,
}

impl Lean {
    fn into_meta(self, annotations: Option<BTreeMap<String, String>>) -> ObjectMeta {
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            labels: self.labels,
            finalizers: self.finalizers,
            annotations,
            ..ObjectMeta::default()
        }
    }
}

/// A part of an object that may not decode: the error is kept in its place, so one bad object cannot stop a list or watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Lenient<T>(pub Result<T, String>);

impl<T: Default> Default for Lenient<T> {
    fn default() -> Self {
        Self(Ok(T::default()))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Kept as text first: skipping over it has no limit of depth, which decoding has.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(text.get()).map_err(|error| error.to_string())))
    }
}

impl<T: Serialize> Serialize for Lenient<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(content) => content.serialize(serializer),
            Err(error) => Err(serde::ser::Error::custom(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Deserialize)]
    struct View {
        #[serde(deserialize_with = "annotated")]
        metadata: ObjectMeta,
        spec: Lenient<BTreeMap<String, i32>>,
    }

    #[test]
    fn what_is_not_used_is_skipped_and_what_is_wrong_is_kept() {
        let view: View = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "a", "annotations": {"k": "v"}, "managedFields": [{"manager": "x"}], "labels": {"l": "m"}},
            "spec": {"port": "not a number"},
        }))
        .unwrap();
        assert_eq!(view.metadata.name.as_deref(), Some("a"));
        assert_eq!(view.metadata.annotations.unwrap()["k"], "v");
        assert_eq!(view.metadata.managed_fields, None);
        assert!(view.spec.0.unwrap_err().contains("not a number"));

        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let event = format!(
            r#"{{"type": "ADDED", "object": {{"metadata": {{"name": "deep"}}, "spec": {{"raw": {deep}}}}}}}"#
        );
        let event: kube::core::WatchEvent<View> = serde_json::from_str(&event).unwrap();
        let kube::core::WatchEvent::Added(view) = event else { panic!() };
        assert!(view.spec.0.is_err(), "nested deeper than can be decoded, and the watch goes on");
    }
}
