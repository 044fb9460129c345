//! Objects of kinds that are known only at run time.

use std::collections::BTreeMap;

use api::view::{decoded, owned, sourced, weight};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value, json, value::RawValue};

/// An object whose content is JSON, exactly as it came. `S` is what its watch knows of it, and tells two watches of one kind apart.
#[derive(Clone, PartialEq)]
pub struct Custom<S = ()> {
    /// Without the times of managedFields: everyone who may write an object may put some there that we cannot hold.
    pub metadata: ObjectMeta,
    /// All other fields but `apiVersion` and `kind`; empty where they are not kept.
    pub content: Map<String, Value>,
    /// Why they are not.
    pub error: Option<Unkept>,
    /// What is known of it besides.
    pub side: S,
}

/// Most memory that one object may take, in bytes.
const OBJECT_MAX: usize = 4 << 20;

/// Why what an object says is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unkept {
    /// Whoever may write one object could fill our memory with it: it is there several times.
    #[error(
        "the object is too large, {0} bytes in memory of at most {OBJECT_MAX}: split it into several objects"
    )]
    TooLarge(usize),
    /// It is no JSON that can be read.
    #[error("it cannot be read: {0}")]
    Undecodable(String),
}

impl<S> Custom<S> {
    /// Another side of it.
    pub fn with<T>(self, side: T) -> Custom<T> {
        Custom { metadata: self.metadata, content: self.content, error: self.error, side }
    }
}

/// Says nothing of the content, which may be secret.
impl<S> std::fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Custom").field("name", &self.metadata.name).finish_non_exhaustive()
    }
}

/// Makes a struct with a field `metadata` stand for objects of a kind that is known only at run time.
#[macro_export]
macro_rules! resource_of_any_kind {
    ($object:ty $(, $generics:ident: $bound:lifetime)?) => {
        impl<$($generics: $bound)?> kube::Resource for $object {
            type DynamicType = kube::api::ApiResource;
            type Scope = kube::core::DynamicResourceScope;

            fn kind(of: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                of.kind.as_str().into()
            }

            fn group(of: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                of.group.as_str().into()
            }

            fn version(of: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                of.version.as_str().into()
            }

            fn api_version(of: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                of.api_version.as_str().into()
            }

            fn plural(of: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                of.plural.as_str().into()
            }

            fn meta(&self) -> &kube::core::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource_of_any_kind!(Custom<S>, S: 'static);

impl<'de, S: Default> Deserialize<'de> for Custom<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Kept as text first: skipping over it has no limit of depth, which decoding has.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let parts: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let metadata = parts.get("metadata").map(|metadata| metadata_of(metadata)).unwrap_or_default();
        let (content, error) = match content_of(&parts) {
            Ok(content) => (content, None),
            Err(error) => (Map::new(), Some(error)),
        };
        Ok(Self { metadata, content, error, side: S::default() })
    }
}

fn content_of(parts: &BTreeMap<String, Box<RawValue>>) -> Result<Map<String, Value>, Unkept> {
    let weight: usize = parts.values().map(|text| weight(text.get())).sum();
    if weight > OBJECT_MAX {
        return Err(Unkept::TooLarge(weight));
    }
    let others = parts.iter().filter(|(field, _)| !TYPED.contains(&field.as_str()));
    let read = |text: &RawValue| decoded::<Value>(text).map_err(Unkept::Undecodable);
    others.map(|(field, text)| Ok((field.clone(), read(text)?))).collect()
}

/// Fields that are not content.
const TYPED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Without the times of managedFields; without all of them where they do not decode, and without labels and annotations, too, where these
/// take too much memory.
fn metadata_of(text: &RawValue) -> ObjectMeta {
    if weight(text.get()) > OBJECT_MAX {
        return sourced(&mut serde_json::Deserializer::from_str(text.get())).unwrap_or_default();
    }
    let whole = decoded::<Value>(text).and_then(|mut metadata| {
        let writes = metadata.get_mut("managedFields").and_then(Value::as_array_mut);
        writes.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|write| {
            write.remove("time");
        });
        serde_json::from_value(metadata).map_err(|error| error.to_string())
    });
    whole.unwrap_or_else(|_| {
        let mut text = serde_json::Deserializer::from_str(text.get());
        owned(&mut text).unwrap_or_default()
    })
}

impl<S> Serialize for Custom<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let mut all = self.content.clone();
        all.insert("metadata".into(), json!(self.metadata));
        all.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_too_deep_is_an_error_in_its_place() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"metadata": {{"name": "x", "uid": "u", "managedFields": [{{"fieldsV1": {deep}}}]}}, "spec": {deep}, "data": {{}}}}"#
        );
        let object: Custom = serde_json::from_str(&text).unwrap();
        assert!(object.error.is_some() && object.content.is_empty());
        assert_eq!(object.metadata.uid.as_deref(), Some("u"));
    }

    #[test]
    fn a4_what_takes_too_much_memory_is_not_kept_and_its_finalizers_are() {
        let env = format!("[{}{{}}]", r#"{"name": "A"},"#.repeat(60_000));
        let head = r#""name": "x", "uid": "u", "finalizers": ["f"]"#;
        let object: Custom =
            serde_json::from_str(&format!(r#"{{"metadata": {{{head}}}, "spec": {env}}}"#)).unwrap();
        assert!(matches!(object.error, Some(Unkept::TooLarge(weight)) if weight > OBJECT_MAX));
        assert!(
            object.content.is_empty() && object.metadata.finalizers.as_deref() == Some(&["f".to_owned()])
        );
        let labels: BTreeMap<_, _> = (0..100_000).map(|n| (format!("l{n}"), "")).collect();
        let labelled = format!(r#"{{"metadata": {{{head}, "labels": {}}}}}"#, json!(labels));
        let object: Custom = serde_json::from_str(&labelled).unwrap();
        assert!(object.error.is_some() && object.metadata.labels == Some(BTreeMap::new()));
        assert_eq!(object.metadata.finalizers.as_deref(), Some(&["f".to_owned()][..]));
        let text = format!(r#"{{"metadata": {{{head}}}, "data": "{}"}}"#, "x".repeat(1 << 20));
        let object: Custom = serde_json::from_str(&text).unwrap();
        assert_eq!(object.error, None, "a long text takes no more than it has");
    }

    #[test]
    fn every_value_stays_as_it_is() {
        let text = r#"{"apiVersion":"a/v1","kind":"K","data":{"big":9007199254740993,"float":0.1234567890123456789,"list":[],"map":{},"null":null,
            "tiny":5e-324,"whole":1.0},"metadata":{"name":"x","managedFields":[{"manager":"m","time":"99999-01-01T00:00:00Z"}]},"spec":null}"#;
        let object: Custom = serde_json::from_str(text).unwrap();
        let data = serde_json::to_string(&object.content).unwrap();
        assert_eq!(
            data,
            r#"{"data":{"big":9007199254740993,"float":0.12345678901234568,"list":[],"map":{},"null":null,"tiny":5e-324,"whole":1.0},"spec":null}"#
        );
        assert_eq!(object.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("m"));
        for bits in
            [0x3FB9_9999_9999_999A_u64, 0x3FF0_0000_0000_0001, 0x7FEF_FFFF_FFFF_FFFF, 0x0010_0000_0000_0001]
        {
            let float = f64::from_bits(bits);
            let read: Custom = serde_json::from_str(&format!("{{\"v\":{float:e}}}")).unwrap();
            assert_eq!(read.content["v"].as_f64().map(f64::to_bits), Some(bits), "the last bit of {float}");
        }
    }
}
