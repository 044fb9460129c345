//! Objects of a member's cluster: as the member writes them, and as others have them.

use api::{
    about::ClusterProperty,
    mcs::{ServiceExport, ServiceImport},
    offload::{namespace::NamespaceOffloading, peer::OffloadPeer},
};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Endpoints, Namespace, Node, Pod, Secret, Service, ServiceAccount},
    discovery::v1::EndpointSlice,
    events::v1::Event,
    rbac::v1::RoleBinding,
};
use kube::api::ApiResource;
use serde_json::{Value, json};

pub(crate) fn namespaces() -> ApiResource {
    ApiResource::erase::<Namespace>(&())
}

pub(crate) fn nodes() -> ApiResource {
    ApiResource::erase::<Node>(&())
}

pub(crate) fn pods() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

pub(crate) fn accounts() -> ApiResource {
    ApiResource::erase::<ServiceAccount>(&())
}

pub(crate) fn bindings() -> ApiResource {
    ApiResource::erase::<RoleBinding>(&())
}

pub(crate) fn secrets() -> ApiResource {
    ApiResource::erase::<Secret>(&())
}

pub(crate) fn offloadings() -> ApiResource {
    ApiResource::erase::<NamespaceOffloading>(&())
}

pub(crate) fn peers() -> ApiResource {
    ApiResource::erase::<OffloadPeer>(&())
}

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

pub(crate) fn properties() -> ApiResource {
    ApiResource::erase::<ClusterProperty>(&())
}

/// A ClusterProperty.
pub(crate) fn property(metadata: &Value) -> Value {
    json!({"metadata": metadata, "spec": {"value": "east"}})
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

/// Namespace `shop` of cluster `west`, as the member makes its twin.
pub(crate) fn twin(name: &str) -> Value {
    json!({"metadata": {
        "name": name,
        "labels": {
            "app.kubernetes.io/managed-by": "freeport",
            "liqo.io/remote-cluster-id": "west",
            "pod-security.kubernetes.io/enforce": "baseline",
        },
        "annotations": {
            "liqo.io/managed-by-namespace-map": "clusterset-demo/1.west.leader",
            "liqo.io/original-name": "shop",
        },
    }})
}

/// A virtual node as the member makes it.
pub(crate) fn virtual_node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {
            "app.kubernetes.io/managed-by": "freeport",
            "liqo.io/type": "virtual-node",
            "liqo.io/remote-cluster-id": "east",
        }},
        "spec": {"taints": [
            {"key": "virtual-node.liqo.io/not-allowed", "value": "true", "effect": "NoExecute"},
        ]},
    })
}

/// A NamespaceOffloading with this spec.
pub(crate) fn offloading(spec: &Value) -> Value {
    json!({"metadata": {"name": "offloading"}, "spec": spec})
}

/// A Pod that asks for nothing.
pub(crate) fn pod(name: &str) -> Value {
    let spec = json!({"containers": [{"name": "web", "image": "example.com/web:1"}], "automountServiceAccountToken": false});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A Pod of another cluster, as the member makes it in a twin.
pub(crate) fn hosted(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] =
        json!({"liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": "west"});
    pod
}

/// A Pod that is bound to a Node.
pub(crate) fn bound(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = json!(node);
    // No taint of a Node takes it away.
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    // No kubelet ends it.
    pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
    pod
}

/// What lets the member make Pods in a twin, as the member makes it.
pub(crate) fn binding() -> Value {
    json!({
        "metadata": ours("freeport-offload"),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "freeport-offload-pods"},
        "subjects": [{"kind": "ServiceAccount", "name": "freeport-member", "namespace": "freeport-system"}],
    })
}
