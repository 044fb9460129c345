//! A server for unit tests, and requests to it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Request, Response, Server, WatchEvent};

/// A server with Namespace `shop`, whose ServiceAccount exists, and the CRD of kind Widget.
pub(crate) fn server() -> Arc<Server> {
    let server = Server::new("east", 1, false, 96, "certificate");
    server.install(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    let account = json!({"name": "default", "namespace": "shop"});
    server.install(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}));
    let size = json!({"type": "integer", "maximum": 9});
    let spec = json!({"type": "object", "properties": {"size": size, "colour": {"type": "string", "default": "red"}}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
    });
    let names = json!({"plural": "widgets", "kind": "Widget"});
    server.install(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }));
    server
}

/// Path of the Widgets in Namespace `shop`.
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/shop/widgets";
/// Path of the ConfigMaps in Namespace `shop`.
pub(crate) const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

/// A Widget.
pub(crate) fn widget(name: &str, size: u64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "shop"}, "spec": {"size": size},
    })
}

/// A ConfigMap with a label.
pub(crate) fn map(name: &str, app: &str) -> Value {
    let metadata = json!({"name": name, "namespace": "shop", "labels": {"app": app}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// The fields of an object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    }
}

fn request(method: &str, path: &str, body: &Value) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    Request {
        method: method.into(),
        path: path.into(),
        query: pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        agent: "test/1".into(),
        user: "system:serviceaccount:shop:web".into(),
        body: if body.is_null() { Bytes::new() } else { body.to_string().into() },
        ..Request::default()
    }
}

fn whole(response: Response) -> (u16, Value) {
    match response {
        Response::Whole { code, body } => (code, serde_json::from_slice(&body).unwrap_or_default()),
        Response::Watch { .. } => panic!("a watch"),
    }
}

/// Sends a request; returns code and body.
pub(crate) fn send(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    whole(server.answer(&request(method, path, body)))
}

/// Sends a patch of type `merge` or `apply`.
pub(crate) fn patch(server: &Server, how: &str, path: &str, body: &Value) -> (u16, Value) {
    let content_type = format!("application/{how}-patch+json");
    whole(server.answer(&Request { content_type, ..request("PATCH", path, body) }))
}

/// Starts a watch.
pub(crate) fn watch(server: &Server, path: &str) -> UnboundedReceiver<WatchEvent> {
    match server.answer(&request("GET", path, &Value::Null)) {
        Response::Watch { events, .. } => events,
        Response::Whole { code, .. } => panic!("no watch: {code}"),
    }
}

/// Reads the events that have arrived: type and object.
pub(crate) fn events(watch: &mut UnboundedReceiver<WatchEvent>) -> Vec<(String, Value)> {
    let lines = std::iter::from_fn(|| watch.try_recv().ok());
    let events = lines.map(|event| serde_json::from_slice::<Value>(&event.line).unwrap());
    events.map(|event| (event["type"].as_str().unwrap().to_owned(), event["object"].clone())).collect()
}
