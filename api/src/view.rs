//! Decoding only what is used. A view type stands for a kind but holds just the fields a controller reads, so that a
//! watched object costs a fraction of the full type in time and memory, and cannot be written back by mistake.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::label;

/// Decodes metadata without managedFields, annotations and owners: `#[serde(deserialize_with = "lean")]`.
pub fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let lean = Lean::deserialize(deserializer)?;
    Ok(lean.into_meta())
}

/// [`lean`] with annotations.
pub fn annotated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let all = Ours::deserialize(deserializer)?.into_meta();
    Ok(ObjectMeta { owner_references: None, managed_fields: None, ..all })
}

/// [`lean`] for kinds of which we make objects: of those that are ours also the owners, and which of our daemons wrote them.
pub fn ours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ours::deserialize(deserializer).map(|ours| ObjectMeta { annotations: None, ..ours.into_meta() })
}

/// [`ours`] with annotations.
pub fn ours_annotated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ours::deserialize(deserializer).map(Ours::into_meta)
}

/// [`annotated`] with the owners, whoever they are.
pub fn owned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let all = Ours::deserialize(deserializer)?;
    let owner_references = all.owner_references.clone();
    Ok(ObjectMeta { owner_references, managed_fields: None, ..all.into_meta() })
}

/// Whether the daemon `manager` wrote the object, whatever has become of its labels since: says metadata that was decoded as
/// [`ours`].
pub fn is_written_by(metadata: &ObjectMeta, manager: &str) -> bool {
    metadata.managed_fields.iter().flatten().any(|entry| entry.manager.as_deref() == Some(manager))
}

/// Not flattened from [`Lean`]: serde would keep what is skipped until all is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ours {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
    managed_fields: Option<Vec<Write>>,
}

/// Somebody's writes of an object.
#[derive(Deserialize)]
struct Write {
    manager: Option<String>,
    /// Not of the object itself, but for example of its status.
    subresource: Option<String>,
}

impl Ours {
    fn into_meta(self) -> ObjectMeta {
        let is_daemon = |write: &Write| {
            let manager = write.manager.as_deref();
            write.subresource.as_deref().unwrap_or_default().is_empty()
                && [label::MEMBER, label::LEADER].into_iter().any(|daemon| manager == Some(daemon))
        };
        let written = self.managed_fields.into_iter().flatten().filter(is_daemon);
        let mut written: Vec<_> = written.filter_map(|write| write.manager).collect();
        written.dedup();
        let labelled = self.labels.as_ref().and_then(|labels| labels.get(label::MANAGED_BY));
        let is_ours = !written.is_empty() || labelled.is_some_and(|by| by == label::FREEPORT);
        let by = |manager| ManagedFieldsEntry { manager: Some(manager), ..ManagedFieldsEntry::default() };
        let managed_fields: Vec<_> = written.into_iter().map(by).collect();
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            deletion_grace_period_seconds: self.deletion_grace_period_seconds,
            labels: self.labels,
            annotations: self.annotations,
            finalizers: self.finalizers,
            owner_references: self.owner_references.filter(|_| is_ours),
            managed_fields: Some(managed_fields).filter(|managed| !managed.is_empty()),
            ..ObjectMeta::default()
        }
    }
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

impl Lean {
    fn into_meta(self) -> ObjectMeta {
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
            ..ObjectMeta::default()
        }
    }
}

/// The metadata of an object of kind `K`; asked for, the API server sends no more. Unlike kube's `PartialObjectMeta` it decodes
/// whatever an API server holds: everyone who may write an object may put times into its managedFields that we cannot hold.
#[derive(Deserialize)]
#[serde(bound = "")]
pub struct Meta<K> {
    /// Without managedFields and owners.
    #[serde(deserialize_with = "annotated")]
    pub metadata: ObjectMeta,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Meta<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Meta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.fmt(f)
    }
}

impl<K: Resource> Resource for Meta<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(dt: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &K::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Decodes a map without the values that do not decode: `#[serde(deserialize_with = "decodable")]`.
pub fn decodable<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let map = Lenient::<BTreeMap<String, Lenient<T>>>::deserialize(deserializer)?.0.unwrap_or_default();
    Ok(map.into_iter().filter_map(|(key, value)| Some((key, value.0.ok()?))).collect())
}

/// A whole object of a kind that others write, too: where it does not decode, its metadata is kept. A status that does not decode
/// counts as missing.
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

impl<K: Resource> Resource for Tolerant<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &K::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Tolerant<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Kept as text first: skipping over it has no limit of depth, which decoding has.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut parts: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let metadata = parts.get("metadata").map(|metadata| metadata_of(metadata)).unwrap_or_default();
        let lean = serde_json::value::to_raw_value(&metadata).map_err(serde::de::Error::custom)?;
        parts.insert("metadata".to_owned(), lean);
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
        Ok(Self(decoded(&text)))
    }
}

/// A [`Lenient`] part of which nobody knows how large it is. It is not decoded where that takes too much memory: a text of a megabyte
/// may become fifty, and a list has many.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured<T> {
    /// Length of its JSON text.
    pub bytes: usize,
    /// What it says, or why it does not decode.
    pub content: Result<T, String>,
}

impl<T: DeserializeOwned> Measured<T> {
    /// What a JSON text says.
    pub fn of(text: &RawValue) -> Self {
        let (bytes, weight) = (text.get().len(), weight(text.get()));
        let content = match weight > DECODED_MAX {
            true => Err(format!("it takes up to {weight} bytes of memory; the limit is {DECODED_MAX}")),
            false => decoded(text),
        };
        Self { bytes, content }
    }
}

/// Most memory that a [`Measured`] part may take, in bytes: an EndpointSlice or Endpoints as Kubernetes makes them take less than one
/// million.
const DECODED_MAX: usize = 4 << 20;

/// How much memory a JSON text takes at the most when it is decoded: for each object as much as the largest of ours, an address of core
/// Endpoints, and a text for each other value.
fn weight(json: &str) -> usize {
    const OBJECT: usize = 240;
    const VALUE: usize = 56;
    let (mut weight, mut in_text, mut escaped) = (json.len(), false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' => weight += OBJECT,
            b'[' | b',' => weight += VALUE,
            _ => {}
        }
    }
    weight
}

impl<T: Default> Default for Measured<T> {
    fn default() -> Self {
        Self { bytes: 0, content: Ok(T::default()) }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Measured<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Box::<RawValue>::deserialize(deserializer)?))
    }
}

/// What a JSON text says, however large it is: for types that keep little of it.
pub fn decoded<T: DeserializeOwned>(text: &RawValue) -> Result<T, String> {
    serde_json::from_str(text.get()).map_err(|error| shortened(error.to_string(), ERROR_MAX))
}

/// Most bytes of an error that are kept: it may quote what it is about, however long that is.
const ERROR_MAX: usize = 300;

/// The beginning of the text, where it has more bytes than `most`.
pub fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str("...");
    }
    text
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

    #[derive(Deserialize)]
    struct Made {
        #[serde(deserialize_with = "ours")]
        metadata: ObjectMeta,
    }

    #[test]
    fn what_we_wrote_is_known_without_labels_and_others_owners_are_skipped() {
        let owners = serde_json::json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
        let made = |managed: serde_json::Value| -> ObjectMeta {
            let metadata =
                serde_json::json!({"name": "a", "ownerReferences": owners, "managedFields": managed});
            serde_json::from_value::<Made>(serde_json::json!({"metadata": metadata})).unwrap().metadata
        };
        let ours = made(serde_json::json!([
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}},
            {"manager": label::MEMBER, "operation": "Update", "fieldsV1": {"f:spec": {}}},
        ]));
        assert!(is_written_by(&ours, label::MEMBER) && !is_written_by(&ours, label::LEADER));
        assert_eq!(ours.owner_references.unwrap().len(), 1);
        let status = made(serde_json::json!([{"manager": label::MEMBER, "subresource": "status"}]));
        assert!(!is_written_by(&status, label::MEMBER), "nothing but its status");
        assert_eq!(status.owner_references, None);
    }

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
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let odd = of(&deep, "{}");
        assert!(odd.object.is_err() && odd.metadata.name.as_deref() == Some("odd"));
    }

    #[test]
    fn a1_a_time_that_we_cannot_hold_hides_no_metadata() {
        let entry =
            serde_json::json!({"manager": "x", "operation": "Update", "time": "9999-12-31T23:59:59Z"});
        let odd = serde_json::json!({"metadata": {"name": "odd", "uid": "u", "managedFields": [entry]}});
        assert!(
            serde_json::from_value::<kube::core::PartialObjectMeta>(odd.clone()).is_err(),
            "what this is for"
        );
        let odd: Meta<k8s_openapi::api::core::v1::Secret> = serde_json::from_value(odd).unwrap();
        assert_eq!(odd.meta().uid.as_deref(), Some("u"));
    }

    #[test]
    fn a4_what_takes_too_much_memory_is_not_decoded() {
        let of = |json: String| Measured::<serde_json::Value>::of(&RawValue::from_string(json).unwrap());
        let text = of(format!(r#"{{"text": "{}"}}"#, r#"{{[,\\\""#.repeat(100_000)));
        assert!(text.content.is_ok() && text.bytes > 500_000, "what is in a text weighs nothing more");
        let many = of(format!("[{}{{}}]", "{},".repeat(20_000)));
        assert!(many.content.unwrap_err().contains("bytes of memory") && many.bytes < 70_000);
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

        let long: Lenient<i32> = serde_json::from_value(serde_json::json!("ä".repeat(1000))).unwrap();
        assert!(long.0.unwrap_err().len() < 310, "however long what it quotes");

        // Whoever may write an object may also say so in its managedFields.
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let event = format!(
            r#"{{"type": "ADDED", "object": {{
                "metadata": {{"name": "deep", "managedFields": [{{"fieldsV1": {deep}}}]}}, "spec": {{"raw": {deep}}}
            }}}}"#
        );
        let event: kube::core::WatchEvent<View> = serde_json::from_str(&event).unwrap();
        let kube::core::WatchEvent::Added(view) = event else { panic!() };
        assert!(view.spec.0.is_err(), "nested deeper than can be decoded, and the watch goes on");
    }
}
