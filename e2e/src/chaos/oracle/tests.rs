use serde_json::{Value, json};

use super::*;

const NS: &str = "chaos-0";

fn object<K: serde::de::DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Service `web` with these ports, exported.
fn exporter(ports: &[(&str, i32)], addresses: &[&str]) -> Held {
    let ports: Vec<_> = ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
    let meta = json!({"name": "web", "namespace": NS});
    let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    Held {
        namespaces: vec![NS.into()],
        services: vec![object(json!({"metadata": meta, "spec": {"ports": ports}}))],
        slices: vec![object(json!({
            "metadata": {"name": "web-one", "namespace": NS, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080}, {"name": "admin", "port": 8081}],
        }))],
        exports: vec![object(json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceExport", "metadata": meta, "spec": {},
            "status": {"conditions": [condition("Valid"), condition("Ready")]},
        }))],
        imports: vec![],
    }
}

fn condition(type_: &str) -> Value {
    json!({"type": type_, "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-11-27T00:00:00Z"})
}

/// The import of `web` by these clusters, with endpoints `(cluster, port name, address, port)`.
fn import(held: &mut Held, ports: &[(&str, i32)], clusters: &[&str], endpoints: &[(&str, &str, &str, i32)]) {
    let ports: Vec<_> = ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
    let clusters: Vec<_> = clusters.iter().map(|cluster| json!({"cluster": cluster})).collect();
    held.imports.push(object(json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport",
        "metadata": {"name": "web", "namespace": NS},
        "spec": {"type": "ClusterSetIP", "ports": ports, "ips": ["10.96.0.9"]},
        "status": {"clusters": clusters},
    })));
    held.services.push(object(json!({
        "metadata": {"name": "antrea-mc-web", "namespace": NS}, "spec": {"ports": ports, "clusterIP": "10.96.0.9"},
    })));
    for (number, (cluster, name, address, port)) in endpoints.iter().enumerate() {
        held.slices.push(object(json!({
            "metadata": {"name": format!("antrea-mc-web-{number}"), "namespace": NS, "labels": {
                "multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/source-cluster": cluster,
                "kubernetes.io/service-name": "antrea-mc-web",
            }},
            "addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": [{"name": name, "port": port}],
        })));
    }
}

fn record(kind: &str, cluster: &str) -> Value {
    json!({"spec": {"kind": kind, "clusterID": cluster, "namespace": NS, "name": "web"}})
}

/// `east` and `west` export, with a port more in `west`; all is there.
fn whole() -> All {
    let (mut east, mut west) =
        (exporter(&[("http", 80)], &["10.1.1.1"]), exporter(&[("http", 80), ("admin", 81)], &["10.2.1.1"]));
    let mut leader = Held { namespaces: vec![NS.into()], ..Held::default() };
    for held in [&mut east, &mut west, &mut leader] {
        let endpoints = [
            ("east", "http", "10.1.1.1", 8080),
            ("west", "http", "10.2.1.1", 8080),
            ("west", "admin", "10.2.1.1", 8081),
        ];
        import(held, &[("http", 80), ("admin", 81)], &["east", "west"], &endpoints);
    }
    let clusters = [("east", east), ("west", west), ("leader", leader)];
    All {
        clusters: clusters.into_iter().map(|(name, held)| (name.to_owned(), held)).collect(),
        records: vec![record("Service", "east"), record("Service", "west"), record("ServiceImport", "")],
    }
}

#[test]
fn what_is_as_it_has_to_be_differs_in_nothing() {
    assert_eq!(differences(&whole()), Vec::<String>::new());
}

/// What a change of all makes of it: the names of what differs.
fn after(change: impl FnOnce(&mut All)) -> Vec<String> {
    let mut all = whole();
    change(&mut all);
    let name = |line: String| line.split(": ").next().unwrap_or_default().to_owned();
    differences(&all).into_iter().map(name).collect()
}

fn held<'a>(all: &'a mut All, cluster: &str) -> &'a mut Held {
    all.clusters.get_mut(cluster).unwrap()
}

#[test]
fn an_import_that_is_missing_or_stays_is_told() {
    assert_eq!(
        after(|all| drop(held(all, "leader").imports.pop())),
        ["import chaos-0/web in leader"],
        "a Service without one"
    );
    let gone = after(|all| {
        held(all, "east").exports.clear();
        held(all, "west").exports.clear();
    });
    let left = ["import chaos-0/web in east", "import chaos-0/web in leader", "import chaos-0/web in west"];
    assert_eq!(gone[..3], left);
    assert_eq!(gone.len(), 3 + 3, "{gone:?}");
}

#[test]
fn where_the_namespace_is_not_there_has_to_be_no_import() {
    assert_eq!(after(|all| held(all, "leader").namespaces.clear()), ["import chaos-0/web in leader"]);
    assert_eq!(after(|all| *held(all, "leader") = Held::default()), Vec::<String>::new());
}

#[test]
fn an_endpoint_that_is_stale_is_told_wherever_it_is() {
    let moved = after(|all| held(all, "east").slices[0] = exporter(&[], &["10.1.1.2"]).slices.remove(0));
    assert_eq!(moved.len(), 3, "{moved:?}");
}

#[test]
fn an_export_without_a_service_is_not_valid_and_not_imported() {
    let gone = after(|all| drop(held(all, "west").services.remove(0)));
    assert!(gone.contains(&"export chaos-0/web in west".to_owned()), "{gone:?}");
    assert!(gone.contains(&"record of chaos-0/web by west".to_owned()), "{gone:?}");
    assert_eq!(gone.len(), 5, "{gone:?}");
}
