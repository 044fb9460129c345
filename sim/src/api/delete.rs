//! Deletion: preconditions, finalizers, the grace of Pods, Namespaces.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Kind, State,
    refusal::{Refusal, Result},
    request::{Request, Target},
    response::{Representation, Response},
    store::{Key, Object, rfc3339},
};

/// What a client asks for beside the deletion.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    /// Seconds that a Pod has to end.
    grace: Option<i64>,
    /// Dependents stay.
    orphans: bool,
    is_dry_run: bool,
}

/// Finalizer of an object whose dependents stay.
pub(crate) const ORPHAN: &str = "orphan";

impl Options {
    fn of(request: &Request, body: &Value) -> Self {
        let grace = body["gracePeriodSeconds"].as_i64();
        Self {
            grace: grace.or_else(|| request.parameter("gracePeriodSeconds").parse().ok()),
            orphans: body["propagationPolicy"] == "Orphan"
                || request.parameter("propagationPolicy") == "Orphan",
            is_dry_run: request.is_dry_run() || body["dryRun"].is_array(),
        }
    }
}

impl State {
    pub(super) fn delete(&mut self, target: &Target, request: &Request) -> Result<Response> {
        let body = if request.body.is_empty() { json!({}) } else { request.json()? };
        let old = self.find(target)?;
        check_preconditions(target, &old, &body["preconditions"])?;
        Ok(self.end(&target.kind, target.key(), &old, Options::of(request, &body)))
    }

    /// Deletes all objects that the request selects; returns them as they were.
    pub(super) fn delete_collection(
        &mut self,
        target: &Target,
        request: &Request,
        representation: &Representation,
    ) -> Result<Response> {
        if target.kind.is_core("namespaces") {
            return Err(Refusal::method_not_allowed());
        }
        let body = if request.body.is_empty() { json!({}) } else { request.json()? };
        let all = self.selected(target, &request.selector()?);
        for object in &all {
            let text = |key: &str| object.value["metadata"][key].as_str().unwrap_or_default().to_owned();
            self.end(&target.kind, (text("namespace"), text("name")), object, Options::of(request, &body));
        }
        let metadata = json!({"resourceVersion": self.version.to_string()});
        let objects = all.iter().map(|object| &**object);
        Ok(Response::Whole { code: 200, body: representation.write_list(objects, &metadata, &target.kind) })
    }

    /// Requests the deletion of an object if it exists, as a controller does; reports whether it is still there.
    pub(crate) fn delete_key(&mut self, kind: &Arc<Kind>, key: &Key) -> bool {
        let Some(object) = self.get(&kind.group, &kind.plural, key).cloned() else { return false };
        self.end(kind, key.clone(), &object, Options::default());
        self.get(&kind.group, &kind.plural, key).is_some()
    }

    /// Requests the deletion of a Pod without grace, as a controller does.
    pub(crate) fn delete_key_at_once(&mut self, kind: &Arc<Kind>, key: &Key) {
        if let Some(object) = self.get(&kind.group, &kind.plural, key).cloned() {
            self.end(kind, key.clone(), &object, Options { grace: Some(0), ..Options::default() });
        }
    }

    /// Deletes an object, which nothing holds.
    pub(crate) fn erase(&mut self, kind: &Arc<Kind>, key: Key, old: Arc<Object>) {
        self.commit(kind, key, Some(old), None);
    }

    /// Deletes an object, or marks it as terminating if something holds it.
    fn end(&mut self, kind: &Arc<Kind>, key: Key, old: &Arc<Object>, options: Options) -> Response {
        let grace = if kind.is_core("pods") { grace_of_pod(&old.value, options.grace) } else { 0 };
        let has_finalizers =
            old.value["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        let is_held = has_finalizers || options.orphans || kind.is_core("namespaces");
        if options.is_dry_run {
            return Response::Whole { code: 200, body: old.text.clone() };
        }
        if grace == 0 && !is_held {
            let last = if kind.is_core("pods") { self.end_pod(kind, &key, old) } else { old.clone() };
            let last = self.commit(kind, key, Some(last), None);
            return Response::json(200, &deleted(kind, &last.value));
        }
        let before = old.value["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let is_sooner = before.is_some_and(|before| grace < before);
        if old.is_terminating() && !is_sooner {
            return Response::Whole { code: 200, body: old.text.clone() };
        }
        let mut new = terminating(kind, &old.value, grace);
        if options.orphans {
            let mut finalizers = new["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
            finalizers.push(json!(ORPHAN));
            new["metadata"]["finalizers"] = Value::Array(finalizers);
        }
        let object = self.commit(kind, key, Some(old.clone()), Some(new));
        Response::Whole { code: 200, body: object.text.clone() }
    }

    /// Marks a Pod that is about to be deleted: watches get to know its last generation.
    fn end_pod(&mut self, kind: &Arc<Kind>, key: &Key, old: &Arc<Object>) -> Arc<Object> {
        let new = terminating(kind, &old.value, 0);
        self.commit(kind, key.clone(), Some(old.clone()), Some(new))
    }
}

fn check_preconditions(target: &Target, old: &Object, preconditions: &Value) -> Result<()> {
    for (key, name) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let found = old.value["metadata"][key].as_str().unwrap_or_default();
        if let Some(expected) = preconditions[key].as_str()
            && expected != found
        {
            let mut refusal = Refusal::precondition(target, name, expected, found);
            if !target.kind.custom {
                refusal.details["kind"] = json!(target.kind.kind);
            }
            return Err(refusal);
        }
    }
    Ok(())
}

/// Seconds until a Pod is deleted. A Pod on a node stays until its kubelet deletes it without grace.
fn grace_of_pod(pod: &Value, asked: Option<i64>) -> i64 {
    let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    if is_over || !has_node {
        return 0;
    }
    asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0)
}

/// An object whose deletion was requested.
fn terminating(kind: &Kind, old: &Value, grace: i64) -> Value {
    let mut new = old.clone();
    let metadata = &mut new["metadata"];
    let is_first = !metadata["deletionTimestamp"].is_string();
    metadata["deletionTimestamp"] = json!(rfc3339(grace));
    if kind.is_core("namespaces") {
        new["status"]["phase"] = json!("Terminating");
        return new;
    }
    metadata["deletionGracePeriodSeconds"] = json!(grace);
    if let (true, Some(generation)) = (is_first, metadata["generation"].as_i64()) {
        metadata["generation"] = json!(generation + 1);
    }
    new
}

/// Kinds of the core group of which the answer to a deletion has the object.
const RETURNED: [&str; 4] = ["pods", "services", "serviceaccounts", "persistentvolumeclaims"];

/// The object that is no more, or the `Status` about it.
fn deleted(kind: &Kind, last: &Value) -> Value {
    if RETURNED.iter().any(|plural| kind.is_core(plural)) {
        return last.clone();
    }
    let mut details =
        json!({"name": last["metadata"]["name"], "kind": kind.plural, "uid": last["metadata"]["uid"]});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::testkit::{WIDGETS, patch, send, server, widget};

    #[test]
    fn preconditions_have_to_hold() {
        let server = server();
        let uid = send(&server, "POST", WIDGETS, &widget("w", 1)).1["metadata"]["uid"].clone();
        let path = format!("{WIDGETS}/w");
        let other = send(&server, "DELETE", &path, &json!({"preconditions": {"uid": "other"}}));
        assert_eq!((other.0, &other.1["reason"]), (409, &json!("Conflict")));
        assert_eq!(
            send(&server, "DELETE", &path, &json!({"preconditions": {"resourceVersion": "1"}})).0,
            409
        );
        assert_eq!(
            send(&server, "DELETE", &path, &json!({"preconditions": {"uid": uid}, "dryRun": ["All"]})).0,
            200
        );
        let (code, status) = send(&server, "DELETE", &path, &json!({"preconditions": {"uid": uid}}));
        assert_eq!((code, &status["status"], &status["details"]["uid"]), (200, &json!("Success"), &uid));
        assert_eq!(send(&server, "DELETE", &path, &Value::Null).0, 404);
    }

    #[test]
    fn an_object_with_finalizers_ends_when_the_last_is_removed() {
        let server = server();
        let mut held = widget("w", 1);
        held["metadata"]["finalizers"] = json!(["example.com/a"]);
        server.install(&held);
        let path = format!("{WIDGETS}/w");
        let metadata = send(&server, "DELETE", &path, &Value::Null).1["metadata"].clone();
        assert!(metadata["deletionTimestamp"].is_string());
        assert_eq!(metadata["generation"], 2);
        let version = server.version();
        assert_eq!(send(&server, "DELETE", &path, &Value::Null).0, 200);
        assert_eq!(server.version(), version, "the second deletion changes nothing");
        let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
        assert_eq!(
            patch(&server, "merge", &path, &finalizers(json!(["example.com/a", "example.com/b"]))).0,
            422
        );
        assert_eq!(patch(&server, "merge", &path, &finalizers(Value::Null)).0, 200);
        assert_eq!(send(&server, "GET", &path, &Value::Null).0, 404);
    }

    #[test]
    fn a_pod_on_a_node_has_its_grace() {
        let server = server();
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        });
        server.install(&pod);
        let path = "/api/v1/namespaces/shop/pods/p";
        assert_eq!(
            send(&server, "DELETE", path, &Value::Null).1["metadata"]["deletionGracePeriodSeconds"],
            30
        );
        let shorter = send(&server, "DELETE", path, &json!({"gracePeriodSeconds": 5})).1;
        assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
        let last = send(&server, "DELETE", path, &json!({"gracePeriodSeconds": 0})).1;
        assert_eq!(
            (&last["kind"], &last["metadata"]["deletionGracePeriodSeconds"]),
            (&json!("Pod"), &json!(0))
        );
        assert_eq!(server.names("", "pods"), Vec::<String>::new());
    }

    #[test]
    fn a_collection_is_deleted_as_selected() {
        let server = server();
        [("a", 1), ("b", 2)].iter().for_each(|(name, size)| server.install(&widget(name, *size)));
        let list =
            send(&server, "DELETE", &format!("{WIDGETS}?fieldSelector=metadata.name==a"), &Value::Null).1;
        assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(server.names("example.com", "widgets"), ["b"]);
    }
}
