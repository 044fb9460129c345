//! Schemas of CRDs: pruning, fields that are unknown, defaults.

mod validation;

use serde_json::Value;

pub(super) use self::validation::validate;

/// Fields of the top that every schema has.
const EVERYWHERE: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What a schema says of a field of a map.
#[derive(Clone, Copy)]
pub(super) enum Field<'a> {
    Declared(&'a Value),
    /// Kept as it is.
    Any,
    Unknown,
}

impl<'a> Field<'a> {
    pub(super) fn of(schema: &'a Value, key: &str) -> Self {
        if let Some(declared) = schema["properties"].get(key) {
            return Self::Declared(declared);
        }
        let others = &schema["additionalProperties"];
        if others.is_object() {
            return Self::Declared(others);
        }
        let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true || *others == true;
        if keeps { Self::Any } else { Self::Unknown }
    }
}

/// Removes the fields of an object that the schema lacks.
pub(super) fn prune(object: &mut Value, schema: &Value) {
    each_top_field(object, schema, prune_value);
    if let Some(map) = object.as_object_mut() {
        map.retain(|key, _| is_everywhere(key) || !matches!(Field::of(schema, key), Field::Unknown));
    }
}

fn prune_value(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => map.retain(|key, value| match Field::of(schema, key) {
            Field::Declared(schema) => {
                prune_value(value, schema);
                true
            }
            Field::Any => true,
            Field::Unknown => false,
        }),
        Value::Array(list) => list.iter_mut().for_each(|item| prune_value(item, &schema["items"])),
        _ => {}
    }
}

/// Sets the defaults of a schema where fields are missing. A null that may not be is replaced as well.
pub(super) fn set_defaults(object: &mut Value, schema: &Value) {
    if let Some(map) = object.as_object_mut() {
        add_defaults(map, schema, true);
    }
    each_top_field(object, schema, set_defaults_of_value);
}

fn set_defaults_of_value(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            add_defaults(map, schema, false);
            for (key, value) in map {
                if let Field::Declared(schema) = Field::of(schema, key) {
                    set_defaults_of_value(value, schema);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| set_defaults_of_value(item, &schema["items"])),
        _ => {}
    }
}

fn add_defaults(map: &mut serde_json::Map<String, Value>, schema: &Value, is_top: bool) {
    for (key, field) in schema["properties"].as_object().into_iter().flatten() {
        if is_top && is_everywhere(key) {
            continue;
        }
        let is_missing = map.get(key).is_none_or(|value| value.is_null() && field["nullable"] != true);
        if let (true, Some(default)) = (is_missing, field.get("default")) {
            map.insert(key.clone(), default.clone());
        }
    }
}

/// Paths of the fields of an object that the schema lacks, for example `.spec.colour`.
pub(super) fn undeclared(object: &Value, schema: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        if !is_everywhere(key) {
            find_undeclared(&format!(".{key}"), value, Field::of(schema, key), &mut all);
        }
    }
    all
}

fn find_undeclared(path: &str, value: &Value, field: Field<'_>, all: &mut Vec<String>) {
    let schema = match field {
        Field::Declared(schema) => schema,
        Field::Any => return,
        Field::Unknown => return all.push(path.to_owned()),
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                find_undeclared(&format!("{path}.{key}"), value, Field::of(schema, key), all);
            }
        }
        Value::Array(list) => {
            let field = || Field::Declared(&schema["items"]);
            list.iter().for_each(|item| find_undeclared(&format!("{path}[]"), item, field(), all));
        }
        _ => {}
    }
}

pub(super) fn is_everywhere(key: &str) -> bool {
    EVERYWHERE.contains(&key)
}

fn each_top_field(object: &mut Value, schema: &Value, each: impl Fn(&mut Value, &Value)) {
    for (key, value) in object.as_object_mut().into_iter().flatten() {
        if let (false, Field::Declared(schema)) = (is_everywhere(key), Field::of(schema, key)) {
            each(value, schema);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        let port = json!({"type": "object", "properties": {"port": {"type": "integer"}, "protocol": {"default": "TCP"}}});
        json!({"properties": {"spec": {"properties": {
            "ports": {"type": "array", "items": port},
            "labels": {"additionalProperties": {"type": "string"}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
        }}}})
    }

    #[test]
    fn unknown_fields_are_pruned() {
        let spec = json!({"ports": [{"port": 80, "colour": 1}], "labels": {"a": "b"}, "free": {"x": 1}, "colour": 2});
        let mut object = json!({"kind": "Widget", "metadata": {"name": "w"}, "spec": spec, "colour": 3});
        assert_eq!(undeclared(&object, &schema()), [".colour", ".spec.colour", ".spec.ports[].colour"]);
        prune(&mut object, &schema());
        let spec = json!({"ports": [{"port": 80}], "labels": {"a": "b"}, "free": {"x": 1}});
        assert_eq!(object, json!({"kind": "Widget", "metadata": {"name": "w"}, "spec": spec}));
        assert!(undeclared(&object, &schema()).is_empty());
    }

    #[test]
    fn defaults_are_set_in_items_of_lists() {
        let mut object = json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}});
        set_defaults(&mut object, &schema());
        let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]);
        assert_eq!(object["spec"]["ports"], ports);
    }
}
