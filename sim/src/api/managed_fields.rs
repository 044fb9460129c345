//! Ownership of fields (`managedFields`), and server-side apply.
//!
//! | module | holds |
//! |---|---|
//! | [`shape`] | how the fields of a value are owned |
//! | [`set`] | sets of fields: union, difference |
//! | [`compare`] | which fields a write changed |
//! | [`merge`] | what an apply does to the stored object |

mod compare;
mod merge;
mod set;
mod shape;

use serde_json::{Map, Value, json};

use self::{
    compare::Comparison,
    merge::{merge, remove},
    set::{add, set_of, subtract, subtract_exact},
};

/// Metadata that has owners.
const OWNED_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// A write to an object.
pub(super) struct Write<'a> {
    /// Field manager.
    pub(super) manager: &'a str,
    pub(super) subresource: &'a str,
    /// The status is a subresource.
    pub(super) has_status: bool,
    pub(super) api_version: &'a str,
    /// Time, RFC 3339.
    pub(super) now: &'a str,
    /// OpenAPI schema of the kind.
    pub(super) schema: Option<&'a Value>,
}

impl Write<'_> {
    /// Reports whether an entry is of this manager, operation and subresource.
    fn is(&self, entry: &Value, operation: &str) -> bool {
        entry["manager"] == self.manager
            && entry["operation"] == operation
            && entry.get("subresource").and_then(Value::as_str).unwrap_or_default() == self.subresource
    }

    fn entry(&self, operation: &str, fields: &Map<String, Value>) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": operation, "apiVersion": self.api_version, "time": self.now,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    /// Records in `new`, which was `old`, which fields this manager wrote.
    pub(super) fn updated(&self, old: Option<&Value>, new: &mut Value) {
        let before = old.map_or_else(|| json!({}), |old| self.owned(old));
        let Comparison { changed, removed } = Comparison::of("", &before, &self.owned(new), self.schema);
        let replaces = new.pointer("/metadata/managedFields").is_some();
        let mut entries = entries(if replaces { &*new } else { old.unwrap_or(&Value::Null) });
        let mut own = Map::new();
        for entry in &mut entries {
            let is_own = self.is(entry, "Update");
            let Some(fields) = entry["fieldsV1"].as_object_mut() else { continue };
            subtract(fields, &removed);
            subtract(fields, &changed);
            if is_own {
                own = fields.clone();
            }
        }
        if !changed.is_empty() {
            add(&mut own, &changed);
            entries.retain(|entry| !self.is(entry, "Update"));
            entries.push(self.entry("Update", &own));
        }
        record(new, entries);
    }

    /// Returns the object after an apply, or with whom that conflicts.
    pub(super) fn applied(
        &self,
        live: Option<&Value>,
        applied: &Value,
        force: bool,
    ) -> Result<Value, String> {
        let wanted = self.owned(applied);
        let set = set_of("", &wanted, self.schema);
        let missing = json!({});
        let live = live.unwrap_or(&missing);
        let mut merged = merge("", live, &wanted, self.schema);
        let changed = Comparison::of("", &self.owned(live), &self.owned(&merged), self.schema).changed;
        let (mut released, mut others) = (Map::new(), Map::new());
        let mut entries = entries(live);
        for entry in &mut entries {
            let is_own = self.is(entry, "Apply");
            let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
            let Some(fields) = entry["fieldsV1"].as_object_mut() else { continue };
            if is_own {
                released = fields.clone();
                continue;
            }
            let before = fields.clone();
            // Fields that change are no longer owned by others.
            subtract(fields, &changed);
            if *fields != before && !force {
                return Err(format!("Apply failed with 1 conflict: conflict with {manager:?}"));
            }
            add(&mut others, fields);
        }
        subtract_exact(&mut released, &set);
        subtract_exact(&mut released, &others);
        remove("", &mut merged, &released, self.schema);
        entries.retain(|entry| !self.is(entry, "Apply"));
        entries.push(self.entry("Apply", &set));
        for key in ["apiVersion", "kind"] {
            merged[key] = applied[key].clone();
        }
        record(&mut merged, entries);
        Ok(merged)
    }

    /// The fields of an object that a write to the subresource can own.
    fn owned(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let Some(map) = object.as_object_mut() else { return object };
        map.retain(|key, _| match key.as_str() {
            "apiVersion" | "kind" => false,
            "status" => self.subresource == "status" || !self.has_status,
            _ => self.subresource != "status",
        });
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.retain(|key, _| OWNED_METADATA.contains(&key.as_str()));
            if metadata.is_empty() {
                map.remove("metadata");
            }
        }
        object
    }
}

fn entries(object: &Value) -> Vec<Value> {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn record(object: &mut Value, mut entries: Vec<Value>) {
    entries.retain(|entry| entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty()));
    // As API servers sort them.
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    entries.sort_by_key(|entry| {
        ["operation", "time", "manager", "apiVersion", "subresource"].map(|key| text(entry, key))
    });
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if entries.is_empty() {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
        return;
    }
    object["metadata"]["managedFields"] = Value::Array(entries);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(manager: &str) -> Write<'_> {
        let (subresource, api_version, now) = ("", "v1", "2026-06-01T00:00:00Z");
        Write { manager, subresource, has_status: true, api_version, now, schema: None }
    }

    fn map(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
    }

    fn managers(object: &Value) -> Vec<&str> {
        entries_of(object).iter().filter_map(|entry| entry["manager"].as_str()).collect()
    }

    fn entries_of(object: &Value) -> &[Value] {
        object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    #[test]
    fn an_apply_removes_what_its_manager_no_longer_applies() {
        let first = by("a").applied(None, &map(&json!({"x": "1", "y": "1"})), false).unwrap();
        let both = by("b").applied(Some(&first), &map(&json!({"y": "1", "z": "1"})), false).unwrap();
        assert_eq!(managers(&both), ["a", "b"]);
        let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let less = by("a").applied(Some(&both), &nothing, false).unwrap();
        assert_eq!(less["data"], json!({"y": "1", "z": "1"}), "`y` is owned by b as well");
        assert_eq!(managers(&less), ["b"]);
    }

    #[test]
    fn an_apply_over_the_value_of_another_manager_conflicts_unless_forced() {
        let first = by("a").applied(None, &map(&json!({"x": "1"})), false).unwrap();
        let other = map(&json!({"x": "2"}));
        assert!(by("b").applied(Some(&first), &other, false).unwrap_err().contains("\"a\""));
        let forced = by("b").applied(Some(&first), &other, true).unwrap();
        assert_eq!((&forced["data"], managers(&forced)), (&json!({"x": "2"}), vec!["b"]));
    }

    #[test]
    fn an_update_takes_the_fields_that_it_changes() {
        let old = by("a").applied(None, &map(&json!({"x": "1", "y": "1"})), false).unwrap();
        let mut new = old.clone();
        new["data"]["x"] = json!("2");
        by("b").updated(Some(&old), &mut new);
        assert_eq!(managers(&new), ["a", "b"]);
        assert_eq!(entries_of(&new)[0]["fieldsV1"], json!({"f:data": {"f:y": {}}}));
        assert_eq!(entries_of(&new)[1]["fieldsV1"], json!({"f:data": {"f:x": {}}}));
    }
}
