//! A good object of each kind, with everything that it can say: what odd ones are made from.

use api::{ServiceName, name};
use serde_json::{Value, json};

use super::MEMBER;
use crate::{fixture::SET, record};

pub(super) fn service_record(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record::service(cluster, service);
    record["spec"]["service"] = json!({
        "serviceSpec": {
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
            "ipFamilies": ["IPv4"], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
            "internalTrafficPolicy": "Cluster", "trafficDistribution": "PreferClose",
        },
        "exportedAt": "2026-11-01T12:00:00Z",
        "exportedLabels": {"team": "shop"}, "exportedAnnotations": {"note": "a"},
    });
    record
}

pub(super) fn slice_record(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record::slice(cluster, service, "10.9.0.1");
    record["spec"]["endpointSlice"]["endpoints"] = json!([{
        "addresses": ["10.9.0.1"], "zone": "a", "hostname": "one",
        "conditions": {"ready": true, "serving": true, "terminating": false},
    }]);
    record
}

/// All endpoints in one record, as Antrea's controllers write them.
pub(super) fn endpoints_record(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record::endpoints(cluster, service);
    record["spec"]["endpoints"] = json!({"subsets": [{
        "addresses": [{"ip": "10.9.0.1", "hostname": "one"}], "notReadyAddresses": [{"ip": "10.9.0.2"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }]});
    record
}

/// A record of Antrea's that nobody here reads.
pub(super) fn cluster_info(cluster: &str, service: &ServiceName) -> Value {
    const KIND: &str = "ClusterInfo";
    let mut record = record::service(cluster, service);
    let name = name::service_export(cluster, service).replace(".service", ".clusterinfo");
    record["metadata"]["name"] = json!(name);
    record["metadata"]["labels"]["sourceKind"] = json!(KIND);
    let ServiceName { namespace, name } = service;
    let info = json!({"clusterID": cluster, "serviceCIDR": "10.96.0.0/12", "podCIDRs": ["10.244.0.0/16"]});
    record["spec"] = json!({"clusterID": cluster, "namespace": namespace, "name": name, "kind": KIND, "clusterInfo": info});
    record
}

pub(super) fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name::member_lease(MEMBER), "annotations": {api::label::SETTLED: "true", api::label::WIRE: "1"}},
        "spec": {
            "holderIdentity": "uid-of-north/1", "leaseDurationSeconds": 30, "leaseTransitions": 1,
            "acquireTime": "2026-11-01T12:00:00.000000Z", "renewTime": "2026-11-01T12:00:00.000000Z",
        },
    })
}

pub(super) fn announce() -> Value {
    json!({
        "apiVersion": "multicluster.crd.antrea.io/v1alpha1",
        "kind": "MemberClusterAnnounce",
        "metadata": {"name": name::announce(MEMBER)},
        "clusterID": MEMBER, "clusterSetID": SET, "leaderClusterID": "leader",
    })
}

pub(super) fn export(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": {"name": name},
        "spec": {"exportedLabels": {"team": "shop"}, "exportedAnnotations": {"note": "a"}},
    })
}

/// Exported by the ServiceExport that is there for all of them.
pub(super) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"app": "odd"}},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}]},
    })
}

pub(super) fn endpoint_slice(name: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {api::label::SERVICE_NAME: TARGET}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.1.0.9"], "zone": "a", "nodeName": "n1", "conditions": {"ready": true}}],
    })
}

pub(super) fn import(name: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "metadata": {"name": name},
        "spec": {"type": "ClusterSetIP", "ips": ["10.0.0.1"], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    })
}

/// The exported Service whose EndpointSlices users write oddly.
pub const TARGET: &str = "target";
