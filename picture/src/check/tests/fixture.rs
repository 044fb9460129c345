//! A set of three clusters that is well: `hub` leads, `east` exports shop/web, `west` imports it.

use api::lease::LeaseView;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    check::{
        cluster::{Area, Cluster, Server},
        crds,
    },
    dns::{Dns, corefile},
    gap::Gap,
    member::Member,
    view::{ClusterSetView, ServiceExportView, ServiceImportView},
};

pub(super) const HUB: usize = 0;
pub(super) const EAST: usize = 1;
pub(super) const WEST: usize = 2;

pub(super) fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

pub(super) fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

pub(super) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    let since = now() - SignedDuration::from_hours(72);
    json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since.to_string()})
}

pub(super) fn connected() -> Value {
    condition("Ready", "True", "Connected", "")
}

pub(super) fn set(id: &str, conditions: &[Value]) -> ClusterSetView {
    let leader = json!({"clusterID": "hub", "server": "https://hub:6443", "secret": "freeport-leader-demo"});
    object(json!({
        "metadata": {"name": "demo"},
        "spec": {"clusterID": id, "leaders": [leader], "namespace": "clusterset-demo"},
        "status": {"conditions": conditions},
    }))
}

/// A Lease that was renewed so many seconds ago.
pub(super) fn lease(name: &str, seconds: i64, version: &str) -> LeaseView {
    let renewed = (now() - SignedDuration::from_secs(seconds)).to_string();
    let spec = json!({"holderIdentity": "uid/pod", "leaseDurationSeconds": 30, "renewTime": renewed});
    let annotations = json!({"multicluster.freeport.dev/version": version});
    object(json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec}))
}

pub(super) fn export(name: &str, conditions: &[Value]) -> ServiceExportView {
    object(json!({"metadata": {"namespace": "shop", "name": name}, "status": {"conditions": conditions}}))
}

pub(super) fn valid() -> [Value; 2] {
    [condition("Valid", "True", "Valid", ""), condition("Ready", "True", "Exported", "")]
}

pub(super) fn import(name: &str, conditions: &[Value]) -> ServiceImportView {
    let metadata = json!({"namespace": "shop", "name": name, "managedFields": [{"manager": "freeport-member", "operation": "Apply"}]});
    object(json!({"metadata": metadata, "status": {"conditions": conditions}}))
}

pub(super) fn deployment(replicas: u32) -> Value {
    let template = json!({"spec": {"containers": []}});
    json!({"spec": {"replicas": replicas, "selector": {}, "template": template}, "status": {"availableReplicas": replicas}})
}

/// A Pod of a daemon in this state that restarted so often, two minutes ago the last time.
pub(super) fn pod(state: &Value, restarts: u32) -> Value {
    let ended = (now() - SignedDuration::from_mins(2)).to_string();
    let last = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ended}});
    let container = json!({"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": restarts, "state": state, "lastState": last});
    json!({"metadata": {"name": "freeport-member-1"}, "status": {"containerStatuses": [container]}})
}

fn coredns() -> Dns {
    let imports = json!({"apiGroups": ["multicluster.x-k8s.io"], "resources": ["serviceimports"], "verbs": ["list", "watch"]});
    Dns {
        corefile: Ok(Some(corefile::add(".:53 {\n    kubernetes cluster.local\n}\n").unwrap())),
        mounted: Ok(vec![]),
        deployment: Ok(None),
        rules: Ok(vec![object(imports)]),
    }
}

fn member(id: &str, number: u32) -> Cluster {
    let ours = json!({"app.kubernetes.io/managed-by": "freeport"});
    let crds =
        crds::names().into_iter().map(|name| object(json!({"metadata": {"name": name, "labels": ours}})));
    Cluster {
        uid: Ok(format!("uid-{id}")),
        server: Ok(Server {
            version: "v1.36.3".into(),
            release: Some((1, 36)),
            ahead: Some(SignedDuration::ZERO),
        }),
        crds: Ok(crds.collect()),
        member: Member {
            sets: Ok(vec![set(id, &[connected()])]),
            lease: Ok(Some(lease("freeport-member", 5, "0.2.0"))),
            deployment: Ok(Some(object(deployment(1)))),
            pods: Ok(vec![]),
        },
        leader: Ok(None),
        leader_pods: Ok(vec![]),
        areas: Ok(vec![]),
        exports: Ok(vec![]),
        imports: Ok(vec![]),
        pod_ranges: Ok(format!("10.{number}.0.0/16").parse().unwrap()),
        service_ranges: Ok(format!("10.9{number}.0.0/16").parse().unwrap()),
        dns: coredns(),
        ..Cluster::unknown(id, &Gap::NotLooked)
    }
}

pub(super) fn healthy() -> Vec<Cluster> {
    let (mut hub, mut east, mut west) = (member("hub", 1), member("east", 2), member("west", 3));
    let leases = ["freeport-leader", "freeport-member-hub", "freeport-member-east", "freeport-member-west"];
    hub.areas = Ok(vec![Area {
        namespace: "clusterset-demo".into(),
        sets: Ok(vec![set("hub", &[connected()])]),
        leases: Ok(leases.map(|name| lease(name, 5, "0.2.0")).into()),
    }]);
    hub.leader = Ok(Some(object(deployment(1))));
    east.exports = Ok(vec![export("web", &valid())]);
    west.imports = Ok(vec![import("web", &[condition("Ready", "True", "Ready", "")])]);
    assert_eq!(west.imports.as_ref().unwrap()[0].name_any(), "web");
    vec![hub, east, west]
}
