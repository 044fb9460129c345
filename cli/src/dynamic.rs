//! An object of any kind. Its managedFields are left out: everyone who may write an object may put times there that do not decode,
//! and one such object would hide all others of its list.

use std::borrow::Cow;

use kube::{
    Resource,
    api::{ApiResource, DynamicObject, ObjectMeta},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::Value;

/// An object of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Dynamic(pub(crate) DynamicObject);

impl<'de> Deserialize<'de> for Dynamic {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        serde_json::from_value(object).map(Self).map_err(D::Error::custom)
    }
}

impl Resource for Dynamic {
    type DynamicType = ApiResource;
    type Scope = <DynamicObject as Resource>::Scope;

    fn kind(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(dt)
    }

    fn group(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(dt)
    }

    fn version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(dt)
    }

    fn api_version(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(dt)
    }

    fn plural(dt: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn a1_a_time_that_does_not_decode_hides_no_object() {
        let entry = json!({"manager": "x", "operation": "Update", "time": "9999-12-31T23:59:59Z"});
        let odd = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "odd", "uid": "u", "managedFields": [entry]},
        });
        assert!(serde_json::from_value::<DynamicObject>(odd.clone()).is_err(), "what this is for");
        let odd: Dynamic = serde_json::from_value(odd).unwrap();
        assert_eq!((odd.name_any(), odd.uid().as_deref()), ("odd".into(), Some("u")));
        let sent = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": "odd", "uid": "u"},
        });
        assert_eq!(json!(odd), sent);
    }
}
