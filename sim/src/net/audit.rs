//! Audit logs: an event for each request that writes.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Caller;
use crate::api;

/// What is asked for, as in the first line of HTTP.
pub(super) fn uri(ask: &api::Request) -> String {
    let query: Vec<_> = ask.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    match query.is_empty() {
        true => ask.path.clone(),
        false => format!("{}?{}", ask.path, query.join("&")),
    }
}

/// The event of a request that was answered with `code`.
pub(super) fn event(caller: &Caller, ask: &api::Request, code: u16) -> Value {
    let steps: Vec<&str> = ask.path.split('/').filter(|step| !step.is_empty()).collect();
    let after_version = if steps.first() == Some(&"api") { 2 } else { 3 };
    let (namespace, rest) = match steps.get(after_version..).unwrap_or_default() {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let part = |at: usize| rest.get(at).copied().unwrap_or_default();
    let name = match part(1) {
        "" => name_in(&ask.body),
        name => name.to_owned(),
    };
    let verb = match ask.method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        _ => "delete",
    };
    let at = Timestamp::now().to_string();
    json!({
        "user": {"username": caller.user}, "userAgent": ask.agent, "verb": verb, "requestURI": uri(ask),
        "objectRef": {"namespace": namespace, "resource": part(0), "name": name, "subresource": part(2)},
        "responseStatus": {"code": code}, "requestReceivedTimestamp": at, "stageTimestamp": at,
    })
}

/// Name of the object that a request creates.
fn name_in(body: &[u8]) -> String {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
