//! How the fields of a value are owned: each on its own, by key, or all together.

use serde_json::Value;

/// How the fields of a map or the items of a list are owned.
pub(super) enum Shape {
    /// All together.
    Atomic,
    /// Each item, which has these keys.
    Keyed(Vec<String>),
    /// Each item, which is its own key.
    Set,
    /// Each field.
    Granular,
}

/// The shape of the value of field `path`. Without a schema, which built-in kinds lack here, names of fields tell it.
pub(super) fn shape(path: &str, value: &Value, schema: Option<&Value>) -> Shape {
    let declared = |key: &str| schema.and_then(|schema| schema.get(key)?.as_str());
    match value {
        Value::Array(items) => match declared("x-kubernetes-list-type") {
            Some("map") => {
                let keys = schema.and_then(|schema| schema["x-kubernetes-list-map-keys"].as_array());
                Shape::Keyed(
                    keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
                )
            }
            Some("set") => Shape::Set,
            Some(_) => Shape::Atomic,
            None => undeclared_shape(path, items, schema.is_some()),
        },
        Value::Object(_) if declared("x-kubernetes-map-type") == Some("atomic") => Shape::Atomic,
        Value::Object(_) => Shape::Granular,
        _ => Shape::Atomic,
    }
}

fn undeclared_shape(path: &str, items: &[Value], has_schema: bool) -> Shape {
    let all_have = |key: &str| items.iter().all(|item| item.get(key).is_some());
    let keyed = |keys: &[&str]| Shape::Keyed(keys.iter().map(|key| (*key).to_owned()).collect());
    match path {
        "conditions" if all_have("type") => keyed(&["type"]),
        "finalizers" => Shape::Set,
        "ownerReferences" => keyed(&["uid"]),
        // Of a Service. Those of an EndpointSlice have no targetPort.
        "ports" if !has_schema && !items.is_empty() && all_have("targetPort") => keyed(&["port", "protocol"]),
        _ => Shape::Atomic,
    }
}

/// Schema of a field of a map.
pub(super) fn inner<'a>(schema: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    let schema = schema?;
    schema
        .get("properties")
        .and_then(|properties| properties.get(key))
        .or_else(|| schema.get("additionalProperties"))
}

/// Schema of the items of a list.
pub(super) fn items(schema: Option<&Value>) -> Option<&Value> {
    schema?.get("items")
}

/// The key of an item as in `fieldsV1`: `k:{"port":80}`. Missing keys have their defaults.
pub(super) fn key_of(item: &Value, keys: &[String], schema: Option<&Value>) -> String {
    let of = |key: &String| {
        let default = || inner(items(schema), key).and_then(|schema| schema.get("default")).cloned();
        (key.clone(), item.get(key).cloned().or_else(default).unwrap_or(Value::Null))
    };
    format!("k:{}", Value::Object(keys.iter().map(of).collect()))
}
