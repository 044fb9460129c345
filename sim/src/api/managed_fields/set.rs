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
fn dotted(path: &str, value: &Value, schema: Option<&Value>) -> Map<String, Value> {
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

/// Returns the fields that are new or have another value, and those that were removed.
pub(super) fn compare(
    path: &str,
    old: &Value,
    new: &Value,
    schema: Option<&Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let (mut changed, mut removed) = (Map::new(), Map::new());
    let mut one = |key: String,
                   path: &str,
                   old: Option<&Value>,
                   new: Option<&Value>,
                   schema: Option<&Value>,
                   item: bool| {
        let whole = |value: &Value| {
            let mut fields = dotted(path, value, schema);
            if path == "metadata" || schema.is_none() && matches!(path, "spec" | "status") {
                fields.remove(".");
            }
            if item {
                fields.insert(".".into(), json!({}));
            }
            Value::Object(fields)
        };
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                let leaf = |value: &Value| matches!(shape(path, value, schema), Shape::Atomic);
                if leaf(old) || leaf(new) {
                    changed.insert(key, json!({}));
                    return;
                }
                let (c, g) = compare(path, old, new, schema);
                if !c.is_empty() {
                    changed.insert(key.clone(), Value::Object(c));
                }
                if !g.is_empty() {
                    removed.insert(key, Value::Object(g));
                }
            }
            (None, Some(new)) => drop(changed.insert(key, whole(new))),
            (Some(_), None) => drop(removed.insert(key, json!({}))),
            (None, None) => {}
        }
    };
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                one(format!("f:{key}"), key, a.get(key), b.get(key), inner(schema, key), false);
            }
        }
        (Value::Array(a), Value::Array(b)) => match shape(path, if b.is_empty() { old } else { new }, schema)
        {
            Shape::Keyed(keys) => {
                let find = |list: &'_ [Value], key: &str| {
                    list.iter().find(|item| key_of(item, &keys, schema) == key).cloned()
                };
                for item in a.iter().chain(b) {
                    let key = key_of(item, &keys, schema);
                    one(key.clone(), "", find(a, &key).as_ref(), find(b, &key).as_ref(), items(schema), true);
                }
            }
            _ => {
                for item in a.iter().chain(b) {
                    let within = |list: &[Value]| list.contains(item).then_some(item.clone());
                    one(format!("v:{item}"), "", within(a).as_ref(), within(b).as_ref(), None, false);
                }
            }
        },
        _ => {}
    }
    (changed, removed)
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

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn comparison_finds_what_changed_and_what_was_removed() {
        let old = json!({"spec": {"type": "A", "ports": [1, 2], "note": "x"}});
        let new = json!({"spec": {"type": "B", "ports": [1, 3]}});
        let (changed, removed) = compare("", &old, &new, None);
        assert_eq!(changed, object(json!({"f:spec": {"f:type": {}, "f:ports": {}}})));
        assert_eq!(removed, object(json!({"f:spec": {"f:note": {}}})));
    }

    #[test]
    fn items_with_keys_are_owned_one_by_one() {
        let conditions = |status: &str| json!({"conditions": [{"type": "Ready", "status": status}, {"type": "Valid", "status": "True"}]});
        let (changed, _) = compare("", &conditions("False"), &conditions("True"), None);
        assert_eq!(changed, object(json!({"f:conditions": {r#"k:{"type":"Ready"}"#: {"f:status": {}}}})));
    }

    #[test]
    fn a_leaf_removes_all_below_it() {
        let mut fields = object(json!({"f:spec": {"f:a": {"f:b": {}}, "f:c": {}}}));
        subtract(&mut fields, &object(json!({"f:spec": {"f:a": {}}})));
        assert_eq!(fields, object(json!({"f:spec": {"f:c": {}}})));
    }
}
