//! Creation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{metadata_of, tidy};
use crate::api::{
    State,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    store::{Object, rfc3339},
};

/// Letters of generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of what is appended to `generateName`.
const SUFFIX: u32 = 5;

impl State {
    /// Creates the object in the body.
    pub(super) fn create(&mut self, target: &Target, request: &Request) -> Result<Arc<Object>> {
        let mut new = request.json()?;
        let kind = target.kind.clone();
        let metadata = metadata_of(&mut new)?;
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        if !text("resourceVersion").is_empty() {
            return Err(Refusal::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let namespace = text("namespace");
        if kind.namespaced && !namespace.is_empty() && namespace != target.namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Refusal::bad_request(why));
        }
        let (mut name, prefix) = (text("name"), text("generateName"));
        if name.is_empty() {
            if prefix.is_empty() {
                let why = "Required value: name or generateName is required";
                return Err(Refusal::invalid(
                    &kind,
                    "",
                    &[Cause::new("FieldValueRequired", "metadata.name", why)],
                ));
            }
            name = prefix + &self.next_suffix();
        }
        self.check_namespace(target)?;
        let target = Target { name, ..target.clone() };
        if self.find(&target).is_ok() {
            return Err(Refusal::already_exists(&kind, &target.name));
        }
        self.store_new(&target, request, new, None)
    }

    pub(in crate::api) fn next_suffix(&mut self) -> String {
        let random = self.next_random();
        let letter = |at: u32| char::from(LETTERS[((random >> (8 * at)) % LETTERS.len() as u64) as usize]);
        (0..SUFFIX).map(letter).collect()
    }

    /// Refuses new objects in a Namespace that is missing or terminating.
    pub(super) fn check_namespace(&self, Target { kind, namespace, .. }: &Target) -> Result<()> {
        if !kind.namespaced {
            return Ok(());
        }
        let Some(found) = self.get("", "namespaces", &(String::new(), namespace.clone())) else {
            let mut refusal = Refusal::new(404, "NotFound", format!("namespaces {namespace:?} not found"));
            refusal.details = json!({"name": namespace, "kind": "namespaces"});
            return Err(refusal);
        };
        if found.is_terminating() {
            let plural = &kind.plural;
            let message = format!(
                "{plural} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut refusal = Refusal::new(403, "Forbidden", message);
            let cause = json!({
                "reason": "NamespaceTerminating", "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated"),
            });
            refusal.details = json!({"kind": plural, "group": kind.group, "causes": [cause]});
            return Err(refusal);
        }
        Ok(())
    }

    /// Stores a new object. An apply brings its `managed` fields along.
    pub(super) fn store_new(
        &mut self,
        target: &Target,
        request: &Request,
        mut new: Value,
        managed: Option<Value>,
    ) -> Result<Arc<Object>> {
        let kind = target.kind.clone();
        let now = rfc3339(0);
        new["apiVersion"] = json!(target.api_version());
        new["kind"] = json!(kind.kind);
        // Whoever creates a Namespace or a Node may set its status.
        if kind.status && !kind.is_core("namespaces") && !kind.is_core("nodes") {
            new.as_object_mut().map(|new| new.remove("status"));
        }
        let uid = self.next_uid();
        let metadata = metadata_of(&mut new)?;
        for key in
            ["namespace", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"]
        {
            metadata.remove(key);
        }
        metadata.insert("name".into(), json!(target.name));
        if kind.namespaced {
            metadata.insert("namespace".into(), json!(target.namespace));
        }
        metadata.insert("uid".into(), json!(uid));
        metadata.insert("creationTimestamp".into(), json!(now));
        if kind.generation {
            metadata.insert("generation".into(), json!(1));
        }
        self.admit(target, request, &mut new, None)?;
        match managed {
            Some(managed) => new["metadata"]["managedFields"] = managed,
            None => self.manage(target, request, &now, |write| write.updated(None, &mut new)),
        }
        self.complete(target, &mut new)?;
        tidy(&mut new);
        if request.is_dry_run() {
            return Ok(Object::new(new, kind.revision));
        }
        Ok(self.commit(&kind, target.key(), None, Some(new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{WIDGETS, send, server, widget};

    #[test]
    fn a_new_object_has_what_the_server_sets() {
        let server = server();
        let mut sent = widget("w", 1);
        sent["status"] = json!({"phase": "made up"});
        sent["spec"]["unknown"] = json!(1);
        let (code, new) = send(&server, "POST", WIDGETS, &sent);
        assert_eq!((code, &new["metadata"]["generation"]), (201, &json!(1)));
        assert_eq!((&new["spec"], &new["status"]), (&json!({"size": 1, "colour": "red"}), &Value::Null));
        assert_eq!(new["metadata"]["managedFields"][0]["manager"], "test");
        assert_eq!(send(&server, "POST", WIDGETS, &sent).1["reason"], "AlreadyExists");
    }

    #[test]
    fn invalid_objects_are_refused() {
        let server = server();
        let (code, status) = send(&server, "POST", WIDGETS, &widget("w", 10));
        assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.size")));
        assert_eq!(send(&server, "POST", WIDGETS, &widget("", 1)).0, 422);
        let mut strict = widget("w", 1);
        strict["spec"]["unknown"] = json!(1);
        assert_eq!(send(&server, "POST", &format!("{WIDGETS}?fieldValidation=Strict"), &strict).0, 400);
    }

    #[test]
    fn names_are_generated() {
        let server = server();
        let mut unnamed = widget("", 1);
        unnamed["metadata"]["generateName"] = json!("w-");
        let names = [(); 2].map(|()| send(&server, "POST", WIDGETS, &unnamed).1["metadata"]["name"].clone());
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.as_str().is_some_and(|name| name.len() == 7)), "{names:?}");
    }

    #[test]
    fn the_namespace_has_to_be_there_to_stay() {
        let server = server();
        let elsewhere = WIDGETS.replace("shop", "missing");
        let mut sent = widget("w", 1);
        sent["metadata"]["namespace"] = json!("missing");
        assert_eq!(send(&server, "POST", &elsewhere, &sent).1["details"]["kind"], "namespaces");
        server.remove("", "namespaces", "", "shop");
        let (code, status) = send(&server, "POST", WIDGETS, &widget("w", 1));
        assert_eq!((code, &status["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
    }

    #[test]
    fn a_dry_run_stores_nothing() {
        let server = server();
        assert_eq!(send(&server, "POST", &format!("{WIDGETS}?dryRun=All"), &widget("w", 1)).0, 201);
        assert_eq!(server.names("example.com", "widgets"), Vec::<String>::new());
    }
}
