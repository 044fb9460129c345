//! What a provider says in a cluster namespace: of each kind no more than there is room for, whoever has its administrator's rights.

use std::{collections::BTreeMap, fmt};

use api::{
    quota::Quota,
    view::{Tolerant, owned, sourced, weight},
};
use kit::quota::Counted;
use kube::{Resource, core::ObjectMeta};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error};
use serde_json::value::RawValue;

/// What is kept of one kind. A large schema takes a few MiB.
pub(super) const QUOTA: Quota = Quota { records: 5000, bytes: 32 << 20 };
/// Most memory that one object may take, in bytes.
const OBJECT_MAX: usize = 16 << 20;

/// An object in a cluster namespace.
#[derive(Clone)]
pub(crate) struct Told<K> {
    pub(super) object: Tolerant<K>,
    /// How much memory it takes at the most; 0 without content.
    bytes: usize,
}

impl<K> fmt::Debug for Told<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.object, f)
    }
}

api::view_of!([K: Resource] Told<K>, K, object.metadata);

impl<'de, K: DeserializeOwned> Deserialize<'de> for Told<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let parts: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        let metadata = parts.get("metadata").map_or("{}", |metadata| metadata.get());
        // What managedFields say of it is not kept.
        let lean = owned(&mut serde_json::Deserializer::from_str(metadata)).unwrap_or_default();
        let of_metadata = serde_json::to_string(&lean).map_or(0, |text| weight(&text));
        let others = parts.iter().filter(|(field, _)| *field != "metadata");
        let bytes = of_metadata + others.map(|(_, text)| weight(text.get())).sum::<usize>();
        if bytes > OBJECT_MAX {
            let metadata = sourced(&mut serde_json::Deserializer::from_str(metadata)).unwrap_or_default();
            let object = Err(format!(
                "the object is too large, {bytes} bytes in memory of at most {OBJECT_MAX}: the provider has to split it"
            ));
            return Ok(Self { object: Tolerant { metadata, object }, bytes: 0 });
        }
        let object = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { object, bytes })
    }
}

/// All of a cluster namespace are the provider's, whoever wrote them.
impl<K: Resource> Counted for Told<K> {
    fn writer(&self) -> Option<String> {
        Some(String::new())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn without_content(self) -> Self {
        let ObjectMeta { name, namespace, uid, resource_version, creation_timestamp, .. } =
            self.object.metadata;
        let metadata = ObjectMeta {
            name,
            namespace,
            uid,
            resource_version,
            creation_timestamp,
            ..ObjectMeta::default()
        };
        let object = Err("there are too many of its kind".to_owned());
        Self { object: Tolerant { metadata, object }, bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use api::bind::export::{APIServiceExportRequest, APIServiceNamespace};
    use kit::{objects::Change, quota::Shares};
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_takes_too_much_memory_is_not_decoded() {
        let dense = format!("[{}{{}}]", r#"{"a":0},"#.repeat(150_000));
        let text = format!(
            r#"{{"metadata": {{"name": "r", "uid": "u"}}, "spec": {{"parameters": {dense}, "resources": []}}}}"#
        );
        let told: Told<APIServiceExportRequest> = serde_json::from_str(&text).unwrap();
        assert!(told.object.object.unwrap_err().ends_with("the provider has to split it"));
        assert_eq!(told.object.metadata.uid.as_deref(), Some("u"));
    }

    #[test]
    fn of_a_kind_the_oldest_are_kept() {
        let namespace = |number: i64, annotation: usize| -> Told<APIServiceNamespace> {
            let created = jiff::Timestamp::from_second(number).unwrap();
            let metadata = json!({"name": format!("n{number}"), "namespace": "cns", "creationTimestamp": created,
                "annotations": {"a": "x".repeat(annotation)},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:x".repeat(1000): {}}}}]});
            serde_json::from_str(&json!({"metadata": metadata, "spec": {}}).to_string()).unwrap()
        };
        assert!(namespace(1, 0).bytes() < 2000, "managedFields are let go: {}", namespace(1, 0).bytes());
        let mut shares = Shares::new(Quota { records: 2, bytes: 100_000 });
        let mut kept = |told: Told<APIServiceNamespace>| match shares.change(Change::Apply(told)) {
            Some(Change::Apply(told)) => told.object.object.is_ok(),
            _ => false,
        };
        assert!(kept(namespace(1, 10)) && !kept(namespace(2, 100_000)) && kept(namespace(3, 10)));
        assert!(!kept(namespace(4, 10)), "there are two");
        assert_eq!(shares.left_out(), 2);
    }
}
