//! Patches: merge patches and server-side apply.

use std::sync::Arc;

use serde_json::{Value, json};

use super::update::Managed;
use crate::api::{
    State,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    schema,
    store::{Object, rfc3339},
};

impl State {
    /// Patches an object; reports whether it is new.
    pub(super) fn patch(&mut self, target: &Target, request: &Request) -> Result<(Arc<Object>, bool)> {
        let is_apply = request.content_type.contains("apply-patch");
        if !is_apply && !request.content_type.contains("merge-patch") {
            let why = format!("the simulation has no patches of type {}", request.content_type);
            return Err(Refusal::new(415, "UnsupportedMediaType", why));
        }
        let (patch, found) = (request.json()?, self.find(target));
        if is_apply {
            return self.apply(target, request, found.ok(), &patch);
        }
        let old = found?;
        let mut new = old.value.clone();
        merge(&mut new, &patch);
        check_uid(target, &old.value, &new)?;
        Ok((self.change(target, request, &old, new, Managed::ByUpdate)?, false))
    }

    fn apply(
        &mut self,
        target: &Target,
        request: &Request,
        old: Option<Arc<Object>>,
        patch: &Value,
    ) -> Result<(Arc<Object>, bool)> {
        check_apply(target, old.as_deref(), patch)?;
        let (force, live) = (request.is_set("force"), old.as_ref().map(|old| &old.value));
        let applied = self.manage(target, request, &rfc3339(0), |write| write.applied(live, patch, force));
        let new = applied.map_err(|why| Refusal::new(409, "Conflict", why))?;
        match old {
            Some(old) => Ok((self.change(target, request, &old, new, Managed::ByApply)?, false)),
            None => {
                self.check_namespace(target)?;
                let managed = new["metadata"]["managedFields"].clone();
                Ok((self.store_new(target, request, new, Some(managed))?, true))
            }
        }
    }
}

/// Refuses a merge patch for another object of the same name: as an invalid change of an immutable field, not as a conflict.
fn check_uid(target: &Target, old: &Value, new: &Value) -> Result<()> {
    let (old, new) = (&old["metadata"], &new["metadata"]);
    if new["uid"] == old["uid"] {
        return Ok(());
    }
    let version = new["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && old["resourceVersion"] != version {
        return Err(Refusal::conflict(target));
    }
    let cause = Cause::invalid("metadata.uid", &new["uid"], "field is immutable");
    Err(Refusal::invalid(&target.kind, &target.name, &[cause.clone(), cause]))
}

/// Refuses an apply to another version or to a missing object, and fields that the schema lacks. Another uid is no reason to refuse.
fn check_apply(target: &Target, old: Option<&Object>, patch: &Value) -> Result<()> {
    let text = |key: &str| patch["metadata"][key].as_str().filter(|text| !text.is_empty());
    match old {
        Some(old) => {
            let version = &old.value["metadata"]["resourceVersion"];
            if text("resourceVersion").is_some_and(|expected| version != expected) {
                return Err(Refusal::conflict(target));
            }
        }
        None if text("uid").or(text("resourceVersion")).is_some() => return Err(Refusal::conflict(target)),
        None if !target.subresource.is_empty() => {
            return Err(Refusal::not_found(&target.kind, &target.name));
        }
        None => {}
    }
    let Some(schema) = &target.kind.schema else { return Ok(()) };
    let unknown = schema::undeclared(patch, schema);
    if unknown.is_empty() {
        return Ok(());
    }
    let all: Vec<_> = unknown.iter().map(|path| format!("{path}: field not declared in schema")).collect();
    let Target { kind, namespace, name, .. } = target;
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {}, Kind={}): errors:\n  {}",
        target.api_version(),
        kind.kind,
        all.join("\n  ")
    );
    Err(Refusal::new(500, "", message))
}

/// Merges a patch into `target` (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(target) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{WIDGETS, patch, server, widget};

    fn with(key: &str, value: &str) -> Value {
        let mut widget = widget("w", 2);
        widget["metadata"][key] = json!(value);
        widget
    }

    #[test]
    fn a_merge_patch_with_another_uid_is_invalid() {
        let server = server();
        server.install(&widget("w", 1));
        let path = format!("{WIDGETS}/w");
        assert_eq!(
            patch(&server, "merge", &path, &json!({"metadata": {"uid": "other"}})).1["reason"],
            "Invalid"
        );
        assert_eq!(
            patch(&server, "merge", &path, &json!({"metadata": {"resourceVersion": "1"}})).1["reason"],
            "Conflict"
        );
    }

    #[test]
    fn an_apply_ignores_the_uid_of_an_object_that_exists() {
        let server = server();
        let path = format!("{WIDGETS}/w?fieldManager=a&force=true");
        assert_eq!(patch(&server, "apply", &path, &with("uid", "other")).1["reason"], "Conflict");
        let (code, new) = patch(&server, "apply", &path, &widget("w", 1));
        assert_eq!(code, 201);
        let (code, applied) = patch(&server, "apply", &path, &with("uid", "other"));
        assert_eq!((code, &applied["metadata"]["uid"]), (200, &new["metadata"]["uid"]));
        assert_eq!(patch(&server, "apply", &path, &with("resourceVersion", "1")).1["reason"], "Conflict");
    }

    #[test]
    fn an_apply_with_an_unknown_field_is_refused() {
        let server = server();
        let mut unknown = widget("w", 1);
        unknown["spec"]["unknown"] = json!(1);
        let (code, status) = patch(&server, "apply", &format!("{WIDGETS}/w?fieldManager=a"), &unknown);
        let message = status["message"].as_str().unwrap();
        assert!(code == 500 && message.ends_with(".spec.unknown: field not declared in schema"), "{status}");
    }
}
