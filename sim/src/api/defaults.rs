//! Defaults of built-in kinds, and the status that a server sets.

mod pod;
mod service;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

pub(super) use self::service::Addresses;
use super::{Kind, refusal::Cause};

/// Sets the defaults of an object, which was `old`; or reports what is invalid.
pub(super) fn set(
    kind: &Kind,
    new: &mut Value,
    old: Option<&Value>,
    addresses: &mut Addresses,
    dual: bool,
) -> Result<(), Cause> {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => service::set(new, old, addresses, dual)?,
        ("", "namespaces") => namespace(new),
        ("", "nodes") => node(new),
        ("discovery.k8s.io", "endpointslices") => endpoint_slice(new),
        ("", "pods") => pod::set(new, old)?,
        ("apiextensions.k8s.io", _) => crd(new),
        ("", "secrets") => {
            default(new, "type", json!("Opaque"));
            encode_texts(new);
            empty_is_none(new, "data");
        }
        ("", "configmaps") => empty_is_none(new, "data"),
        _ => {}
    }
    if !kind.custom {
        without_nulls(new);
    }
    Ok(())
}

/// Sets a field that is missing.
fn default(object: &mut Value, key: &str, value: Value) {
    if object[key].is_null() {
        object[key] = value;
    }
}

/// Moves the texts of a Secret to its data.
fn encode_texts(secret: &mut Value) {
    let texts = secret.as_object_mut().and_then(|secret| secret.remove("stringData"));
    for (key, text) in texts.iter().filter_map(Value::as_object).flatten() {
        secret["data"][key] = json!(BASE64_STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

fn namespace(new: &mut Value) {
    let name = new["metadata"]["name"].clone();
    new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    new["spec"] = json!({"finalizers": ["kubernetes"]});
    if !new["status"].is_object() {
        new["status"] = json!({"phase": "Active"});
    }
}

fn node(new: &mut Value) {
    let status = &mut new["status"];
    default(status, "daemonEndpoints", json!({"kubeletEndpoint": {"Port": 0}}));
    let unknown = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    for key in unknown {
        default(&mut status["nodeInfo"], key, json!(""));
    }
    let capacity = status["capacity"].clone();
    if capacity.is_object() {
        default(status, "allocatable", capacity);
    }
}

fn endpoint_slice(new: &mut Value) {
    for port in new["ports"].as_array_mut().into_iter().flatten() {
        default(port, "protocol", json!("TCP"));
        default(port, "name", json!(""));
    }
    for endpoint in new["endpoints"].as_array_mut().into_iter().flatten() {
        default(endpoint, "conditions", json!({}));
    }
    // The field is required: it is null rather than missing.
    if new["endpoints"].as_array().is_none_or(Vec::is_empty) {
        new["endpoints"] = Value::Null;
    }
}

/// A CRD is established at once.
fn crd(new: &mut Value) {
    let names = new["spec"]["names"].clone();
    let stored =
        new["spec"]["versions"].as_array().into_iter().flatten().find(|version| version["storage"] == true);
    let stored = stored.map(|version| version["name"].clone());
    let at = new["metadata"]["creationTimestamp"].clone();
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": at});
    new["status"] = json!({
        "acceptedNames": names,
        "conditions": [condition("NamesAccepted", "NoConflicts"), condition("Established", "InitialNamesAccepted")],
        "storedVersions": [stored],
    });
}

/// Removes a field that is an empty map.
fn empty_is_none(object: &mut Value, key: &str) {
    if object[key].as_object().is_some_and(Map::is_empty) {
        object.as_object_mut().map(|object| object.remove(key));
    }
}

/// Removes nulls, as typed kinds do.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| !value.is_null() || key == "endpoints");
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind::built_in;

    fn with_defaults(plural: &str, mut object: Value) -> Value {
        let kind = built_in().find(|kind| kind.plural == plural).unwrap();
        set(&kind, &mut object, None, &mut Addresses::new(96), false).unwrap();
        object
    }

    #[test]
    fn a_namespace_is_active_and_has_its_name_as_a_label() {
        let namespace = with_defaults("namespaces", json!({"metadata": {"name": "shop"}}));
        assert_eq!(namespace["status"]["phase"], "Active");
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "shop");
    }

    #[test]
    fn a_slice_without_endpoints_has_null() {
        let slice = with_defaults(
            "endpointslices",
            json!({"endpoints": [], "ports": [{"port": 80, "appProtocol": null}]}),
        );
        assert_eq!(slice, json!({"endpoints": null, "ports": [{"port": 80, "name": "", "protocol": "TCP"}]}));
    }
}
