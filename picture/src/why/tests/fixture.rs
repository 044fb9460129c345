//! A set of three clusters that is well: `hub` leads, `east` exports shop/web, `west` imports it.

use api::{ServiceName, lease::LeaseView};
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    cluster::{Area, Cluster},
    dns::{Dns, corefile},
    gap::Gap,
    member::Member,
    view::{
        ClusterSetView, MergedView, RecordView, ServiceExportView, ServiceImportView, ServiceView, SliceView,
    },
    why::Picture,
};

pub(super) const HUB: usize = 0;
pub(super) const EAST: usize = 1;
pub(super) const WEST: usize = 2;

pub(super) fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

/// So many seconds ago.
pub(super) fn ago(seconds: i64) -> String {
    (now() - SignedDuration::from_secs(seconds)).to_string()
}

pub(super) fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

pub(super) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    let since = ago(3 * 86_400);
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

/// What the conditions of an export say that is well.
pub(super) fn well() -> [Value; 2] {
    [condition("Valid", "True", "Valid", ""), condition("Ready", "True", "Exported", "")]
}

pub(super) fn set(id: &str, ready: &Value) -> ClusterSetView {
    let leader = json!({"clusterID": "hub", "server": "https://hub:6443", "secret": "freeport-leader-demo"});
    object(json!({
        "metadata": {"name": "demo"},
        "spec": {"clusterID": id, "leaders": [leader], "namespace": "clusterset-demo"},
        "status": {"conditions": [ready]},
    }))
}

fn lease(name: &str, seconds: i64) -> LeaseView {
    let spec = json!({"holderIdentity": "uid/pod", "leaseDurationSeconds": 30, "renewTime": ago(seconds)});
    object(json!({"metadata": {"name": name}, "spec": spec}))
}

/// A Lease that is renewed.
pub(super) fn announce(name: &str) -> LeaseView {
    lease(name, 5)
}

/// A Lease that is not renewed any more.
pub(super) fn silent(name: &str) -> LeaseView {
    lease(name, 600)
}

pub(super) fn export(name: &str, conditions: &[Value]) -> ServiceExportView {
    object(json!({"metadata": {"name": name}, "status": {"conditions": conditions}}))
}

pub(super) fn service(name: &str, spec: &Value) -> ServiceView {
    object(json!({"metadata": {"name": name}, "spec": spec}))
}

/// Metadata of what freeport-member wrote.
fn ours(name: &str) -> Value {
    json!({"name": name, "managedFields": [{"manager": "freeport-member", "operation": "Apply"}]})
}

pub(super) fn import(ready: &Value) -> ServiceImportView {
    object(json!({"metadata": ours("web"), "status": {"conditions": [ready]}}))
}

/// An EndpointSlice with endpoints that are ready or not.
pub(super) fn slice(labels: &Value, ready: &[bool]) -> SliceView {
    let endpoints: Vec<_> = ready.iter().map(|ready| json!({"conditions": {"ready": ready}})).collect();
    object(json!({"metadata": {"name": "s", "labels": labels}, "endpoints": endpoints}))
}

/// A Service record; `at`: when its ServiceExport was made.
pub(super) fn record(id: &str, at: &str, spec: &Value) -> RecordView {
    let service = json!({"serviceSpec": spec, "exportedAt": at});
    object(json!({
        "metadata": {"name": format!("{id}-shop-web-service")},
        "spec": {"clusterID": id, "kind": "Service", "namespace": "shop", "name": "web", "service": service},
    }))
}

pub(super) fn merged(ids: &[&str]) -> MergedView {
    let exporters: Vec<_> = ids.iter().map(|id| json!({"clusterID": id, "observed": "u/1"})).collect();
    object(json!({"metadata": {"name": "shop-web-service"}, "spec": {"exporters": exporters}}))
}

/// CoreDNS with the zone or as installers leave it, and so many Pods that are ready.
pub(super) fn coredns(has_zone: bool, ready: u32) -> Dns {
    let stock = ".:53 {\n    kubernetes cluster.local\n}\n";
    let corefile = if has_zone { corefile::add(stock).unwrap() } else { stock.to_owned() };
    let imports = json!({"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": ["list", "watch"]});
    let template = json!({"spec": {"serviceAccountName": "coredns", "containers": []}});
    let spec = json!({"replicas": 2, "selector": {}, "template": template});
    Dns {
        corefile: Ok(Some(corefile)),
        mounted: Ok(vec![]),
        deployment: Ok(Some(object(json!({"spec": spec, "status": {"readyReplicas": ready}})))),
        rules: Ok(if has_zone { vec![object(imports)] } else { vec![] }),
    }
}

fn member(id: &str) -> Cluster {
    Cluster {
        uid: Ok(format!("uid-{id}")),
        member: Member {
            sets: Ok(vec![set(id, &condition("Ready", "True", "Connected", ""))]),
            lease: Ok(Some(announce("freeport-member"))),
            deployment: Ok(None),
            pods: Ok(vec![]),
        },
        namespace: Ok(Some(object(json!({"metadata": {"name": "shop"}})))),
        exports: Ok(vec![]),
        services: Ok(vec![]),
        import: Ok(None),
        slices: Ok(vec![]),
        areas: Ok(vec![]),
        dns: coredns(true, 1),
        ..Cluster::unknown(id, &Gap::NotLooked)
    }
}

pub(super) fn healthy() -> Picture {
    let (mut hub, mut east, mut west) = (member("hub"), member("east"), member("west"));
    let ports = json!({"ports": [{"name": "http", "port": 80}]});
    hub.areas = Ok(vec![Area {
        namespace: "clusterset-demo".into(),
        sets: Ok(vec![set("hub", &condition("Ready", "True", "Ready", ""))]),
        leases: Ok([
            "freeport-leader",
            "freeport-member-hub",
            "freeport-member-east",
            "freeport-member-west",
        ]
        .map(announce)
        .into()),
        records: Ok(vec![record("east", &ago(86_400), &ports)]),
        merged: Ok(Some(merged(&["east"]))),
    }]);
    east.exports = Ok(vec![export("web", &well())]);
    east.services = Ok(vec![service("web", &ports)]);
    east.slices = Ok(vec![slice(&json!({"kubernetes.io/service-name": "web"}), &[true, false])]);
    let derived = json!({"metadata": ours("antrea-mc-web"), "spec": {}});
    west.services = Ok(vec![object(derived)]);
    west.import = Ok(Some(import(&condition("Ready", "True", "Ready", ""))));
    let imported = json!({
        "kubernetes.io/service-name": "antrea-mc-web",
        "multicluster.kubernetes.io/service-name": "web",
        "multicluster.kubernetes.io/source-cluster": "east",
    });
    west.slices = Ok(vec![slice(&imported, &[true])]);
    Picture { service: ServiceName::new("shop", "web"), clusters: vec![hub, east, west], now: now() }
}
