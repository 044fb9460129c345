//! Writes: which request does what, and what create, update, patch and apply have in common.

mod create;
mod patch;
mod update;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Kind, State, defaults,
    managed_fields::Write,
    refusal::{Cause, Refusal, Result},
    request::{Request, Target},
    response::{Representation, Response},
    schema,
    store::{Key, Object},
};

/// Field manager of the controllers of Kubernetes.
const CONTROLLERS: &str = "kube-controller-manager";

impl State {
    /// Answers a request.
    pub(super) fn answer(&mut self, request: &Request) -> Result<Response> {
        if let Some(response) = self.review(request)? {
            return Ok(response);
        }
        if let Some(response) = self.discover(request) {
            return Ok(response);
        }
        let target = self.target(&request.path)?;
        let representation = Representation::new(&target, request);
        let written = |code, object: Arc<Object>| {
            Ok(Response::Whole { code, body: representation.write(&object, &target.kind) })
        };
        let (is_collection, subresource) = (target.name.is_empty(), target.subresource.as_str());
        match (request.method.as_str(), subresource) {
            ("GET", "") if is_collection && request.is_set("watch") => {
                self.watch(&target, request, representation)
            }
            ("GET", "") if is_collection => self.list(&target, request, &representation),
            ("GET", "" | "status") => self.read(&target, &representation),
            ("POST", "") if is_collection => written(201, self.create(&target, request)?),
            ("POST", "binding") => self.bind(&target, request),
            ("POST", "eviction") => self.evict(&target, request),
            ("POST", "token") => self.create_token(&target, request),
            ("PUT", "" | "status") if !is_collection => written(200, self.replace(&target, request)?),
            ("PATCH", "" | "status") if !is_collection => {
                let (object, is_new) = self.patch(&target, request)?;
                written(if is_new { 201 } else { 200 }, object)
            }
            ("DELETE", "") if is_collection => self.delete_collection(&target, request, &representation),
            ("DELETE", "") => self.delete(&target, request),
            _ => Err(Refusal::method_not_allowed()),
        }
    }

    /// Creates or, if `replaces`, replaces an object, as an administrator does. Panics if that is refused.
    pub(crate) fn install(&mut self, body: &Value, replaces: bool) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&body["apiVersion"]);
        let Some(kind) = self.kind_of(&api_version, &text(&body["kind"])) else {
            panic!("no kind {api_version} {}", body["kind"])
        };
        let target = Target {
            kind,
            version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
            namespace: text(&body["metadata"]["namespace"]),
            name: text(&body["metadata"]["name"]),
            subresource: String::new(),
        };
        let request = |body: &Value| Request {
            body: body.to_string().into(),
            agent: "admin".into(),
            ..Request::default()
        };
        let written = match self.find(&target) {
            Ok(_) if !replaces => return,
            Ok(old) => {
                let mut body = body.clone();
                body["metadata"]["resourceVersion"] = old.value["metadata"]["resourceVersion"].clone();
                self.replace(&target, &request(&body))
            }
            Err(_) => self.create(&target, &request(body)),
        };
        if let Err(refusal) = written {
            panic!("cannot install {} {}: {refusal:?}", body["kind"], target.name);
        }
    }

    /// Merges a patch into an object, or into its `subresource`, as a controller of Kubernetes does. Panics if that is refused.
    pub(crate) fn merge(&mut self, kind: &Arc<Kind>, key: &Key, subresource: &str, patch: &Value) {
        let target = Target {
            kind: kind.clone(),
            version: kind.versions.first().cloned().unwrap_or_default(),
            namespace: key.0.clone(),
            name: key.1.clone(),
            subresource: subresource.to_owned(),
        };
        let request = Request {
            content_type: "application/merge-patch+json".into(),
            body: patch.to_string().into(),
            agent: CONTROLLERS.into(),
            ..Request::default()
        };
        if let Err(refusal) = self.patch(&target, &request) {
            panic!("cannot change {} {}: {refusal:?}", kind.kind, target.name);
        }
    }

    /// Prunes, defaults and validates.
    fn admit(
        &mut self,
        target: &Target,
        request: &Request,
        new: &mut Value,
        old: Option<&Value>,
    ) -> Result<()> {
        let Target { kind, name, .. } = target;
        if let Some(schema) = &kind.schema {
            if request.parameter("fieldValidation") == "Strict" {
                refuse_unknown(new, schema)?;
            }
            schema::prune(new, schema);
            schema::set_defaults(new, schema);
        }
        defaults::set(kind, new, old, &mut self.addresses, self.dual)
            .and_then(|()| {
                if old.is_none() && kind.is_core("services") { self.check_address(new) } else { Ok(()) }
            })
            .map_err(|cause| Refusal::invalid(kind, name, &[cause]))?;
        tidy(new);
        let Some(schema) = &kind.schema else { return Ok(()) };
        // What was invalid before may stay.
        let before: Vec<Cause> = old.map(|old| schema::validate(old, schema)).unwrap_or_default();
        let mut causes = schema::validate(new, schema);
        causes.retain(|cause| !before.contains(cause));
        if causes.is_empty() { Ok(()) } else { Err(Refusal::invalid(kind, name, &causes)) }
    }

    /// Refuses a new Service with the cluster IP of another one.
    fn check_address(&self, new: &Value) -> Result<(), Cause> {
        let address = new["spec"]["clusterIP"].as_str().unwrap_or_default();
        if address == "None" || !self.cluster_ips.contains(address) {
            return Ok(());
        }
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        Err(Cause::invalid("spec.clusterIPs", &json!([address]), &why))
    }

    /// Records in `managedFields` who wrote what.
    fn manage<T>(
        &self,
        target: &Target,
        request: &Request,
        now: &str,
        record: impl FnOnce(&Write<'_>) -> T,
    ) -> T {
        record(&Write {
            manager: request.manager(),
            subresource: &target.subresource,
            has_status: target.kind.status,
            api_version: &target.api_version(),
            now,
            schema: target.kind.schema.as_ref(),
        })
    }
}

fn refuse_unknown(object: &Value, schema: &Value) -> Result<()> {
    let fields = schema::undeclared(object, schema);
    if fields.is_empty() {
        return Ok(());
    }
    let all: Vec<_> =
        fields.iter().map(|field| format!("unknown field {:?}", field.trim_start_matches('.'))).collect();
    Err(Refusal::bad_request(format!("strict decoding error: {}", all.join(", "))))
}

/// The metadata of an object that a client sent.
fn metadata_of(object: &mut Value) -> Result<&mut Map<String, Value>> {
    object
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
        .ok_or_else(|| Refusal::bad_request("no metadata"))
}

/// Removes what is empty in metadata, as an API server does.
fn tidy(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
}

/// The part of an object whose changes its generation counts.
fn specification(kind: &Kind, object: &Value) -> Map<String, Value> {
    let mut content = object.as_object().cloned().unwrap_or_default();
    for key in ["metadata", "apiVersion"] {
        content.remove(key);
    }
    if kind.status || !kind.custom {
        content.remove("status");
    }
    // Labels of EndpointSlices tell what their endpoints are.
    if kind.plural == "endpointslices" {
        content.insert("labels".into(), json!(object["metadata"]["labels"]));
    }
    content
}
