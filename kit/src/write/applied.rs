//! Objects that others write, too: applied, so that what others add stays and what we leave out goes.
//!
//! What has to be sent is found without asking the API server: `managedFields` of the object say which fields are ours.

use std::cmp::Ordering;

use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{Error, Writer};

impl<D: Send + Sync + 'static> Writer<D> {
    /// Applies `want` at the place of `at`, with a uid only to the object that has it: our fields of the object become just these.
    /// Without a uid it is created where there is none. The server's answer.
    pub async fn apply<P>(&self, at: &P, mut want: Value) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        want["apiVersion"] = json!(P::api_version(&self.kind));
        want["kind"] = json!(P::kind(&self.kind));
        want["metadata"]["name"] = json!(at.name_any());
        if let Some(uid) = at.uid() {
            want["metadata"]["uid"] = json!(uid);
        }
        let params = PatchParams::apply(self.manager).force();
        let request = self.request::<P>(at).patch(&at.name_any(), &params, &Patch::Apply(&want));
        self.send::<P, P>(at, "apply", request).await
    }

    /// Becomes an owner of the object's labels, so that its `managedFields` name this writer. A patch that changes nothing does not do that.
    pub async fn own<P>(&self, object: &P) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        self.apply(object, json!({"metadata": {"labels": object.labels()}})).await
    }

    /// Replaces the object, or a subresource of it, if it is still of the version that `object` has. The server's answer. For what a
    /// merge patch cannot say, which takes a null for nothing.
    pub async fn replace<P>(&self, object: &P, subresource: Option<&str>) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + Serialize + DeserializeOwned,
    {
        let mut body = serde_json::to_value(object)?;
        body["apiVersion"] = json!(P::api_version(&self.kind));
        body["kind"] = json!(P::kind(&self.kind));
        // Where they are left out, they stay as they are.
        body["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        let params = PostParams { field_manager: Some(self.manager.into()), dry_run: false };
        let (request, name, body) =
            (self.request::<P>(object), object.name_any(), serde_json::to_vec(&body)?);
        let (verb, request) = match subresource {
            Some(subresource) => {
                (subresource, request.replace_subresource(subresource, &name, &params, body))
            }
            None => ("replace", request.replace(&name, &params, body)),
        };
        self.send::<P, P>(object, verb, request).await
    }
}

/// Whether an apply of `want` by `manager` would change nothing of `have`: all of it is there and ours, and nothing else is ours.
///
/// `want` without name and version. May say no where the API server keeps less than is sent, or where one of its webhooks changes
/// it: then what came of the last apply tells.
pub fn holds<P: Resource>(have: &P, content: &Map<String, Value>, want: &Value, manager: &str) -> bool {
    let entries = have.meta().managed_fields.iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    let Some(fields) = ours.next().and_then(|entry| entry.fields_v1.as_ref()) else { return false };
    let mut all = content.clone();
    all.insert("metadata".into(), json!(have.meta()));
    agrees(&Value::Object(all), &fields.0, want)
}

fn agrees(have: &Value, fields: &Value, want: &Value) -> bool {
    let Some(ours) = fields.as_object().filter(|fields| fields.keys().any(|key| key != ".")) else {
        return have == want || is_filled(have, want);
    };
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            let mut fields = ours.keys().filter_map(|key| key.strip_prefix("f:"));
            fields.all(|field| want.contains_key(field))
                && want.iter().all(|(key, want)| {
                    let ours = ours.get(&format!("f:{key}"));
                    ours.is_some_and(|ours| have.get(key).is_some_and(|have| agrees(have, ours, want)))
                })
        }
        (Value::Array(have), Value::Array(want)) => items_agree(have, ours, want),
        _ => false,
    }
}

/// Whether others put something into an empty map or list of ours. Where that is one value as a whole, it would not be ours any more.
fn is_filled(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Object(_), Value::Object(want)) => want.is_empty(),
        (Value::Array(_), Value::Array(want)) => want.is_empty(),
        _ => false,
    }
}

/// Of a list whose items have names, or that is a set.
fn items_agree(have: &[Value], ours: &Map<String, Value>, want: &[Value]) -> bool {
    let items: Vec<_> = ours.iter().filter_map(|(key, fields)| Some((Item::of(key)?, fields))).collect();
    if items.len().cmp(&want.len()) != Ordering::Equal {
        return false;
    }
    let mut last = None;
    want.iter().all(|want| {
        let Some((item, fields)) = items.iter().find(|(item, _)| item.is(want)) else { return false };
        let Some(at) = have.iter().position(|have| item.is(have)) else { return false };
        // In the same order.
        let follows = last.replace(at).is_none_or(|last| last < at);
        follows && agrees(&have[at], fields, want)
    })
}

/// An item of a list, as `managedFields` names it.
enum Item {
    /// That has these fields.
    Named(Map<String, Value>),
    /// That is this value.
    Value(Value),
}

impl Item {
    fn of(key: &str) -> Option<Self> {
        match key.split_once(':')? {
            ("k", fields) => serde_json::from_str(fields).ok().map(Self::Named),
            ("v", value) => serde_json::from_str(value).ok().map(Self::Value),
            _ => None,
        }
    }

    /// A field that names the item may have been left to its default.
    fn is(&self, item: &Value) -> bool {
        match self {
            Self::Named(fields) => {
                item.is_object()
                    && fields.iter().all(|(field, value)| item.get(field).is_none_or(|has| has == value))
            }
            Self::Value(value) => item == value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(have: &Value, fields: &Value, want: &Value, expected: bool) {
        assert_eq!(agrees(have, fields, want), expected, "{have} {fields} {want}");
    }

    #[test]
    fn what_others_add_is_no_difference_and_what_we_leave_out_is() {
        let fields = json!({"f:spec": {"f:size": {}, "f:opts": {"f:a": {}}}});
        let have = json!({"spec": {"size": "l", "opts": {"a": 1, "theirs": 2}, "more": {}}});
        let want = |spec: Value| json!({ "spec": spec });
        check(&have, &fields, &want(json!({"size": "l", "opts": {"a": 1}})), true);
        check(&have, &fields, &want(json!({"size": "s", "opts": {"a": 1}})), false);
        check(&have, &fields, &want(json!({"opts": {"a": 1}})), false);
        check(&have, &fields, &want(json!({"size": "l", "opts": {"a": 1, "theirs": 2}})), false);
        check(
            &have,
            &json!({"f:spec": {"f:opts": {"f:a": {}}}}),
            &want(json!({"size": "l", "opts": {"a": 1}})),
            false,
        );
    }

    #[test]
    fn lists_are_compared_as_the_schema_has_them() {
        let named =
            json!({"f:l": {"k:{\"name\":\"a\",\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:v": {}}}});
        let have = json!({"l": [{"name": "theirs"}, {"name": "a", "protocol": "TCP", "v": 1}]});
        check(&have, &named, &json!({"l": [{"name": "a", "v": 1}]}), true);
        check(&have, &named, &json!({"l": [{"name": "a", "v": 2}]}), false);
        check(&have, &named, &json!({"l": [{"name": "b", "v": 1}]}), false);
        let set = json!({"f:l": {"v:\"x\"": {}, "v:\"y\"": {}}});
        check(&json!({"l": ["x", "z", "y"]}), &set, &json!({"l": ["x", "y"]}), true);
        check(&json!({"l": ["x", "z", "y"]}), &set, &json!({"l": ["y", "x"]}), false);
        check(&json!({"l": ["x", "z", "y"]}), &set, &json!({"l": ["x"]}), false);
        let whole = json!({"f:l": {}});
        check(&json!({"l": [1, 2]}), &whole, &json!({"l": [1, 2]}), true);
        check(&json!({"l": [1, 2, 3]}), &whole, &json!({"l": [1, 2]}), false);
    }

    #[test]
    fn an_empty_map_or_list_of_ours_holds_whatever_others_put_into_it() {
        let leaf = json!({"f:x": {}});
        check(&json!({"x": {"theirs": 1}}), &leaf, &json!({"x": {}}), true);
        check(&json!({"x": [{"name": "theirs"}]}), &leaf, &json!({"x": []}), true);
        check(&json!({"x": [1]}), &leaf, &json!({"x": {}}), false);
        check(&json!({"x": {"theirs": 1}}), &json!({}), &json!({"x": {}}), false);
        check(&json!({"x": {"theirs": 1}}), &leaf, &json!({"x": {"ours": 1}}), false);
    }

    #[test]
    fn what_is_empty_or_null_is_something() {
        let leaf = json!({"f:x": {}});
        for value in [json!({}), json!([]), json!(null), json!(0), json!("")] {
            check(&json!({"x": value}), &leaf, &json!({"x": value}), true);
            check(&json!({}), &leaf, &json!({"x": value}), false);
        }
    }
}
