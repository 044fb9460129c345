//! Objects of which nothing but the metadata is asked for.

use std::{fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

use super::metadata::{annotated, identity, ours_annotated};

/// The metadata of an object of kind `K`, as far as `P` keeps it; asked for, the API server sends no more. Unlike kube's
/// `PartialObjectMeta` it decodes whatever an API server holds: everyone who may write an object may put times into its managedFields
/// that we cannot hold.
#[derive(Deserialize)]
#[serde(bound = "P: Part")]
pub struct Meta<K, P = Annotated> {
    /// Without owners, and without managedFields unless `P` keeps them.
    #[serde(deserialize_with = "P::decode")]
    pub metadata: ObjectMeta,
    #[serde(skip)]
    kind: PhantomData<fn() -> (K, P)>,
}

/// Name, uid, version, whether it is being deleted, and of the labels those that say whose a record is: whoever wrote it, it takes no
/// more memory than these.
pub type Named<K> = Meta<K, Identity>;

/// What is kept of metadata.
pub trait Part {
    /// Decodes what is kept.
    ///
    /// # Errors
    /// Where it is no metadata.
    fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error>;
}

/// Labels, annotations and finalizers, too.
pub enum Annotated {}

impl Part for Annotated {
    fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
        annotated(deserializer)
    }
}

/// What [`Annotated`] keeps, and which of our daemons wrote the object ([`is_written_by`](super::is_written_by)).
pub enum Written {}

impl Part for Written {
    fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
        ours_annotated(deserializer)
    }
}

/// What [`Named`] keeps.
pub enum Identity {}

impl Part for Identity {
    fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
        identity(deserializer)
    }
}

impl<K> Meta<K> {
    /// What has this name, to be read.
    pub fn named(name: &str) -> Self {
        Self {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            kind: PhantomData,
        }
    }
}

impl<K, P> Clone for Meta<K, P> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), kind: PhantomData }
    }
}

impl<K, P> fmt::Debug for Meta<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.fmt(f)
    }
}

crate::view_of!([K: Resource, P] Meta<K, P>, K, metadata, metadata_api = true);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    #[test]
    fn a1_a_time_that_we_cannot_hold_hides_no_metadata() {
        let entry =
            serde_json::json!({"manager": "x", "operation": "Update", "time": "9999-12-31T23:59:59Z"});
        let odd = serde_json::json!({"metadata": {"name": "odd", "uid": "u", "managedFields": [entry]}});
        assert!(
            serde_json::from_value::<kube::core::PartialObjectMeta>(odd.clone()).is_err(),
            "what this is for"
        );
        let odd: Meta<Secret> = serde_json::from_value(odd).unwrap();
        assert_eq!(odd.meta().uid.as_deref(), Some("u"));
    }

    #[test]
    fn a4_of_what_is_only_named_nothing_is_kept_that_grows() {
        let many: BTreeMap<_, _> = (0..1000).map(|n| (format!("l{n}"), "sourceKind")).collect();
        let mut labels = many.clone();
        labels.insert("sourceKind".into(), "EndpointSlice");
        let finalizers: Vec<_> = many.keys().collect();
        let metadata = serde_json::json!({
            "name": "r", "uid": "u", "resourceVersion": "7", "labels": labels, "annotations": many, "finalizers": finalizers,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        });
        let text = serde_json::json!({"metadata": metadata}).to_string();
        let record: Named<Secret> = serde_json::from_str(&text).unwrap();
        let kept = ObjectMeta {
            name: Some("r".into()),
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            labels: Some([("sourceKind".to_owned(), "EndpointSlice".to_owned())].into()),
            ..ObjectMeta::default()
        };
        assert_eq!(record.metadata, kept);
    }
}
