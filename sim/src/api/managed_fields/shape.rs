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
        "containers" | "initContainers" | "env" | "volumes" | "schedulingGates" if !has_schema => {
            keyed(&["name"])
        }
        "volumeMounts" if !has_schema => keyed(&["mountPath"]),
        "podIPs" if !has_schema => keyed(&["ip"]),
        "ports" if !has_schema && are_ports_of_service(items) => keyed(&["port", "protocol"]),
        _ => Shape::Atomic,
    }
}

/// Reports whether ports are those of a Service. Those of an EndpointSlice have no targetPort.
fn are_ports_of_service(ports: &[Value]) -> bool {
    let has = |port: &Value, key: &str| port.get(key).is_some();
    let is_complete = |port: &Value| has(port, "targetPort") || has(port, "port") && has(port, "protocol");
    ports.iter().all(is_complete) && ports.iter().any(|port| has(port, "targetPort"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_items_have_defaults() {
        let schema = json!({"items": {"properties": {"protocol": {"default": "TCP"}}}});
        let keys = ["port".to_owned(), "protocol".to_owned()];
        let key = |item: Value| key_of(&item, &keys, Some(&schema));
        assert_eq!(key(json!({"port": 80})), key(json!({"port": 80, "protocol": "TCP", "name": "a"})));
        assert_ne!(key(json!({"port": 80})), key(json!({"port": 80, "protocol": "UDP"})));
    }

    #[test]
    fn a_list_has_the_type_that_its_schema_declares() {
        let list = json!([{"type": "Ready"}]);
        assert!(matches!(shape("conditions", &list, None), Shape::Keyed(_)));
        let atomic = json!({"x-kubernetes-list-type": "atomic"});
        assert!(matches!(shape("conditions", &list, Some(&atomic)), Shape::Atomic));
        assert!(matches!(shape("items", &list, None), Shape::Atomic));
    }
}
