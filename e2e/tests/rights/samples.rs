//! Objects of a member's cluster: as the member writes them, and as others have them.

use api::mcs::{ServiceExport, ServiceImport};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Endpoints, Service},
    discovery::v1::EndpointSlice,
    events::v1::Event,
};
use kube::api::ApiResource;
use serde_json::{Value, json};

pub(crate) fn services() -> ApiResource {
    ApiResource::erase::<Service>(&())
}

pub(crate) fn slices() -> ApiResource {
    ApiResource::erase::<EndpointSlice>(&())
}

pub(crate) fn endpoints() -> ApiResource {
    ApiResource::erase::<Endpoints>(&())
}

pub(crate) fn imports() -> ApiResource {
    ApiResource::erase::<ServiceImport>(&())
}

pub(crate) fn exports() -> ApiResource {
    ApiResource::erase::<ServiceExport>(&())
}

pub(crate) fn events() -> ApiResource {
    ApiResource::erase::<Event>(&())
}

pub(crate) fn config_maps() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

pub(crate) fn leases() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

/// Metadata with the label of what Freeport makes.
pub(crate) fn ours(name: &str) -> Value {
    json!({"name": name, "labels": {
        "app.kubernetes.io/managed-by": "freeport",
        "multicluster.kubernetes.io/service-name": "web",
    }})
}

pub(crate) fn service(metadata: &Value) -> Value {
    json!({"metadata": metadata, "spec": {"type": "ClusterIP", "ports": [{"name": "http", "port": 80}]}})
}

/// A slice of Service `of`.
pub(crate) fn slice(mut metadata: Value, of: &str) -> Value {
    let labels = metadata["labels"].as_object_mut();
    if let Some(labels) = labels {
        labels.insert("endpointslice.kubernetes.io/managed-by".into(), json!("freeport"));
        labels.insert("kubernetes.io/service-name".into(), json!(of));
    }
    json!({
        "metadata": metadata,
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"]}],
        "ports": [{"name": "http", "port": 8080}],
    })
}

pub(crate) fn core_endpoints(metadata: &Value) -> Value {
    json!({"metadata": metadata, "subsets": [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 8080}]}]})
}

pub(crate) fn import(metadata: &Value) -> Value {
    json!({"metadata": metadata, "spec": {"type": "ClusterSetIP", "ports": [{"port": 80, "protocol": "TCP"}]}})
}

/// An Event that `by` reports.
pub(crate) fn event(namespace: &str, name: &str, by: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Import", "reason": "Ready", "type": "Normal", "note": "hello",
        "reportingController": by, "reportingInstance": "1",
        "regarding": {"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": namespace},
    })
}
