use std::sync::Arc;

use api::{
    ServiceName,
    condition::Status,
    mcs, name,
    resource_import::{Exporter, Objection, ResourceImportSpec},
    slice::{Endpoint, SlicePayload, SlicePort as Port},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kit::{index::Index, objects::Change};
use serde_json::json;

mod alone;
mod answering;
mod antrea;
mod demoted;
mod doubts;
mod limits;
mod order;
mod reach;
mod steps;

use super::*;
use crate::service::{
    copies::unmade,
    import::{
        apply::keep_old_names,
        object::{derived, service_import},
        verdict::{Refusals, ready},
    },
    index::{
        entry::{LeaderRecord, ServiceEntry},
        view::{self, LeaderImport, PeerSlice},
    },
    offer::fixture::{self as exporting, Settings, known_with, service, with},
};

fn merged_port(name: Option<&str>, port: i32) -> mcs::ServicePort {
    mcs::ServicePort { name: name.map(str::to_owned), protocol: Some("TCP".into()), port, app_protocol: None }
}

fn merged_import(exporters: &[&str]) -> LeaderRecord {
    let exporters =
        exporters.iter().map(|c| Exporter { cluster_id: (*c).into(), ..Exporter::default() }).collect();
    let spec =
        ServiceImportSpec { ports: vec![merged_port(Some("http"), 80)], ..ServiceImportSpec::default() };
    let spec = ResourceImportSpec {
        exporters: Some(exporters),
        service_import: Some(MergedService { spec, ..MergedService::default() }),
        ..ResourceImportSpec::default()
    };
    LeaderRecord { uid: "import-1".into(), created: None, spec }
}

fn writers() -> Writers {
    Writers { leader_uid: Some("leader-1".into()), ..Writers::default() }
}

fn payload(addresses: &[&str]) -> SlicePayload {
    let port = Port {
        name: Some("web".into()),
        protocol: "TCP".into(),
        port: 8080,
        service_port: 80,
        app_protocol: None,
    };
    let endpoint = |a: &&str| Endpoint { addresses: vec![(*a).into()], ..Endpoint::default() };
    SlicePayload {
        address_type: "IPv4".into(),
        ports: vec![port],
        endpoints: addresses.iter().map(endpoint).collect(),
    }
}

fn record(cluster: &str) -> String {
    name::slice_export(cluster, &service(), "web-x")
}

/// An import of `exporters`, each with one slice of one endpoint.
fn entry(exporters: &[&str]) -> ServiceEntry {
    let slice = |c: &&str| ((*c).to_owned(), [(record(c), Arc::new(payload(&["10.0.0.1"])))].into());
    with(ServiceEntry::default(), |entry| {
        entry.leader_import = Some(Arc::new(merged_import(exporters)));
        entry.peers = exporters.iter().map(slice).collect();
    })
}

/// What `us`, a cluster of these IP families, knows.
fn known(us: &str, families: &[String], entry: &ServiceEntry) -> Known {
    known_with(us, entry, Settings { families: families.to_vec(), ..Settings::default() })
}

fn plan(us: &str, entry: &ServiceEntry) -> Plan {
    desired(&known(us, &[], entry), &writers())
}

fn imports(us: &str, entry: &ServiceEntry) -> DesiredImport {
    imports_in(us, &[], entry)
}

fn imports_in(us: &str, families: &[String], entry: &ServiceEntry) -> DesiredImport {
    match desired(&known(us, families, entry), &writers()) {
        Plan::Import(import) => import,
        other => panic!("{other:?}"),
    }
}

fn carried_out(us: &str, entry: ServiceEntry) -> ServiceEntry {
    carried_out_in(us, &[], entry)
}

/// The entry after its plan has been carried out by an API server that gives out addresses.
fn carried_out_in(us: &str, families: &[String], mut entry: ServiceEntry) -> ServiceEntry {
    let known = known(us, families, &entry);
    match desired(&known, &writers()) {
        Plan::Nothing | Plan::Hold(_) => {}
        Plan::Remove => {
            entry.import = None;
            entry.derived = None;
            entry.imported_slices.clear();
        }
        Plan::Import(desired) => {
            let derived = (!desired.families.is_empty()).then(|| derived(&known, &desired));
            let derived = derived.map(with_addresses);
            let addresses = derived.iter().flat_map(|s| s.spec.addresses()).cloned().collect();
            let mut import = service_import(&known, &writers(), &desired, addresses);
            // A write sets the annotations it has and leaves the others.
            let noted = entry.import.take().and_then(|import| import.metadata.annotations.clone());
            let set = import.metadata.annotations.take().unwrap_or_default();
            import.metadata.annotations = Some(noted.unwrap_or_default().into_iter().chain(set).collect());
            entry.import = Some(Arc::new(by_us(import)));
            entry.derived = derived.map(|derived| Arc::new(by_us(derived)));
            entry.accepted = desired.accepted.clone().or(entry.accepted.take());
            entry.imported_slices.retain(|name, _| !desired.leftover.contains(name));
            let slices = desired.slices.into_iter().chain(desired.held);
            entry.imported_slices.extend(slices.map(|slice| (slice.name_any(), Arc::new(by_us(slice)))));
        }
    }
    entry
}

/// As an API server returns what we wrote.
fn by_us<K: kube::Resource>(mut object: K) -> K {
    let manager = Some(label::MEMBER.to_owned());
    object.meta_mut().managed_fields =
        Some(vec![ManagedFieldsEntry { manager, ..ManagedFieldsEntry::default() }]);
    object
}

/// As somebody else would have made it.
fn not_by_us(metadata: &mut kube::core::ObjectMeta) {
    (metadata.labels, metadata.managed_fields) = (None, None);
}

/// As an API server completes it.
fn with_addresses(mut service: view::Service) -> view::Service {
    if !service.spec.is_headless() {
        let given = service.spec.cluster_ips.len();
        let more = service.spec.ip_families.iter().skip(given);
        let more = more.map(|family| if family == "IPv6" { "fd00:96::9" } else { "10.96.0.9" }.to_owned());
        service.spec.cluster_ips.extend(more.collect::<Vec<_>>());
        service.spec.cluster_ip = service.spec.cluster_ips.first().cloned();
    }
    service
}

#[test]
fn r52_r53_r54_an_import_is_a_service_slices_and_a_service_import() {
    let entry = carried_out("west", entry(&["east"]));
    let derived = entry.derived.as_deref().unwrap();
    assert_eq!(derived.name_any(), "antrea-mc-web");
    assert_eq!(derived.annotations()["multicluster.antrea.io/imported-service"], "true");
    let import = entry.import.as_deref().unwrap();
    assert_eq!(import.annotations()["multicluster.kubernetes.io/derived-service"], "antrea-mc-web");
    let import = import.spec.0.as_ref().unwrap();
    assert_eq!(
        (import.ips.as_slice(), import.ip_families.as_slice()),
        (&["10.96.0.9".to_owned()][..], &["IPv4".to_owned()][..])
    );
    let slice = entry.imported_slices.values().next().unwrap();
    assert_eq!(slice.labels()["kubernetes.io/service-name"], "antrea-mc-web");
    assert_eq!(slice.labels()["multicluster.kubernetes.io/service-name"], "web");
    assert_eq!(slice.labels()["multicluster.kubernetes.io/source-cluster"], "east");
    let port = &slice.ports[0];
    assert_eq!(
        (port.name.as_deref(), port.port),
        (Some("http"), Some(8080)),
        "the merged name, the endpoint's number"
    );
}

#[test]
fn r42_a_port_the_exporter_does_not_serve_is_not_reached_there() {
    let mut entry = entry(&["east"]);
    Arc::make_mut(entry.leader_import.as_mut().unwrap()).spec.service_import.as_mut().unwrap().spec.ports =
        vec![merged_port(None, 81)];
    assert!(imports("west", &entry).slices.is_empty());
}

#[test]
fn our_own_endpoints_do_not_take_the_detour() {
    let mut own = exporting::entry();
    own.leader_import = Some(Arc::new(merged_import(&["east"])));
    let slices = imports("east", &own).slices;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].endpoints.len(), 2);
    let place = |endpoint: &view::Endpoint| (endpoint.node_name.clone(), endpoint.target_ref.is_some());
    assert!(
        slices[0].endpoints.iter().all(|endpoint| place(endpoint) == (Some("n1".into()), true)),
        "{slices:?}"
    );
    let elsewhere = imports("west", &entry(&["east"])).slices;
    assert!(elsewhere[0].endpoints.iter().all(|endpoint| place(endpoint) == (None, false)), "{elsewhere:?}");
    own.service = None;
    assert!(
        imports("east", &carried_out("east", own)).slices.is_empty(),
        "true at once, whatever the leader says"
    );
}

#[test]
fn r13_r33_one_exporter_leaves_and_the_rest_stays() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    assert_eq!(entry.imported_slices.len(), 2);
    entry.leader_import = Some(Arc::new(merged_import(&["north"])));
    let import = imports("west", &entry);
    assert_eq!((import.leftover.len(), import.clusters.as_slice()), (1, &["north".to_owned()][..]));
    Arc::make_mut(entry.leader_import.as_mut().unwrap()).spec.exporters.as_mut().unwrap()[0].refused =
        Some(Objection::default());
    assert_eq!(carried_out("west", entry).imported_slices.len(), 0, "refused ones take no part");
}

#[test]
fn a9_a_port_that_is_renamed_has_endpoints_under_both_names_until_its_service_has_the_new_one() {
    let named = |ports: Vec<mcs::ServicePort>| {
        let mut entry = entry(&["east"]);
        Arc::make_mut(entry.leader_import.as_mut().unwrap())
            .spec
            .service_import
            .as_mut()
            .unwrap()
            .spec
            .ports = ports;
        entry
    };
    let entry = carried_out("west", named(vec![merged_port(None, 80)]));
    let after = vec![merged_port(Some("a"), 80), merged_port(Some("b"), 81)];
    let renamed = with(entry, |entry| entry.leader_import = named(after).leader_import.clone());
    let mut import = imports("west", &renamed);
    assert!(keep_old_names(&known("west", &[], &renamed), &mut import));
    let names = |import: &DesiredImport| {
        let ports = import.slices[0].ports.iter();
        ports.map(|port| (port.name.clone().unwrap(), port.port.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(names(&import), [("a".to_owned(), 8080), (String::new(), 8080)]);
    let done = carried_out("west", renamed);
    let mut import = imports("west", &done);
    assert!(!keep_old_names(&known("west", &[], &done), &mut import));
    assert_eq!(names(&import), [("a".to_owned(), 8080)]);
}

#[test]
fn a_lost_service_asks_for_its_old_address() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.derived = None;
    let import = imports("west", &entry);
    assert_eq!(derived(&known("west", &[], &entry), &import).spec.cluster_ip.as_deref(), Some("10.96.0.9"));
}

#[test]
fn an_import_that_comes_back_asks_for_its_old_address() {
    let entry = entry(&["east"]);
    let mut import = imports("west", &entry);
    let ips = vec!["10.96.0.7".to_owned()];
    import.returning = Some(Returning { ips, is_fresh: false });
    let asked = |entry: &ServiceEntry, import: &DesiredImport| {
        derived(&known("west", &[], entry), import).spec.cluster_ip
    };
    assert_eq!(asked(&entry, &import).as_deref(), Some("10.96.0.7"));
    let there = carried_out("west", entry);
    assert_eq!(asked(&there, &import).as_deref(), Some("10.96.0.9"), "an address that is there stays");
}

#[test]
fn a_service_gets_what_is_exported_but_for_what_tools_act_on() {
    let mut entry = entry(&["east"]);
    let exported = MergedMetadata {
        labels: [
            ("team", "shop"),
            ("app.kubernetes.io/instance", "shop"),
            (label::MCS_SERVICE_NAME, "other"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        annotations: [("argocd.argoproj.io/tracking-id".to_owned(), "x".to_owned())].into(),
    };
    let import = Arc::make_mut(entry.leader_import.as_mut().unwrap());
    import.spec.service_import.as_mut().unwrap().metadata = Some(exported);
    let metadata = derived(&known("west", &[], &entry), &imports("west", &entry)).metadata;
    let labels = metadata.labels.unwrap();
    assert_eq!((labels["team"].as_str(), labels[label::MCS_SERVICE_NAME].as_str()), ("shop", "web"));
    assert!(!labels.contains_key("app.kubernetes.io/instance"));
    let annotations = metadata.annotations.unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), [label::IMPORTED_SERVICE, label::EXPORTED_METADATA]);
    assert_eq!(annotations[label::EXPORTED_METADATA], r#"{"annotations":[],"labels":["team"]}"#);
}

#[test]
fn a_copy_of_an_import_is_nobodys_until_somebody_exports_the_service() {
    let mut here = carried_out("west", entry(&["east"]));
    let gone = |entry: &mut ServiceEntry| {
        (entry.leader_import, entry.accepted) = (None, None);
        entry.peers.clear();
    };
    let mut copy = here.clone();
    gone(&mut copy);
    for slice in copy.imported_slices.values_mut() {
        Arc::make_mut(slice).metadata.managed_fields = None;
    }
    Arc::make_mut(copy.import.as_mut().unwrap()).metadata.managed_fields = None;
    Arc::make_mut(copy.derived.as_mut().unwrap()).metadata.managed_fields = None;
    assert_eq!(plan("west", &copy), Plan::Nothing);
    assert_eq!(unmade(&copy).len(), 3);
    copy.leader_import = here.leader_import.clone();
    assert!(
        matches!(plan("west", &copy), Plan::Import(import) if !import.taken),
        "it becomes the import's own"
    );
    gone(&mut here);
    assert!(unmade(&here).is_empty() && plan("west", &here) != Plan::Nothing, "ours");
}

#[test]
fn somebody_elses_service_is_left_alone() {
    let mut entry = carried_out("west", entry(&["east"]));
    not_by_us(&mut Arc::make_mut(entry.derived.as_mut().unwrap()).metadata);
    let import = imports("west", &entry);
    assert!(import.taken && import.slices.is_empty());
    assert_eq!(import.leftover.len(), 1);
    assert_eq!(ready("web", &import, &Refusals::default()).reason, "ServiceNameTaken");
}

#[test]
fn near_endpoints_are_preferred_by_hints_of_ours() {
    let hinted = |distribution: Option<&str>, us: &str| {
        let mut both = entry(&["east"]);
        let theirs = both.peers.get_mut("east").unwrap().get_mut(&record("east")).unwrap();
        Arc::make_mut(theirs).endpoints[0].zone = Some("z1".into());
        if us == "east" {
            both = with(exporting::entry(), |entry| entry.leader_import = both.leader_import.clone());
            Arc::make_mut(both.slices.get_mut("web-x").unwrap()).endpoints[0].shared.zone = Some("z1".into());
        }
        let merged =
            Arc::make_mut(both.leader_import.as_mut().unwrap()).spec.service_import.as_mut().unwrap();
        merged.spec.traffic_distribution = distribution.map(str::to_owned);
        let slice = imports(us, &both).slices.remove(0);
        let zoned = slice.endpoints.into_iter().find(|endpoint| endpoint.shared.zone.is_some());
        serde_json::to_value(zoned.unwrap().hints).unwrap()
    };
    assert_eq!(hinted(None, "west"), json!(null));
    for same_zone in ["PreferClose", "PreferSameZone"] {
        assert_eq!(hinted(Some(same_zone), "west"), json!({"forZones": [{"name": "z1"}]}));
    }
    let (here, there) = (hinted(Some("PreferSameNode"), "east"), hinted(Some("PreferSameNode"), "west"));
    assert_eq!(here["forNodes"], json!([{"name": "n1"}]));
    assert_eq!(there["forNodes"], json!([{"name": "east.elsewhere.multicluster.freeport.dev"}]));
}

#[test]
fn a_slice_no_api_server_would_take_is_passed_over() {
    let slice = |payload: SlicePayload| -> PeerSlice {
        let labels = json!({"sourceClusterID": "east", "sourceNamespace": "shop", "sourceName": "web"});
        let meta = json!({"name": record("east"), "namespace": "cs", "labels": labels});
        let spec = json!({"kind": "EndpointSlice", "clusterID": "east", "namespace": "shop", "name": "web",
            "endpointSlice": payload});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    };
    assert!(slice(payload(&["10.0.0.1"])).payload.is_some());
    assert!(slice(payload(&["not an address"])).payload.is_none());
}
