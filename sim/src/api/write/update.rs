//! Updates: what a write may change of an object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{metadata_of, specification};
use crate::api::{
    State,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    response::Response,
    store::{Object, rfc3339},
};

/// Metadata that no client changes.
const FIXED: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "generateName",
];

/// Who records the managed fields of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Managed {
    /// The apply has.
    ByApply,
    /// The update does.
    ByUpdate,
}

impl State {
    /// Puts the object in the body in place of the stored one.
    pub(super) fn replace(&mut self, target: &Target, request: &Request) -> Result<Arc<Object>> {
        let new = request.json()?;
        let old = self.find(target)?;
        let has_version =
            new["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty());
        if target.kind.custom && !has_version {
            let cause =
                Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            let mut refusal = Refusal::invalid(&target.kind, &target.name, &[cause]);
            refusal.details["kind"] = json!(target.kind.plural);
            return Err(refusal);
        }
        let (uid, found) = (&new["metadata"]["uid"], &old.value["metadata"]["uid"]);
        if let (Some(uid), Some(found)) = (uid.as_str(), found.as_str())
            && uid != found
        {
            return Err(Refusal::precondition(target, "UID", uid, found));
        }
        self.change(target, request, &old, new, Managed::ByUpdate)
    }

    /// Stores `new` in place of `old`, as far as the request may change it.
    pub(super) fn change(
        &mut self,
        target: &Target,
        request: &Request,
        old: &Arc<Object>,
        new: Value,
        managed: Managed,
    ) -> Result<Arc<Object>> {
        let (kind, was) = (&target.kind, &old.value);
        let version = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !version.is_empty() && was["metadata"]["resourceVersion"] != version {
            return Err(Refusal::conflict(target));
        }
        let mut new = limited(target, was, new);
        fix_metadata(was, &mut new, managed)?;
        if old.is_terminating()
            && finalizers(&new).iter().any(|finalizer| !finalizers(was).contains(finalizer))
        {
            let why = "Forbidden: no new finalizers can be added if the object is being deleted";
            let cause = Cause::new("FieldValueForbidden", "metadata.finalizers", why);
            return Err(Refusal::invalid(kind, &target.name, &[cause]));
        }
        self.admit(target, request, &mut new, Some(was))?;
        if is_same(&new, was) {
            return Ok(old.clone());
        }
        if kind.generation && specification(kind, &new) != specification(kind, was) {
            new["metadata"]["generation"] = json!(was["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        if managed == Managed::ByUpdate && was["metadata"].get("managedFields").is_some() {
            self.manage(target, request, &rfc3339(0), |write| write.updated(Some(was), &mut new));
        }
        if request.is_dry_run() {
            return Ok(Object::new(new, kind.revision));
        }
        if old.is_terminating() && is_free(target, &new) {
            // The response is the object as it was last.
            let last = Object::new(new, kind.revision);
            self.commit(kind, target.key(), Some(last.clone()), None);
            return Ok(last);
        }
        Ok(self.commit(kind, target.key(), Some(old.clone()), Some(new)))
    }

    /// Assigns a Pod to a node, as a scheduler does.
    pub(super) fn bind(&mut self, target: &Target, request: &Request) -> Result<Response> {
        let binding = request.json()?;
        let old = self.find(target)?;
        let node = &old.value["spec"]["nodeName"];
        if old.is_terminating() || node.is_string() {
            let name = &target.name;
            let why = match node.as_str() {
                Some(node) => format!("pod {name} is already assigned to node {node:?}"),
                None => format!("pod {name} is being deleted, cannot be assigned to a host"),
            };
            let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
            let mut refusal = Refusal::new(409, "Conflict", message).about(&target.kind, name);
            refusal.details["kind"] = json!("pods/binding");
            return Err(refusal);
        }
        let mut new = old.value.clone();
        new["spec"]["nodeName"] = binding["target"]["name"].clone();
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(0)});
        match new["status"]["conditions"].as_array_mut() {
            Some(conditions) => {
                conditions.retain(|condition| condition["type"] != "PodScheduled");
                conditions.push(scheduled);
            }
            None => new["status"]["conditions"] = json!([scheduled]),
        }
        self.commit(&target.kind, target.key(), Some(old), Some(new));
        Ok(done())
    }

    /// Deletes a Pod as its budgets allow; there are none.
    pub(super) fn evict(&mut self, target: &Target, request: &Request) -> Result<Response> {
        let eviction = request.json()?;
        let body = eviction["deleteOptions"].to_string();
        let deletion = Request {
            body: if eviction["deleteOptions"].is_null() { "".into() } else { body.into() },
            ..request.clone()
        };
        self.delete(target, &deletion)?;
        Ok(done())
    }
}

/// The answer to a subresource that does something.
fn done() -> Response {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Response::json(201, &status)
}

fn finalizers(object: &Value) -> Vec<Value> {
    object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
}

/// Reports whether nothing keeps a terminating object.
fn is_free(target: &Target, object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    finalizers(object).is_empty() && grace == 0 && !target.kind.is_core("namespaces")
}

/// `new` with what the subresource does not write as it was.
fn limited(target: &Target, was: &Value, mut new: Value) -> Value {
    let set = |object: &mut Value, key: &str, value: Option<&Value>| match value {
        Some(value) if !value.is_null() => object[key] = value.clone(),
        _ => drop(object.as_object_mut().map(|object| object.remove(key))),
    };
    if target.subresource == "status" {
        let mut only = was.clone();
        set(&mut only, "status", new.get("status"));
        if let Some(managed) = new.pointer("/metadata/managedFields") {
            only["metadata"]["managedFields"] = managed.clone();
        }
        new = only;
    } else if target.kind.status {
        set(&mut new, "status", was.get("status"));
    }
    new["apiVersion"] = json!(target.api_version());
    new["kind"] = json!(target.kind.kind);
    new
}

fn fix_metadata(was: &Value, new: &mut Value, managed: Managed) -> Result<()> {
    let metadata = metadata_of(new)?;
    // Whoever writes entries replaces them.
    let is_managed = metadata
        .get("managedFields")
        .and_then(Value::as_array)
        .is_some_and(|entries| entries.iter().any(|entry| entry["manager"].is_string()));
    let mut keep = |key: &str| match was["metadata"].get(key) {
        Some(value) => drop(metadata.insert(key.into(), value.clone())),
        None => drop(metadata.remove(key)),
    };
    FIXED.iter().for_each(|key| keep(key));
    if managed == Managed::ByUpdate && !is_managed {
        keep("managedFields");
    }
    Ok(())
}

/// Reports whether nothing has changed, apart from times in the managed fields.
fn is_same(new: &Value, old: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = Value::Null;
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        entries.into_iter().flatten().for_each(|entry| entry["time"] = Value::Null);
        object
    };
    without(new) == without(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{WIDGETS, patch, send, server, widget};

    #[test]
    fn the_generation_counts_changes_of_the_specification() {
        let server = server();
        server.install(&widget("w", 1));
        let path = format!("{WIDGETS}/w");
        let after = |path: &str, body: Value| {
            patch(&server, "merge", path, &body).1["metadata"]["generation"].clone()
        };
        assert_eq!(after(&path, json!({"metadata": {"labels": {"a": "b"}}})), 1);
        assert_eq!(
            after(&format!("{path}/status"), json!({"status": {"phase": "Ready"}, "spec": {"size": 5}})),
            1
        );
        assert_eq!(after(&path, json!({"spec": {"size": 2}, "status": null})), 2);
        let (_, now) = send(&server, "GET", &path, &Value::Null);
        assert_eq!((&now["spec"]["size"], &now["status"]["phase"]), (&json!(2), &json!("Ready")));
    }

    #[test]
    fn a_write_without_a_change_has_no_new_version() {
        let server = server();
        server.install(&widget("w", 1));
        let version = server.version();
        assert_eq!(patch(&server, "merge", &format!("{WIDGETS}/w"), &json!({"spec": {"size": 1}})).0, 200);
        assert_eq!(server.version(), version);
    }

    #[test]
    fn an_update_needs_the_version_and_the_object_that_are_stored() {
        let server = server();
        server.install(&widget("w", 1));
        let path = format!("{WIDGETS}/w");
        let (_, old) = send(&server, "GET", &path, &Value::Null);
        assert_eq!(send(&server, "PUT", &path, &widget("w", 2)).0, 422, "without a version");
        let mut other = old.clone();
        other["metadata"]["uid"] = json!("other");
        assert_eq!(send(&server, "PUT", &path, &other).1["reason"], "Conflict");
        let mut new = old.clone();
        new["spec"]["size"] = json!(2);
        assert_eq!(send(&server, "PUT", &path, &new).0, 200);
        assert_eq!(send(&server, "PUT", &path, &old).1["reason"], "Conflict");
    }
}
