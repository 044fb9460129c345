//! Responses, and the representation of objects in them.

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    Kind,
    request::{Request, Target},
    schema,
    store::Object,
    watch::WatchEvent,
};

/// What a client gets.
pub enum Response {
    Whole { code: u16, body: Bytes },
    Watch { events: UnboundedReceiver<WatchEvent>, seconds: u64 },
}

impl Response {
    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self::Whole { code, body: Bytes::from(body.to_string()) }
    }
}

/// How a client wants objects.
#[derive(Clone, Debug)]
pub(super) struct Representation {
    pub(super) api_version: String,
    /// Metadata only: as `PartialObjectMetadata`.
    pub(super) is_partial: bool,
}

impl Representation {
    pub(super) fn new(target: &Target, request: &Request) -> Self {
        let is_partial = request.accept.contains("as=PartialObjectMetadata");
        Self { api_version: target.api_version(), is_partial }
    }

    /// `apiVersion` and `kind` of an object.
    pub(super) fn type_of(&self, kind: &Kind) -> (String, String) {
        match self.is_partial {
            true => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
            false => (self.api_version.clone(), kind.kind.clone()),
        }
    }

    /// JSON of an object.
    pub(super) fn write(&self, object: &Object, kind: &Kind) -> Bytes {
        if self.is_partial {
            let (api_version, kind) = self.type_of(kind);
            let only = json!({"kind": kind, "apiVersion": api_version, "metadata": object.value["metadata"]});
            return Bytes::from(only.to_string());
        }
        let is_current = object.revision == kind.revision || !kind.custom;
        if is_current && object.value["apiVersion"] == self.api_version.as_str() {
            return object.text.clone();
        }
        // As API servers read what was stored in another version, or before the CRD changed.
        let mut other = object.value.clone();
        if let Some(schema) = &kind.schema {
            schema::prune(&mut other, schema);
            schema::set_defaults(&mut other, schema);
        }
        other["apiVersion"] = json!(self.api_version);
        Bytes::from(other.to_string())
    }

    /// JSON of a list.
    pub(super) fn write_list<'a>(
        &self,
        objects: impl Iterator<Item = &'a Object>,
        metadata: &Value,
        kind: &Kind,
    ) -> Bytes {
        let (api_version, kind_name) = self.type_of(kind);
        let head = format!(
            r#"{{"kind":"{kind_name}List","apiVersion":"{api_version}","metadata":{metadata},"items":["#
        );
        let mut text = head.into_bytes();
        for (at, object) in objects.enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.write(object, kind));
        }
        text.extend_from_slice(b"]}");
        Bytes::from(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind::built_in;

    #[test]
    fn an_object_has_the_version_that_is_asked_for() {
        let kind = built_in().find(|kind| kind.plural == "leases").unwrap();
        let value = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}});
        let object = Object::new(value, 0);
        let write = |api_version: &str, is_partial| {
            let representation = Representation { api_version: api_version.into(), is_partial };
            serde_json::from_slice::<Value>(&representation.write(&object, &kind)).unwrap()
        };
        assert_eq!(write("coordination.k8s.io/v1", false), object.value);
        assert_eq!(write("coordination.k8s.io/v1beta1", false)["apiVersion"], "coordination.k8s.io/v1beta1");
        let partial = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "l"}});
        assert_eq!(write("coordination.k8s.io/v1", true), partial);
    }
}
