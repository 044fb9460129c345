//! What an apply does to the stored object: fields are merged, and removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{Shape, inner, items, key_of, shape};

/// Returns `live` with all fields of `applied`.
pub(super) fn merge(path: &str, live: &Value, applied: &Value, schema: Option<&Value>) -> Value {
    match (live, applied) {
        (Value::Object(live), Value::Object(wanted))
            if !matches!(shape(path, applied, schema), Shape::Atomic) =>
        {
            let mut all = live.clone();
            for (key, value) in wanted {
                let had = live.get(key).unwrap_or(&Value::Null);
                all.insert(key.clone(), merge(key, had, value, inner(schema, key)));
            }
            Value::Object(all)
        }
        (Value::Array(live), Value::Array(wanted)) => match shape(path, applied, schema) {
            Shape::Keyed(keys) => Value::Array(merge_items(live, wanted, &keys, schema)),
            Shape::Set => {
                let new = wanted.iter().filter(|item| !live.contains(item));
                Value::Array(live.iter().chain(new).cloned().collect())
            }
            _ => applied.clone(),
        },
        _ => applied.clone(),
    }
}

/// Merges lists by key: in the order of `wanted`; what only `live` has stays where it was.
fn merge_items(live: &[Value], wanted: &[Value], keys: &[String], schema: Option<&Value>) -> Vec<Value> {
    let key = |item: &Value| key_of(item, keys, schema);
    let by_key: BTreeMap<String, &Value> = live.iter().map(|item| (key(item), item)).collect();
    let places: BTreeMap<String, usize> =
        wanted.iter().enumerate().map(|(at, item)| (key(item), at)).collect();
    let merged = |item: &Value| match by_key.get(&key(item)) {
        Some(had) => merge("", had, item, items(schema)),
        None => item.clone(),
    };
    let (mut all, mut next) = (Vec::new(), 0);
    for item in live {
        match places.get(&key(item)) {
            None => all.push(item.clone()),
            Some(&at) if at >= next => {
                all.extend(wanted[next..=at].iter().map(merged));
                next = at + 1;
            }
            Some(_) => {}
        }
    }
    all.extend(wanted[next..].iter().map(merged));
    all
}

/// Removes fields from a value.
pub(super) fn remove(path: &str, value: &mut Value, fields: &Map<String, Value>, schema: Option<&Value>) {
    let shape = shape(path, value, schema);
    match value {
        Value::Object(map) => {
            for (key, below) in fields {
                let (Some(key), Some(below)) = (key.strip_prefix("f:"), below.as_object()) else { continue };
                if below.is_empty() {
                    map.remove(key);
                } else if let Some(there) = map.get_mut(key) {
                    remove(key, there, below, inner(schema, key));
                    if there.as_object().is_some_and(Map::is_empty)
                        || there.as_array().is_some_and(Vec::is_empty)
                    {
                        map.remove(key);
                    }
                }
            }
        }
        Value::Array(list) => match shape {
            Shape::Keyed(keys) => list.retain_mut(|item| {
                let Some(Value::Object(below)) = fields.get(&key_of(item, &keys, schema)) else {
                    return true;
                };
                if below.is_empty() || below.contains_key(".") {
                    return false;
                }
                remove("", item, below, items(schema));
                true
            }),
            _ => list.retain(|item| !fields.contains_key(&format!("v:{item}"))),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ports(numbers: &[u64]) -> Value {
        let port = |number: &u64| json!({"port": number, "protocol": "TCP", "targetPort": number});
        json!({"ports": numbers.iter().map(port).collect::<Vec<_>>()})
    }

    #[test]
    fn lists_are_merged_in_the_order_of_what_is_applied() {
        assert_eq!(merge("", &ports(&[1, 2, 3]), &ports(&[3, 1]), None), ports(&[3, 1, 2]));
        assert_eq!(merge("", &ports(&[1]), &ports(&[2]), None), ports(&[1, 2]));
    }

    #[test]
    fn maps_without_fields_are_removed() {
        let mut value = json!({"spec": {"a": {"b": 1}}, "status": {}});
        let fields = json!({"f:spec": {"f:a": {"f:b": {}}}});
        remove("", &mut value, fields.as_object().unwrap(), None);
        assert_eq!(value, json!({"status": {}}));
    }
}
