//! Records of clusters that do not exist, for an administrator of the Common Area to write.

use api::{
    ServiceName, name,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
};
use serde_json::{Value, json};

/// A Service on port 80.
pub fn service(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record(cluster, service, SERVICE, &name::service_export(cluster, service));
    record["spec"]["service"] = json!({"serviceSpec": {"ports": [{"port": 80, "protocol": "TCP"}]}});
    record
}

/// Its only slice: one endpoint, on port 8080.
pub fn slice(cluster: &str, service: &ServiceName, address: &str) -> Value {
    let mut record = record(cluster, service, ENDPOINT_SLICE, &name::slice_export(cluster, service, "only"));
    record["spec"]["endpointSlice"] = json!({
        "addressType": "IPv4",
        "ports": [{"protocol": "TCP", "port": 8080, "servicePort": 80}],
        "endpoints": [{"addresses": [address]}],
    });
    record
}

/// Endpoints that fill the memory of who decodes them: their JSON has a megabyte, and fifty when it is decoded.
pub fn dense(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record(cluster, service, ENDPOINTS, &name::endpoints_export(cluster, service));
    let subset = json!({"addresses": vec![json!({"ip": ""}); 20_000]});
    record["spec"]["endpoints"] = json!({"subsets": vec![subset; 6]});
    record
}

/// As many endpoints as are decoded at all: their JSON has a quarter of a megabyte, and four when it is decoded.
pub fn endpoints(cluster: &str, service: &ServiceName) -> Value {
    let mut record = record(cluster, service, ENDPOINTS, &name::endpoints_export(cluster, service));
    let subset = json!({"addresses": vec![json!({"ip": "10.1.0.1"}); 13_000]});
    record["spec"]["endpoints"] = json!({"subsets": [subset]});
    record
}

/// As many endpoints as a slice may have, of ten addresses each.
pub fn large_slice(cluster: &str, service: &ServiceName) -> Value {
    let mut record = slice(cluster, service, "10.1.0.1");
    let address = |number: usize, nth: usize| format!("10.{nth}.{}.{}", number / 250, 1 + number % 250);
    let endpoint = |number| json!({"addresses": (0..10).map(|nth| address(number, nth)).collect::<Vec<_>>()});
    record["spec"]["endpointSlice"]["endpoints"] = (0..1000).map(endpoint).collect();
    record
}

fn record(cluster: &str, service: &ServiceName, kind: &str, name: &str) -> Value {
    let ServiceName { namespace, name: of } = service;
    json!({
        "apiVersion": "multicluster.crd.antrea.io/v1alpha1",
        "kind": "ResourceExport",
        "metadata": {
            "name": name,
            "labels": {
                "sourceClusterID": cluster, "sourceNamespace": namespace, "sourceName": of, "sourceKind": kind,
            },
        },
        "spec": {"clusterID": cluster, "namespace": namespace, "name": of, "kind": kind},
    })
}
