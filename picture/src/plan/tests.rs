mod unknown;

use api::{
    mcs::{CONFLICT, ServiceImportType},
    name,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::gap::Gap;

const EAST: usize = 1;
const WEST: usize = 2;

fn now() -> Timestamp {
    "2026-11-30T10:00:00Z".parse().unwrap()
}

fn web() -> ServiceName {
    ServiceName::new("shop", "web")
}

fn object<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn in_shop(name: &str, rest: &Value) -> Value {
    let mut all =
        json!({"metadata": {"name": name, "namespace": "shop", "creationTimestamp": "2026-11-01T00:00:00Z"}});
    all.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    all
}

fn service(port: i32) -> Service {
    let ports = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    object(in_shop(
        "web",
        &json!({"spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "ports": ports,
        }}),
    ))
}

fn slice() -> Slice {
    object(json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.2.0.1"]}, {"addresses": ["10.2.0.2"], "conditions": {"ready": false}}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }))
}

fn ours(name: &str, rest: &Value) -> Value {
    let mut all = in_shop(name, rest);
    all["metadata"]["labels"] = json!({
        "app.kubernetes.io/managed-by": "freeport",
        "endpointslice.kubernetes.io/managed-by": "freeport",
        "multicluster.kubernetes.io/service-name": "web",
        "multicluster.kubernetes.io/source-cluster": "east",
    });
    all
}

fn cluster(id: &str) -> Cluster {
    let set =
        json!({"metadata": {"name": "demo"}, "spec": {"clusterID": id, "leaders": [{"clusterID": "hub"}]}});
    Cluster {
        uid: Ok(id.to_owned()),
        sets: Ok(vec![object(set)]),
        deployment: Ok(None),
        families: Ok(vec!["IPv4".to_owned()]),
        namespaces: Ok(vec![object(json!({"metadata": {"name": "shop"}}))]),
        exports: Ok(vec![]),
        services: Ok(vec![]),
        slices: Ok(vec![]),
        imports: Ok(vec![]),
        areas: Ok(vec![]),
        ..Cluster::unknown(format!("{id}-admin"), &Gap::NotLooked)
    }
}

/// Adds an import of east's shop/web.
fn import_web(cluster: &mut Cluster) {
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
    let spec = json!({"type": "ClusterSetIP", "ports": ports, "ips": ["10.9.0.7"], "ipFamilies": ["IPv4"]});
    let status = json!({"clusters": [{"cluster": "east"}], "conditions": []});
    cluster.imports = Ok(vec![object(ours("web", &json!({"spec": spec, "status": status})))]);
    let spec = json!({"type": "ClusterIP", "clusterIP": "10.9.0.7", "clusterIPs": ["10.9.0.7"], "ipFamilies": ["IPv4"], "ports": ports});
    cluster.services.as_mut().unwrap().push(object(ours("antrea-mc-web", &json!({"spec": spec}))));
    let imported = name::imported_slice("web", &name::slice_export("east", &web(), "web-1"));
    let content = json!({
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.2.0.1"]}, {"addresses": ["10.2.0.2"], "conditions": {"ready": false}}],
    });
    cluster.slices.as_mut().unwrap().push(object(ours(&imported, &content)));
}

/// `hub` leads and has no Namespace shop; `east` exports shop/web; `east` and `west` import it.
fn clusters() -> Vec<Cluster> {
    let (mut hub, mut east, mut west) = (cluster("hub"), cluster("east"), cluster("west"));
    hub.namespaces = Ok(vec![]);
    let lease = |id: &str| {
        object(json!({"metadata": {"name": name::member_lease(id)}, "spec": {"holderIdentity": "u/p"}}))
    };
    hub.areas = Ok(vec![Area {
        namespace: "clusterset-demo".into(),
        sets: Ok(vec![object(json!({"metadata": {"name": "demo"}}))]),
        leases: Ok(["hub", "east", "west"].map(lease).into()),
        records: Ok(vec![]),
        reports: Ok(vec![]),
    }]);
    east.exports = Ok(vec![object(in_shop("web", &json!({"spec": {}})))]);
    east.services = Ok(vec![service(80)]);
    east.slices = Ok(vec![slice()]);
    [&mut east, &mut west].into_iter().for_each(import_web);
    vec![hub, east, west]
}

fn planned(clusters: &[Cluster], at: &str, changes: &[Change]) -> Plan {
    plan(clusters, Some(at), changes, now()).unwrap()
}

fn export() -> Change {
    Change::Export(object(json!({"metadata": {"name": "web", "namespace": "shop"}})))
}

#[test]
fn the_end_of_the_only_export_takes_the_last_endpoint_from_all() {
    let plan = planned(&clusters(), "east", &[Change::Unexport(web())]);
    let losing: Vec<_> = plan.services[0].losing().map(|importing| importing.cluster.as_str()).collect();
    assert_eq!(losing, ["east", "west"]);
    assert!(!plan.is_well() && plan.services[0].import.is_none());
    // Record withdrawn and deleted, its slice deleted, the ResourceImport emptied and deleted; Service, ServiceImport, slice.
    let writes = plan.writes();
    assert_eq!((writes.common_area, writes.clusters["west"]), (5, 3));
    let text = plan.text().join("\n");
    assert!(text.contains("in west: the import is removed; endpoints 2 (1 ready) before"), "{text}");
    assert!(text.contains("problem: shop/web: import in west loses its last endpoint"), "{text}");
}

#[test]
fn a_second_export_is_merged_as_the_leader_does_and_who_lacks_the_namespace_is_named() {
    let change = [Change::Service(service(8080)), export()];
    let plan = planned(&clusters(), "west-admin", &change);
    let service = &plan.services[0];
    let ports: Vec<_> = service.import.as_ref().unwrap().spec.ports.iter().map(|port| port.port).collect();
    assert_eq!((ports, &service.lacking), (vec![80], &vec!["hub".to_owned()]));
    let names: Vec<_> = service.exporters.iter().map(|exported| exported.cluster.as_str()).collect();
    assert_eq!(names, ["east", "west"], "the older export first");
    let conflict = service.exporters[1].conditions.iter().find(|said| said.type_ == CONFLICT).unwrap();
    assert!(conflict.message.contains("clients cannot reach http 8080/TCP"), "{}", conflict.message);
    let west = service.importers.iter().find(|importing| importing.cluster == "west").unwrap();
    assert_eq!((west.after, west.loses_all()), (Endpoints { total: 2, ready: 1 }, Some(false)));
    assert_eq!(west.import.as_ref().unwrap().address, Address::Kept);
    assert_eq!(plan.problems, ["shop/web: its exports differ: PortConflict"]);
    let ready = service.exporters[0].conditions.iter().find(|said| said.type_ == "Ready").unwrap();
    assert!(
        ready.message.contains("not imported in hub, because there is no Namespace shop"),
        "{}",
        ready.message
    );
    // The conflict is the same for whoever says it twice.
    assert_eq!(planned(&clusters(), "east", &[export()]).writes(), Writes::default(), "nothing changes");
}

#[test]
fn what_an_api_server_would_refuse_is_not_planned_with() {
    let mut all = clusters();
    let excluded =
        json!({"metadata": {"name": "shop", "labels": {"multicluster.freeport.dev/export": "false"}}});
    all[WEST].namespaces = Ok(vec![object(excluded)]);
    let refused = planned(&all, "west", &[export()]).refused;
    assert!(refused[0].message.contains("excluded Namespace shop from exporting"), "{refused:?}");
    let missing = planned(&all, "hub", &[export()]);
    assert_eq!(missing.problems, ["hub would refuse ServiceExport shop/web: namespaces \"shop\" not found"]);
    let headless: Service =
        object(in_shop("web", &json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}})));
    let refused = planned(&all, "east", &[Change::Service(headless)]).refused;
    assert!(refused[0].message.contains("may not change once set"), "{refused:?}");
    let odd =
        json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"exportedLabels": {"a": "b c"}}});
    let refused = planned(&clusters(), "west", &[Change::Export(object(odd))]).refused;
    assert!(refused[0].message.contains("no value that a label could have"), "{refused:?}");
}

#[test]
fn an_export_without_its_service_is_not_valid_and_a_headless_import_has_no_address() {
    let plan = planned(&clusters(), "west", &[export()]);
    assert_eq!(
        plan.problems,
        ["shop/web: export of west is not valid: NoService: there is no Service shop/web"]
    );
    let mut all = clusters();
    let headless = json!({"spec": {"clusterIP": "None", "ipFamilies": ["IPv4"], "ports": [{"name": "http", "port": 80}]}});
    all[EAST].services = Ok(vec![object(in_shop("web", &headless))]);
    all[WEST].services = Ok(vec![]);
    let plan = planned(&all, "east", &[export()]);
    let west = plan.services[0].importers.iter().find(|importing| importing.cluster == "west").unwrap();
    let import = west.import.as_ref().unwrap();
    assert_eq!((import.spec.type_, import.address), (ServiceImportType::Headless, Address::None));
}

#[test]
fn without_the_leader_exporters_that_imports_name_stay() {
    let mut all = clusters();
    let east = all.remove(EAST);
    let mut west = all.remove(1);
    west.services.as_mut().unwrap().push(service(80));
    let plan = planned(&[west], "west", &[export()]);
    let web = &plan.services[0];
    assert_eq!(web.importers[0].after, Endpoints { total: 2, ready: 1 }, "those of east");
    assert!(
        plan.not_looked_at.iter().any(|note| note.contains("what east exports")),
        "{:?}",
        plan.not_looked_at
    );
    // The end of the only export is seen without the leader.
    assert!(!planned(&[east], "east", &[Change::Unexport(ServiceName::new("shop", "web"))]).is_well());
}

#[test]
fn a_command_for_a_missing_namespace_names_the_context_of_a_cluster_that_was_looked_at() {
    let mut all = clusters();
    let area = &mut all[0].areas.as_mut().unwrap()[0];
    let lacks = api::lease::lacks(["shop".to_owned()].into(), now());
    let lease = json!({
        "metadata": {"name": name::member_lease("south"), "annotations": {api::label::LACKS: lacks}},
        "spec": {"holderIdentity": "u/p", "renewTime": "2026-11-30T10:00:00.000000Z"},
    });
    area.leases.as_mut().unwrap().push(object(lease));
    let lacking = planned(&all, "east", &[export()]).services[0].lacking_text();
    let create = "try: kubectl --context hub-admin create namespace shop";
    assert_eq!(
        lacking,
        [format!("not in hub: no Namespace shop. {create}"), "not in south: no Namespace shop".to_owned()]
    );
}

#[test]
fn a_namespace_that_is_being_deleted_refuses_what_is_new() {
    let mut all = clusters();
    let going = json!({"metadata": {"name": "shop", "deletionTimestamp": "2026-11-30T09:00:00Z"}});
    (all[WEST].namespaces, all[EAST].namespaces) = (Ok(vec![object(going.clone())]), Ok(vec![object(going)]));
    let refused = planned(&all, "west", &[export(), Change::Service(service(80))]).refused;
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].message.ends_with("because it is being terminated"), "{refused:?}");
    assert_eq!(planned(&all, "east", &[export(), Change::Unexport(web())]).refused, [], "they exist");
}

#[test]
fn a_member_exports_cluster_ips_by_its_arguments_or_its_environment() {
    let only = |args: &[&str], env: &str| {
        let mut east = cluster("east");
        let container =
            json!({"name": "m", "args": args, "env": [{"name": "FREEPORT_ENDPOINT_IP", "value": env}]});
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
        east.deployment = Ok(Some(object(json!({"metadata": {}, "spec": spec}))));
        east.only_cluster_ips()
    };
    assert!(only(&["--endpoint-ip=cluster"], "") && only(&["--endpoint-ip", "cluster"], ""));
    assert!(only(&[], "cluster") && !only(&[], "pod") && !only(&[], ""));
    assert!(!only(&["--endpoint-ip=pod"], "cluster"), "an argument wins");
    assert!(!only(&["--endpoint-ip", "pod"], "cluster"));
}
