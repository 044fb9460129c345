//! Decoding only what is used. A view type stands for a kind but holds just the fields a controller reads, so that a
//! watched object costs a fraction of the full type in time and memory, and cannot be written back by mistake.

mod meta;
mod metadata;
mod resource;
mod tolerant;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

pub use self::{
    meta::{Annotated, Identity, Meta, Named, Part, Written},
    metadata::{annotated, is_written_by, lean, ours, ours_annotated, owned, sourced, unlabelled},
    tolerant::Tolerant,
};

/// Decodes a map without the values that do not decode: `#[serde(deserialize_with = "decodable")]`.
pub fn decodable<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let map = Lenient::<BTreeMap<String, Lenient<T>>>::deserialize(deserializer)?.0.unwrap_or_default();
    Ok(map.into_iter().filter_map(|(key, value)| Some((key, value.0.ok()?))).collect())
}

/// Decodes what Go may write as `null`, as it does with an empty list: `#[serde(default, deserialize_with = "or_default")]`.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
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
    /// What it says, or why it is not read.
    pub content: Result<T, Unread>,
}

/// Why a [`Measured`] part is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It takes up to so many bytes of memory.
    #[error(
        "{0} bytes in memory, of at most {DECODED_MAX}: split the EndpointSlice, or shorten the Service and its exported labels and annotations"
    )]
    TooLarge(usize),
    /// It does not decode; a sentence that says why.
    #[error("{0}")]
    Undecodable(String),
}

impl<T: DeserializeOwned> Measured<T> {
    /// What a JSON text says.
    pub fn of(text: &RawValue) -> Self {
        let (bytes, weight) = (text.get().len(), weight(text.get()));
        let content = match weight > DECODED_MAX {
            true => Err(Unread::TooLarge(weight)),
            false => decoded(text).map_err(Unread::Undecodable),
        };
        Self { bytes, content }
    }
}

/// Most memory that a [`Measured`] part may take, in bytes: an EndpointSlice or Endpoints as Kubernetes makes them take less than one
/// million.
const DECODED_MAX: usize = 4 << 20;

/// How much memory a JSON text takes at the most when it is decoded, in bytes: for each object as much as the largest of ours, an address
/// of core Endpoints, and a text for each other value.
pub fn weight(json: &str) -> usize {
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

/// Most bytes of a sentence that travels to another cluster, or is quoted from one.
pub const QUOTE_MAX: usize = 1024;

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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    #[derive(Clone, Deserialize)]
    struct View {
        #[serde(deserialize_with = "annotated")]
        metadata: ObjectMeta,
        spec: Lenient<BTreeMap<String, i32>>,
    }

    #[test]
    fn a4_what_takes_too_much_memory_is_not_decoded() {
        let of = |json: String| Measured::<serde_json::Value>::of(&RawValue::from_string(json).unwrap());
        let text = of(format!(r#"{{"text": "{}"}}"#, r#"{{[,\\\""#.repeat(100_000)));
        assert!(text.content.is_ok() && text.bytes > 500_000, "what is in a text weighs nothing more");
        let many = of(format!("[{}{{}}]", "{},".repeat(20_000)));
        assert!(
            matches!(many.content, Err(Unread::TooLarge(bytes)) if bytes > DECODED_MAX)
                && many.bytes < 70_000
        );
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
