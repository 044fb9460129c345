//! An object of a consumer, reduced while it is decoded: a page of a list has many, and each may be as large as an API server takes it. Pure.

use std::{collections::BTreeMap, fmt};

use api::view::{Tolerant, decoded, weight};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::quota::Counted;
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{Unread, Written};

type Parts = BTreeMap<String, Box<RawValue>>;

/// An object as it is watched.
#[derive(Clone)]
pub(in crate::bind) struct Lean<K> {
    /// Which object it is, and how far.
    pub(in crate::bind) metadata: ObjectMeta,
    /// What is looked at of it, without labels and annotations.
    pub(in crate::bind) object: Result<K, Unread>,
    /// Memory for that, in bytes.
    pub(in crate::bind) bytes: usize,
}

impl<'de, K: Written + DeserializeOwned> Deserialize<'de> for Lean<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Kept as text first: skipping over it has no limit of depth, which decoding has.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let mut parts: Parts = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let said = parts.get("metadata").and_then(|text| decoded::<Said>(text).ok()).unwrap_or_default();
        let status = parts.get("status").cloned();
        let (object, bytes) = match reduced::<K>(&mut parts, &said) {
            Ok(text) => (read(&text), weight(text.get())),
            Err(why) => (Err(why), 0),
        };
        let rest = |why| K::rest(said.bare(), status.as_deref()).ok_or(Unread::Odd(why));
        Ok(Self { metadata: said.bare(), object: object.or_else(rest), bytes: bytes.min(K::BYTES) })
    }
}

/// The object without what nobody reads.
fn reduced<K: Written>(parts: &mut Parts, said: &Said) -> Result<Box<RawValue>, String> {
    let words = |error: serde_json::Error| error.to_string();
    if let Some(spec) = parts.get_mut("spec").filter(|_| !K::UNREAD.is_empty()) {
        let mut fields: Parts = decoded(spec)?;
        fields.retain(|field, _| !K::UNREAD.contains(&field.as_str()));
        *spec = to_raw_value(&fields).map_err(words)?;
    }
    parts.insert("metadata".to_owned(), to_raw_value(said).map_err(words)?);
    to_raw_value(&parts).map_err(words)
}

fn read<K: Written + DeserializeOwned>(text: &RawValue) -> Result<K, String> {
    let bytes = weight(text.get());
    if bytes > K::BYTES {
        return Err(format!(
            "the object is too large, {bytes} bytes in memory of at most {}: split it into several objects",
            K::BYTES
        ));
    }
    decoded::<Tolerant<K>>(text)?.object
}

/// What is read of its metadata. How much a consumer has put into lists is not known.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Said {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<Box<RawValue>>,
}

impl Said {
    /// Which object it is, and how far. Of its finalizers ours alone.
    fn bare(&self) -> ObjectMeta {
        let all = self.finalizers.as_ref().and_then(|text| decoded(text).ok());
        let held = ObjectMeta { finalizers: all, ..ObjectMeta::default() };
        ObjectMeta {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            creation_timestamp: self.creation_timestamp.clone(),
            deletion_timestamp: self.deletion_timestamp.clone(),
            finalizers: super::is_held(&held).then(|| vec![api::bind::label::BIND_FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        }
    }
}

impl<K: Written> Counted for Lean<K> {
    /// The cluster namespace.
    fn writer(&self) -> Option<String> {
        self.namespace()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn without_content(self) -> Self {
        Self { object: Err(Unread::TooMany(K::QUOTA.records)), bytes: 0, ..self }
    }
}

impl<K> fmt::Debug for Lean<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.metadata.name.fmt(f)
    }
}

api::view_of!([K: Resource] Lean<K>, K, metadata);
