//! Sets of fields, as in `fieldsV1`: `{"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}}}`.

use serde_json::{Map, Value, json};

use super::shape::{Shape, inner, items, key_of, shape};

/// All fields of a value.
pub(super) fn set_of(path: &str, value: &Value, schema: Option<&Value>) -> Map<String, Value> {
    match (value, shape(path, value, schema)) {
        (Value::Object(map), Shape::Granular) => map
            .iter()
            .map(|(key, value)| (format!("f:{key}"), Value::Object(set_of(key, value, inner(schema, key)))))
            .collect(),
        (Value::Array(list), Shape::Keyed(keys)) => list
            .iter()
            .map(|item| {
                let mut fields = set_of("", item, items(schema));
                fields.insert(".".into(), json!({}));
                (key_of(item, &keys, schema), Value::Object(fields))
            })
            .collect(),
        (Value::Array(list), Shape::Set) => {
            list.iter().map(|item| (format!("v:{item}"), json!({}))).collect()
        }
        _ => Map::new(),
    }
}

/// [`set_of`], with an entry `.` for every map and list itself: who creates them owns them.
pub(super) fn dotted(path: &str, value: &Value, schema: Option<&Value>) -> Map<String, Value> {
    let mut all = match (value, shape(path, value, schema)) {
        (Value::Object(map), Shape::Granular) => map
            .iter()
            .map(|(key, value)| (format!("f:{key}"), Value::Object(dotted(key, value, inner(schema, key)))))
            .collect(),
        (Value::Array(list), Shape::Keyed(keys)) => list
            .iter()
            .map(|item| (key_of(item, &keys, schema), Value::Object(dotted("", item, items(schema)))))
            .collect(),
        _ => set_of(path, value, schema),
    };
    if !all.is_empty() {
        all.insert(".".into(), json!({}));
    }
    all
}

/// Adds the fields of `other`.
pub(super) fn add(to: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, fields) in other {
        let there = to.entry(key.clone()).or_insert_with(|| json!({}));
        if let (Value::Object(there), Value::Object(fields)) = (there, fields) {
            add(there, fields);
        }
    }
}

/// Removes the fields of `other`; a leaf of `other` removes all below it.
pub(super) fn subtract(from: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, fields) in other {
        let Some(Value::Object(there)) = from.get_mut(key) else { continue };
        let Some(fields) = fields.as_object() else { continue };
        if fields.is_empty() {
            from.remove(key);
            continue;
        }
        let had = !there.is_empty();
        subtract(there, fields);
        if had && there.is_empty() {
            from.remove(key);
        }
    }
}

/// Removes the leaves of `other`, and what is empty without them.
pub(super) fn subtract_exact(from: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (key, fields) in other {
        let Some(Value::Object(there)) = from.get_mut(key) else { continue };
        let Some(fields) = fields.as_object() else { continue };
        if there.is_empty() {
            from.remove(key);
            continue;
        }
        subtract_exact(there, fields);
        if there.is_empty() {
            from.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::object;

    #[test]
    fn a_new_map_is_owned_with_its_fields() {
        let value = json!({"data": {"a": "b"}, "finalizers": ["x"]});
        assert_eq!(
            set_of("", &value, None),
            object(json!({"f:data": {"f:a": {}}, "f:finalizers": {"v:\"x\"": {}}}))
        );
        let fields =
            json!({".": {}, "f:data": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"x\"": {}}});
        assert_eq!(dotted("", &value, None), object(fields));
    }

    #[test]
    fn a_leaf_removes_all_below_it() {
        let mut fields = object(json!({"f:spec": {"f:a": {"f:b": {}}, "f:c": {}}}));
        subtract(&mut fields, &object(json!({"f:spec": {"f:a": {}}})));
        assert_eq!(fields, object(json!({"f:spec": {"f:c": {}}})));
    }
}
