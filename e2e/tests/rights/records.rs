//! Kinds of the Common Area, and records as members write them.

use api::{
    ServiceName,
    announce::MemberClusterAnnounce,
    label, name,
    offload::{map::NamespaceMap, names, offer::OffloadOffer, shadow_pod::ShadowPod},
    report::ClusterReport,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ApiResource;
use serde_json::{Value, json};

pub(crate) fn exports() -> ApiResource {
    ApiResource::erase::<ResourceExport>(&())
}

pub(crate) fn imports() -> ApiResource {
    ApiResource::erase::<ResourceImport>(&())
}

pub(crate) fn announces() -> ApiResource {
    ApiResource::erase::<MemberClusterAnnounce>(&())
}

pub(crate) fn leases() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

pub(crate) fn reports() -> ApiResource {
    ApiResource::erase::<ClusterReport>(&())
}

pub(crate) fn maps() -> ApiResource {
    ApiResource::erase::<NamespaceMap>(&())
}

pub(crate) fn offers() -> ApiResource {
    ApiResource::erase::<OffloadOffer>(&())
}

pub(crate) fn shadows() -> ApiResource {
    ApiResource::erase::<ShadowPod>(&())
}

/// A Pod of one cluster that another is to run.
pub(crate) fn shadow(origin: &str, destination: &str) -> Value {
    let uid = "5e6cf7a9-0d3c-4b0e-9d3e-0c1f0a2b3c4d";
    json!({
        "metadata": {"name": names::shadow_pod(origin, destination, uid)},
        "spec": {
            "origin": origin, "destination": destination, "namespace": format!("shop-{origin}"), "pod": "web", "uid": uid,
            "sealed": "eA==",
        },
    })
}

/// What one cluster wants of another.
pub(crate) fn map(origin: &str, destination: &str) -> Value {
    json!({
        "metadata": {"name": names::namespace_map(origin, destination)},
        "spec": {"origin": origin, "destination": destination, "desiredMapping": {"shop": format!("shop-{origin}")}},
    })
}

/// What one cluster lets another use.
pub(crate) fn offer(host: &str, home: &str) -> Value {
    json!({
        "metadata": {"name": names::offer(host, home)},
        "spec": {"host": host, "home": home, "resources": {"cpu": "4"}, "publicKey": "eA=="},
    })
}

/// A record of kind Service as a member writes it.
pub(crate) fn service(cluster: &str, namespace: &str, name: &str) -> Value {
    let service = ServiceName::new(namespace, name);
    record(
        &name::service_export(cluster, &service),
        cluster,
        &service,
        "Service",
        &json!({"service": {"serviceSpec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}}}),
    )
}

pub(crate) fn slice(cluster: &str, namespace: &str, name: &str) -> Value {
    let service = ServiceName::new(namespace, name);
    record(
        &name::slice_export(cluster, &service, "web-1"),
        cluster,
        &service,
        "EndpointSlice",
        &json!({"endpointSlice": {"addressType": "IPv4", "ports": [], "endpoints": []}}),
    )
}

pub(crate) fn record(record: &str, cluster: &str, of: &ServiceName, kind: &str, payload: &Value) -> Value {
    let mut spec = json!({"clusterID": cluster, "namespace": of.namespace, "name": of.name, "kind": kind});
    spec.as_object_mut().unwrap().extend(payload.as_object().unwrap().clone());
    let labels = json!({
        label::SOURCE_CLUSTER_ID: cluster,
        label::SOURCE_NAMESPACE: of.namespace,
        label::SOURCE_NAME: of.name,
        label::SOURCE_KIND: kind,
    });
    json!({"metadata": {"name": record, "labels": labels}, "spec": spec})
}
