//! The objects of which watches tell: we are `west`; `east` and `north` are hosts and homes of ours. Each has six contents, some alike.

use serde_json::{Value, json};

/// What is watched, by the watch that tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Peer,
    Node,
    OwnMap,
    PeerMap,
    OwnOffer,
    PeerOffer,
    Offloading,
    Namespace,
    Binding,
    Account,
    Record,
    Pod,
    Lease,
}

/// One of them.
pub(super) struct Object {
    pub(super) kind: Kind,
    /// As it is with a content.
    pub(super) content: fn(usize) -> Value,
    /// It is there from the beginning, and never goes.
    pub(super) stays: bool,
}

const fn object(kind: Kind, content: fn(usize) -> Value) -> Object {
    Object { kind, content, stays: false }
}

/// A Namespace with Pods goes after them.
const fn home(content: fn(usize) -> Value) -> Object {
    Object { kind: Kind::Namespace, content, stays: true }
}

/// How many contents an object has.
pub(super) const CONTENTS: usize = 6;

pub(super) const OBJECTS: [Object; 24] = [
    object(Kind::Peer, |n| peer("east", n)),
    object(Kind::Peer, |n| peer("north", n)),
    object(Kind::Node, |n| node("east", n)),
    object(Kind::Node, |n| node("north", n)),
    object(Kind::OwnMap, |n| own_map("east", n)),
    object(Kind::OwnMap, |n| own_map("north", n)),
    object(Kind::PeerMap, |n| peer_map("east", n)),
    object(Kind::PeerMap, |n| peer_map("north", n)),
    object(Kind::OwnOffer, |n| offer("west", "east", n)),
    object(Kind::PeerOffer, |n| offer("east", "west", n)),
    object(Kind::PeerOffer, |n| offer("north", "west", n)),
    object(Kind::Offloading, |n| offloading("shop", n)),
    object(Kind::Offloading, |n| offloading("web", n)),
    home(|n| namespace("shop", n)),
    home(|n| namespace("web", n)),
    object(Kind::Namespace, |n| twin("db-east", n)),
    object(Kind::Namespace, |n| twin("mine", n)),
    object(Kind::Binding, |_| json!({"metadata": {"name": "freeport-offload", "namespace": "db-east"}})),
    object(Kind::Account, |_| json!({"metadata": {"name": "default", "namespace": "db-east"}})),
    object(Kind::Record, |n| record("east", n)),
    object(Kind::Record, |n| record("north", n)),
    object(Kind::Pod, pod),
    object(Kind::Lease, |n| lease("east", n)),
    object(Kind::Lease, |n| lease("north", n)),
];

fn peer(id: &str, n: usize) -> Value {
    let incoming = json!({"namespaces": ["mi*"], "maxNamespaces": n});
    let spec = match n {
        0 => json!({}),
        1 => json!({"outgoing": 7}),
        2 => json!({"outgoing": {}}),
        3 => json!({"incoming": incoming}),
        _ => json!({"outgoing": {}, "incoming": incoming}),
    };
    json!({"metadata": {"name": id, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec})
}

fn node(id: &str, n: usize) -> Value {
    let mut labels = json!({"liqo.io/type": "virtual-node", "app.kubernetes.io/managed-by": "freeport"});
    let region = ["us", "us", "eu", "eu", "us", "us"][n];
    labels["region"] = region.into();
    let mut metadata = json!({"name": format!("freeport-{id}"), "labels": labels});
    match n {
        4 => metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        5 => metadata["labels"]["app.kubernetes.io/managed-by"] = json!("another"),
        _ => {}
    }
    json!({"metadata": metadata})
}

fn own_map(id: &str, n: usize) -> Value {
    let twin = |phase: &str| json!({"remoteNamespace": "shop-west", "phase": phase});
    let (both, shop) = (json!({"shop": "shop-west", "web": "web-west"}), json!({"shop": "shop-west"}));
    let (desired, said) = match n {
        0 => (json!({}), json!({})),
        1 => (shop, json!({})),
        2 => (shop, json!({"shop": twin("Accepted")})),
        3 => (json!({}), json!({"shop": twin("Terminating")})),
        4 => (both, json!({"shop": twin("CreationLoopBackOff")})),
        _ => (json!(7), json!({})),
    };
    let withdrawn = match n {
        0 => json!({"shop": -1}),
        3 => json!({"shop": 2, "web": 2}),
        _ => json!({}),
    };
    let spec =
        json!({"origin": "west", "destination": id, "desiredMapping": desired, "withdrawn": withdrawn});
    let metadata = json!({"name": format!("1.west.{id}"), "namespace": "area", "generation": n, "creationTimestamp": "2026-01-01T00:00:00Z"});
    json!({"metadata": metadata, "spec": spec, "status": {"currentMapping": said, "observedGeneration": n}})
}

fn peer_map(id: &str, n: usize) -> Value {
    let desired = match n {
        0 => json!({}),
        1 => json!({"db": "db-east"}),
        2 => json!({"db": "db-east", "api": "mine"}),
        3 => json!({"api": "mine"}),
        4 => json!({"api": "yours"}),
        _ => json!(7),
    };
    let withdrawn = if n == 0 { json!({"db": 1}) } else { json!({}) };
    let spec =
        json!({"origin": id, "destination": "west", "desiredMapping": desired, "withdrawn": withdrawn});
    json!({"metadata": {"name": format!("1.{id}.west"), "namespace": "area"}, "spec": spec})
}

fn offer(host: &str, home: &str, n: usize) -> Value {
    let resources = json!({"cpu": if n == 0 { "odd" } else { "4" }});
    let labels = json!({"region": if n < 3 { "us" } else { "eu" }});
    let spec =
        json!({"host": host, "home": home, "resources": resources, "nodeLabels": labels, "publicKey": ""});
    json!({"metadata": {"name": format!("1.{host}.{home}"), "namespace": "area"}, "spec": spec})
}

fn offloading(namespace: &str, n: usize) -> Value {
    let expression = json!({"key": "region", "operator": "In", "values": ["us"]});
    let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
    let spec = match n {
        0 => json!({"podOffloadingStrategy": "Local"}),
        1 => json!({"clusterSelector": {"nodeSelectorTerms": [{}]}}),
        2 => json!({"clusterSelector": selector}),
        _ => json!({}),
    };
    let mut metadata = json!({"name": "offloading", "namespace": namespace, "finalizers": []});
    if n != 3 {
        metadata["finalizers"] = json!(["namespaceoffloading-controller.liqo.io/finalizer"]);
    }
    if n == 4 {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let required = json!({"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let said = match n {
        4 | 5 => json!({"remoteNamespaceName": format!("{namespace}-west"),
            "remoteNamespacesConditions": {"east": [required]}}),
        _ => json!({}),
    };
    json!({"metadata": metadata, "spec": spec, "status": said})
}

fn namespace(name: &str, n: usize) -> Value {
    let mut metadata = json!({"name": name, "labels": {}});
    match n {
        0 => metadata["labels"]["liqo.io/scheduling-enabled"] = json!("true"),
        1 => metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
        _ => {}
    }
    json!({"metadata": metadata})
}

/// A Namespace whose name others want for a twin.
fn twin(name: &str, n: usize) -> Value {
    let (home, original) = match n {
        0 => return json!({"metadata": {"name": name}}),
        1 | 2 => ("east", "db"),
        3 => ("east", "api"),
        _ => ("north", "db"),
    };
    let labels = json!({"app.kubernetes.io/managed-by": "freeport", "liqo.io/remote-cluster-id": home});
    let annotations = json!({
        "liqo.io/managed-by-namespace-map": format!("1.{home}.west"), "liqo.io/original-name": original,
    });
    let mut metadata = json!({"name": name, "labels": labels, "annotations": annotations});
    if n == 2 {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    json!({"metadata": metadata})
}

fn record(home: &str, n: usize) -> Value {
    let uid = format!("of-{home}");
    let mut spec = json!({
        "origin": home, "destination": "west", "namespace": "db-east", "pod": "web", "uid": uid, "sealed": "content",
    });
    if n < 2 {
        spec["deletion"] = json!({"gracePeriodSeconds": 10 * n});
    }
    let status = if n == 2 { json!({"pod": {"phase": "Succeeded"}}) } else { json!({}) };
    json!({"metadata": {"name": format!("1.{home}.west.{uid}"), "namespace": "area"}, "spec": spec, "status": status})
}

fn pod(n: usize) -> Value {
    let home = if n < 4 { "east" } else { "north" };
    let labels = json!({
        "liqo.io/managed-by": "shadowpod", "offloading.liqo.io/origin": home,
        "multicluster.freeport.dev/origin-uid": format!("of-{home}"),
    });
    let mut metadata = json!({"name": "web", "namespace": "db-east", "labels": labels});
    if n == 0 {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["deletionGracePeriodSeconds"] = json!(30);
    }
    let phase = if n == 1 { "Succeeded" } else { "Running" };
    json!({"metadata": metadata, "spec": {"containers": []}, "status": {"phase": phase}})
}

/// Renewed at second `n`: told again with a lesser one it is that of a backup.
fn lease(id: &str, n: usize) -> Value {
    json!({
        "metadata": {"name": api::name::member_lease(id), "namespace": "area"},
        "spec": {"renewTime": format!("2026-01-01T00:00:0{n}.000000Z"), "holderIdentity": "u", "leaseDurationSeconds": 30},
    })
}
