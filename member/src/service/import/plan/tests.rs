use api::{
    condition::Status,
    mcs,
    resource_import::{MergedService, Objection, ResourceImportSpec},
    slice::{Endpoint, SlicePayload, SlicePort as Port},
};
use kit::{
    index::{Index, Part},
    objects::Change,
};
use proptest::prelude::*;
use serde_json::json;

mod reach;

use super::*;
use crate::service::{
    entry::HubRecord,
    export::tests as exporting,
    import::{
        object::{derived, service_import},
        verdict::{Refusals, ready},
    },
    view::{self, HubImport, PeerSlice},
};

fn service() -> ServiceName {
    ServiceName::new("shop", "web")
}

fn merged_port(name: Option<&str>, port: i32) -> mcs::ServicePort {
    mcs::ServicePort { name: name.map(str::to_owned), protocol: Some("TCP".into()), port, app_protocol: None }
}

fn hub_import(exporters: &[&str]) -> HubRecord {
    let exporters =
        exporters.iter().map(|c| Exporter { cluster_id: (*c).into(), ..Exporter::default() }).collect();
    let spec =
        ServiceImportSpec { ports: vec![merged_port(Some("http"), 80)], ..ServiceImportSpec::default() };
    let spec = ResourceImportSpec {
        exporters: Some(exporters),
        service_import: Some(MergedService { spec, ..MergedService::default() }),
        ..ResourceImportSpec::default()
    };
    HubRecord { uid: "import-1".into(), spec }
}

fn hub() -> Hub {
    Hub { uid: "hub-1".into(), ..Hub::default() }
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
    let slice = |c: &&str| ((*c).to_owned(), [(record(c), payload(&["10.0.0.1"]))].into());
    ServiceEntry {
        hub_import: Some(hub_import(exporters)),
        peers: exporters.iter().map(slice).collect(),
        ..ServiceEntry::default()
    }
}

fn realised(us: &str, entry: &ServiceEntry) -> Realise {
    match desired(us, &service(), &hub(), entry) {
        Plan::Realise(realise) => realise,
        other => panic!("{other:?}"),
    }
}

/// The entry after its plan has been carried out by an API server that gives out addresses.
fn carried_out(us: &str, mut entry: ServiceEntry) -> ServiceEntry {
    match desired(us, &service(), &hub(), &entry) {
        Plan::Nothing | Plan::Hold(_) => {}
        Plan::Remove => {
            entry.import = None;
            entry.derived = None;
            entry.imported_slices.clear();
        }
        Plan::Realise(realise) => {
            let derived = (!realise.families.is_empty()).then(|| derived(&service(), &entry, &realise));
            let derived = derived.map(with_addresses);
            let addresses = derived.iter().flat_map(|s| s.spec.addresses()).cloned().collect();
            let mut import = service_import(&service(), &hub(), &entry, &realise, addresses);
            // A write sets the annotations it has and leaves the others.
            let noted = entry.import.take().and_then(|import| import.metadata.annotations);
            import.metadata.annotations = import.metadata.annotations.or(noted);
            entry.import = Some(import);
            entry.derived = derived;
            entry.accepted = realise.accepted.clone().or(entry.accepted);
            entry.imported_slices.retain(|name, _| !realise.leftover.contains(name));
            entry.imported_slices.extend(realise.slices.into_iter().map(|slice| (slice.name_any(), slice)));
        }
    }
    entry
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
    let derived = entry.derived.as_ref().unwrap();
    assert_eq!(derived.name_any(), "antrea-mc-web");
    assert_eq!(derived.annotations()["multicluster.antrea.io/imported-service"], "true");
    let import = entry.import.as_ref().unwrap().spec.0.as_ref().unwrap();
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
    entry.hub_import.as_mut().unwrap().spec.service_import.as_mut().unwrap().spec.ports =
        vec![merged_port(None, 81)];
    assert!(realised("west", &entry).slices.is_empty());
}

#[test]
fn our_own_endpoints_do_not_take_the_detour() {
    let mut own = exporting::entry();
    own.hub_import = Some(hub_import(&["east"]));
    let slices = realised("east", &own).slices;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].endpoints.len(), 2);
    let place = |endpoint: &view::Endpoint| (endpoint.node_name.clone(), endpoint.target_ref.is_some());
    assert!(
        slices[0].endpoints.iter().all(|endpoint| place(endpoint) == (Some("n1".into()), true)),
        "{slices:?}"
    );
    let elsewhere = realised("west", &entry(&["east"])).slices;
    assert!(elsewhere[0].endpoints.iter().all(|endpoint| place(endpoint) == (None, false)), "{elsewhere:?}");
    own.service = None;
    assert!(
        realised("east", &carried_out("east", own)).slices.is_empty(),
        "true at once, whatever the leader says"
    );
}

#[test]
fn r13_r33_one_exporter_leaves_and_the_rest_stays() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    assert_eq!(entry.imported_slices.len(), 2);
    entry.hub_import = Some(hub_import(&["north"]));
    let realise = realised("west", &entry);
    assert_eq!((realise.leftover.len(), realise.clusters.as_slice()), (1, &["north".to_owned()][..]));
    entry.hub_import.as_mut().unwrap().spec.exporters.as_mut().unwrap()[0].refused =
        Some(Objection::default());
    assert_eq!(carried_out("west", entry).imported_slices.len(), 0, "refused ones take no part");
}

#[test]
fn said_removal_is_believed_at_once() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.peers.get_mut("east").unwrap().insert(record("east"), payload(&[]));
    let realise = realised("west", &entry);
    assert_eq!((realise.leftover.len(), realise.doubts.len()), (1, 0), "an emptied slice");
    entry.hub_import = Some(hub_import(&[]));
    assert_eq!(desired("west", &service(), &hub(), &entry), Plan::Remove);
    let entry = carried_out("west", entry);
    assert_eq!(desired("west", &service(), &hub(), &entry), Plan::Nothing);
}

#[test]
fn what_vanishes_unsaid_stays_until_it_is_confirmed() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.peers.clear();
    let realise = realised("west", &entry);
    assert_eq!(
        (realise.leftover.len(), realise.doubts),
        (
            0,
            vec![Doubt::Slices {
                cluster: "east".into(),
                missing: entry.imported_slices.keys().cloned().collect()
            }]
        )
    );
    let mut confirmed = entry.clone();
    confirmed.slices_gone.extend(entry.imported_slices.keys().cloned());
    let realise = realised("west", &confirmed);
    assert_eq!((realise.leftover.len(), realise.doubts.len()), (1, 0));

    entry.hub_import = None;
    let realise = realised("west", &entry);
    assert!(realise.doubts.contains(&Doubt::Import) && realise.doubts.contains(&part("east")));
    assert_eq!(carried_out("west", entry.clone()), entry, "nothing changes meanwhile");
    entry.import_gone = true;
    assert!(!realised("west", &entry).doubts.contains(&Doubt::Import), "the leader vouched");
    assert_eq!(carried_out("west", entry.clone()), entry, "but east did not");
    entry.parts_gone.insert("east".into());
    assert_eq!(desired("west", &service(), &hub(), &entry), Plan::Remove);
}

fn part(cluster: &str) -> Doubt {
    Doubt::Part { cluster: cluster.into() }
}

#[test]
fn another_import_is_measured_before_it_is_believed() {
    let both = carried_out("west", entry(&["east", "north"]));
    let mut replaced = both.clone();
    replaced.hub_import = Some(HubRecord { uid: "import-2".into(), ..hub_import(&["north"]) });
    let realise = realised("west", &replaced);
    assert_eq!((realise.clusters.len(), realise.doubts, realise.accepted), (2, vec![part("east")], None));
    assert_eq!(ready("web", &realised("west", &replaced), &Refusals::default()).status, Status::True);
    let held = carried_out("west", replaced.clone());
    assert_eq!(held.imported_slices, both.imported_slices);
    assert_eq!(belief::noted(&held), Some("hub-1"), "the hub is the same");

    replaced.parts_gone.insert("east".into());
    let settled = carried_out("west", replaced);
    assert_eq!((settled.imported_slices.len(), belief::noted(&settled)), (1, Some("hub-1")));

    let mut whole = both;
    whole.hub_import = Some(HubRecord { uid: "import-2".into(), ..hub_import(&["east", "north"]) });
    assert_eq!(realised("west", &whole).accepted.as_deref(), Some("import-2"));
}

#[test]
fn a_part_that_is_missing_keeps_the_ports_it_needs() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    let mut other = HubRecord { uid: "import-2".into(), ..hub_import(&["north"]) };
    other.spec.service_import.as_mut().unwrap().spec.ports = vec![merged_port(Some("other"), 81)];
    entry.hub_import = Some(other);
    assert_eq!(realised("west", &entry).merged.ports[0].port, 80);
}

#[test]
fn our_own_part_stays_while_a_new_leader_has_not_heard_of_it() {
    let mut own = exporting::entry();
    own.hub_import = Some(hub_import(&["east"]));
    let mut own = carried_out("east", own);
    own.hub_import = Some(HubRecord { uid: "import-2".into(), ..hub_import(&["north"]) });
    assert_eq!(realised("east", &own).doubts, vec![part("east")]);
    own.hub_import = None;
    assert_eq!(realised("east", &own).slices.len(), 1);
    own.export = None;
    assert_eq!(realised("east", &own).slices.len(), 0, "ours to say");
}

#[test]
fn after_a_restore_the_old_word_of_a_writer_changes_nothing() {
    let before = carried_out("west", entry(&["east", "north"]));
    let mut restored = ServiceEntry { accepted: None, ..before.clone() };
    restored.hub_import = Some(hub_import(&["north"]));
    restored.peers.get_mut("north").unwrap().insert(record("north"), payload(&[]));
    let all = [name::LEADER_LEASE.to_owned(), name::member_lease("north")];
    let outdated =
        |writers: &[String]| Hub { restored: true, outdated: writers.iter().cloned().collect(), ..hub() };
    let plan = |hub: &Hub, entry: &ServiceEntry| match desired("west", &service(), hub, entry) {
        Plan::Realise(realise) => realise,
        other => panic!("{other:?}"),
    };
    let realise = plan(&outdated(&all), &restored);
    assert_eq!((realise.clusters.len(), realise.leftover.len(), realise.accepted), (2, 0, None));
    let realise = plan(&outdated(&[]), &restored);
    assert_eq!(
        (realise.leftover.len(), realise.kept.len()),
        (1, 1),
        "north emptied its slice, east is missing"
    );
    let noted = service_import(&service(), &outdated(&[]), &restored, &realise, vec![]);
    assert_eq!(noted.annotations()[label::HUB], "", "measured after a restart as well");
}

#[test]
fn a_lost_service_asks_for_its_old_address() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.derived = None;
    let realise = realised("west", &entry);
    assert_eq!(derived(&service(), &entry, &realise).spec.cluster_ip.as_deref(), Some("10.96.0.9"));
}

#[test]
fn somebody_elses_service_is_left_alone() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.derived.as_mut().unwrap().metadata.labels = None;
    let realise = realised("west", &entry);
    assert!(realise.taken && realise.slices.is_empty());
    assert_eq!(realise.leftover.len(), 1);
    assert_eq!(ready("web", &realise, &Refusals::default()).reason, "ServiceNameTaken");
}

#[test]
fn near_endpoints_are_preferred_by_hints_of_ours() {
    let hinted = |distribution: Option<&str>, us: &str| {
        let mut both = entry(&["east"]);
        both.peers.get_mut("east").unwrap().get_mut(&record("east")).unwrap().endpoints[0].zone =
            Some("z1".into());
        if us == "east" {
            both = ServiceEntry { hub_import: both.hub_import, ..exporting::entry() };
            both.slices.get_mut("web-x").unwrap().endpoints[0].shared.zone = Some("z1".into());
        }
        let merged = both.hub_import.as_mut().unwrap().spec.service_import.as_mut().unwrap();
        merged.spec.traffic_distribution = distribution.map(str::to_owned);
        let slice = realised(us, &both).slices.remove(0);
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
fn what_was_said_counts_even_if_the_deletion_comes_right_after() {
    let import = |exporters: serde_json::Value, version: &str| -> HubImport {
        let spec = json!({"kind": "ServiceImport", "namespace": "shop", "name": "web",
            "serviceImport": hub_import(&[]).spec.service_import, "exporters": exporters});
        let meta = json!({"name": "shop-web-service", "namespace": "cs", "uid": "import-1", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    };
    let mut known = Index::<ServiceName, ServiceEntry>::default();
    known.change(Change::Apply(import(json!([{"clusterID": "east"}]), "1")));
    let mut entry = carried_out("west", entry(&["east"]));
    known.change(Change::Apply(entry.import.clone().unwrap()));
    known.change(Change::Reset(entry.imported_slices.values().cloned().collect()));
    known.note(&service(), |known| known.accepted = entry.accepted.clone());
    known.change(Change::Apply(import(json!([]), "2")));
    known.change(Change::Remove(import(json!([]), "3")));
    let told = known.get(&service()).unwrap();
    (entry.import_gone, entry.parts_gone) = (told.import_gone, told.parts_gone.clone());
    entry.hub_import = None;
    assert_eq!(desired("west", &service(), &hub(), &entry), Plan::Remove);
}

#[test]
fn a_slice_no_api_server_would_take_is_passed_over() {
    let slice = |payload: SlicePayload| -> PeerSlice {
        let meta = json!({"name": record("east"), "namespace": "cs", "labels": {"sourceClusterID": "east"}});
        let spec = json!({"kind": "EndpointSlice", "clusterID": "east", "namespace": "shop", "name": "web",
            "endpointSlice": payload});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    };
    assert!(Part::<ServiceName, ServiceEntry>::key(&slice(payload(&["10.0.0.1"]))).is_some());
    assert!(Part::<ServiceName, ServiceEntry>::key(&slice(payload(&["not an address"]))).is_none());
}

proptest! {
    /// However events come, the same records give the same plan, and carrying it out leaves nothing to do.
    #[test]
    fn order_does_not_matter_and_a_second_pass_writes_nothing(
        slices in prop::collection::btree_map("[a-d]", 0..3usize, 0..4),
        order in any::<u64>(),
    ) {
        let exporters: Vec<&str> = slices.keys().map(String::as_str).collect();
        let import = json!({
            "metadata": {"name": name::service_import(&service()), "namespace": "cs", "resourceVersion": "1"},
            "spec": {"kind": "ServiceImport", "namespace": "shop", "name": "web",
                "serviceImport": {"spec": hub_import(&[]).spec.service_import.unwrap().spec},
                "exporters": hub_import(&exporters).spec.exporters},
        });
        let record = |(cluster, endpoints): (&String, &usize)| {
            let addresses: Vec<_> = (0..*endpoints).map(|n| format!("10.0.0.{n}")).collect();
            let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
            json!({
                "metadata": {"name": record(cluster), "namespace": "cs", "resourceVersion": "1",
                    "labels": {"sourceClusterID": cluster}},
                "spec": {"kind": "EndpointSlice", "clusterID": cluster, "namespace": "shop", "name": "web",
                    "endpointSlice": payload(&addresses)},
            })
        };
        let records: Vec<_> = slices.iter().map(record).collect();
        let known = |mut records: Vec<serde_json::Value>, import_first: bool| {
            let mut index = Index::<ServiceName, ServiceEntry>::default();
            let import = || Change::Apply(serde_json::from_value::<HubImport>(import.clone()).unwrap());
            if import_first { index.change(import()); }
            for record in records.drain(..) {
                index.change(Change::Apply(serde_json::from_value::<PeerSlice>(record).unwrap()));
            }
            if !import_first { index.change(import()); }
            index.get(&service()).cloned().unwrap_or_default()
        };
        let mut shuffled = records.clone();
        if !shuffled.is_empty() { let by = (order as usize) % shuffled.len(); shuffled.rotate_left(by); }
        let entry = known(records, true);
        prop_assert_eq!(desired("west", &service(), &hub(), &known(shuffled, order % 2 == 0)), desired("west", &service(), &hub(), &entry));

        let settled = carried_out("west", (*entry).clone());
        prop_assert_eq!(carried_out("west", settled.clone()), settled);
    }
}
