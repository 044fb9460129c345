//! Comparison: which fields a write changed, and which it removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    set::dotted,
    shape::{Shape, inner, items, key_of, shape},
};

/// Fields that differ between two values, as sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Fields that are new or have another value.
    pub(super) changed: Map<String, Value>,
    pub(super) removed: Map<String, Value>,
}

/// A field of a map, or an item of a list.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// Name of the field; empty for an item.
    name: &'a str,
    schema: Option<&'a Value>,
    /// It is an item with keys.
    is_keyed: bool,
}

impl Comparison {
    /// Compares the values of field `path`.
    pub(super) fn of(path: &str, old: &Value, new: &Value, schema: Option<&Value>) -> Self {
        let mut all = Self::default();
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
                    let field = Field { name, schema: inner(schema, name), is_keyed: false };
                    all.add(format!("f:{name}"), old.get(name), new.get(name), field);
                }
            }
            (Value::Array(before), Value::Array(after)) => {
                let shape = shape(path, if after.is_empty() { old } else { new }, schema);
                all.add_items(before, after, &shape, schema);
            }
            _ => {}
        }
        all
    }

    fn add_items(&mut self, old: &[Value], new: &[Value], shape: &Shape, schema: Option<&Value>) {
        let (schema_of_items, is_keyed) = match shape {
            Shape::Keyed(_) => (items(schema), true),
            _ => (None, false),
        };
        let field = Field { name: "", schema: schema_of_items, is_keyed };
        let key = |item: &Value| match shape {
            Shape::Keyed(keys) => key_of(item, keys, schema),
            _ => format!("v:{item}"),
        };
        let by_key = |list: &'_ [Value]| -> BTreeMap<String, Value> {
            list.iter().map(|item| (key(item), item.clone())).collect()
        };
        let (old, mut new) = (by_key(old), by_key(new));
        for (key, item) in old {
            let now = new.remove(&key);
            self.add(key, Some(&item), now.as_ref(), field);
        }
        new.into_iter().for_each(|(key, item)| self.add(key, None, Some(&item), field));
    }

    fn add(&mut self, key: String, old: Option<&Value>, new: Option<&Value>, field: Field<'_>) {
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if field.is_atomic(old) || field.is_atomic(new) => {
                self.changed.insert(key, json!({}));
            }
            (Some(old), Some(new)) => {
                let below = Self::of(field.name, old, new, field.schema);
                if !below.changed.is_empty() {
                    self.changed.insert(key.clone(), Value::Object(below.changed));
                }
                if !below.removed.is_empty() {
                    self.removed.insert(key, Value::Object(below.removed));
                }
            }
            (None, Some(new)) => drop(self.changed.insert(key, field.whole(new))),
            (Some(_), None) => drop(self.removed.insert(key, json!({}))),
            (None, None) => {}
        }
    }
}

impl Field<'_> {
    fn is_atomic(self, value: &Value) -> bool {
        matches!(shape(self.name, value, self.schema), Shape::Atomic)
    }

    /// The set of a new value. Maps that every object has, have no entry for themselves.
    fn whole(self, value: &Value) -> Value {
        let mut fields = dotted(self.name, value, self.schema);
        if self.name == "metadata" || self.schema.is_none() && matches!(self.name, "spec" | "status") {
            fields.remove(".");
        }
        if self.is_keyed {
            fields.insert(".".into(), json!({}));
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::object;

    #[test]
    fn comparison_finds_what_changed_and_what_was_removed() {
        let old = json!({"spec": {"type": "A", "ports": [1, 2], "note": "x"}});
        let new = json!({"spec": {"type": "B", "ports": [1, 3]}});
        let Comparison { changed, removed } = Comparison::of("", &old, &new, None);
        assert_eq!(changed, object(json!({"f:spec": {"f:type": {}, "f:ports": {}}})));
        assert_eq!(removed, object(json!({"f:spec": {"f:note": {}}})));
    }

    #[test]
    fn items_with_keys_are_owned_one_by_one() {
        let ready = |status: &str| json!({"type": "Ready", "status": status});
        let (old, new) = (
            json!({"conditions": [ready("False"), {"type": "Old"}]}),
            json!({"conditions": [ready("True")]}),
        );
        let Comparison { changed, removed } = Comparison::of("", &old, &new, None);
        assert_eq!(changed, object(json!({"f:conditions": {r#"k:{"type":"Ready"}"#: {"f:status": {}}}})));
        assert_eq!(removed, object(json!({"f:conditions": {r#"k:{"type":"Old"}"#: {}}})));
    }

    #[test]
    fn what_is_new_has_its_maps() {
        let Comparison { changed, .. } = Comparison::of("", &json!({}), &json!({"data": {"a": "b"}}), None);
        assert_eq!(changed, object(json!({"f:data": {".": {}, "f:a": {}}})));
    }
}
