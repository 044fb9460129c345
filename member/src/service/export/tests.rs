mod edits;

use std::{collections::BTreeMap, sync::Arc};

use api::{label, membership::Wire, view::Lenient};
use kit::objects::Change;
use serde_json::{Value, json};

use super::*;
use crate::{
    feature::fixture::access,
    identity::Identity,
    service::{
        attempts::breaks_at,
        index::{
            cluster::{Cluster, EndpointIp},
            entry::ServiceEntry,
            limits::Limits,
            links::Links,
            reports::Reports,
            view::Namespace,
        },
        offer::{
            fixture::{Settings, entry, export, known, known_with, local_service, service, slice, with},
            offered,
        },
    },
};

fn desired(entry: &ServiceEntry, for_antrea: bool) -> Vec<Step> {
    super::desired(&known("east", entry), for_antrea)
}

fn invalid(entry: &ServiceEntry, settings: Settings) -> &'static str {
    offered(&known_with("east", entry, settings)).invalid.unwrap().reason
}

/// The entry after its steps have been carried out.
fn carried_out(mut entry: ServiceEntry) -> ServiceEntry {
    for step in desired(&entry, false) {
        match step {
            Step::Put { want, .. } if want.metadata.name.as_ref().unwrap().ends_with("service") => {
                entry.own_service = Some(Arc::new(want));
            }
            Step::Put { want, .. } => {
                drop(entry.own_slices.insert(want.metadata.name.clone().unwrap(), Arc::new(want)))
            }
            Step::Remove { have, .. } | Step::Delete { have } => {
                drop(entry.own_slices.remove(have.metadata.name.as_ref().unwrap()))
            }
        }
    }
    entry
}

fn reason(change: impl FnOnce(&mut Value)) -> &'static str {
    let entry = with(entry(), |entry| entry.service = Some(Arc::new(local_service(change))));
    invalid(&entry, Settings::default())
}

#[test]
fn the_records_are_those_of_the_wire_contract() {
    let written = carried_out(entry());
    let golden: Value =
        serde_json::from_str(include_str!("../../../../api/tests/golden/export-service.json")).unwrap();
    let record = serde_json::to_value(&**written.own_service.as_ref().unwrap()).unwrap();
    assert_eq!(record["metadata"], golden["metadata"]);
    assert_eq!(record["spec"]["service"]["exportedAt"], golden["spec"]["service"]["exportedAt"]);
    assert_eq!(record["spec"]["clusterID"], "east");

    let slice = written.own_slices.values().next().unwrap();
    let payload = slice.spec.0.as_ref().unwrap().endpoint_slice.as_ref().unwrap();
    let addresses: Vec<_> = payload.endpoints.iter().map(|e| e.addresses[0].as_str()).collect();
    assert_eq!(addresses, ["10.1.0.7", "10.1.0.8"], "in an order of their own, not the API server's");
    assert_eq!(payload.ports.len(), 1, "only ports of the Service travel");
    assert_eq!((payload.ports[0].port, payload.ports[0].service_port), (8080, 80));
}

#[test]
fn a_second_pass_has_nothing_to_say() {
    let written = carried_out(entry());
    for step in desired(&written, false) {
        let Step::Put { have, want } = step else { panic!("{step:?}") };
        assert_eq!(have, Some(want));
    }
}

#[test]
fn what_cannot_be_exported_says_why() {
    assert_eq!(reason(|s| s["spec"]["type"] = json!("ExternalName")), "InvalidServiceType");
    assert_eq!(reason(|s| s["spec"]["ports"] = json!([])), "InvalidServiceType");
    let imported = json!({"multicluster.antrea.io/imported-service": "true"});
    assert_eq!(reason(|s| s["metadata"]["annotations"] = imported), "ImportedService");
    let none = with(entry(), |entry| entry.service = None);
    assert_eq!(invalid(&none, Settings::default()), "NoService");
}

#[test]
fn a_leader_of_antreas_has_neither_headless_imports_nor_ipv6() {
    for change in [json!({"clusterIP": "None"}), json!({"ipFamilies": ["IPv6"]})] {
        let change = |service: &mut Value| {
            service["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone())
        };
        let entry = with(entry(), |entry| entry.service = Some(Arc::new(local_service(change))));
        assert_eq!(offered(&known("east", &entry)).invalid, None);
        let settings = Settings { antrea_leads: true, ..Settings::default() };
        assert_eq!(invalid(&entry, settings), "InvalidServiceType");
    }
}

#[test]
fn r7_nothing_is_exported_from_an_excluded_namespace_and_what_was_is_withdrawn() {
    let written = carried_out(entry());
    let us = Identity { cluster: "east".into(), common_area: "clusterset-demo".into() };
    let cluster = Cluster {
        us,
        endpoint_ip: EndpointIp::default(),
        endpoints_objects: false,
        wire: Wire::Freeport,
        families: vec![],
        links: Links::default(),
        limits: Limits::default(),
        lacking: None,
        reports: Reports::default(),
    };
    let knowledge = Knowledge::new(cluster);
    let namespace = |labels: Value| -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": "shop", "labels": labels}})).unwrap()
    };
    knowledge.services.change(Change::Apply((**written.export.as_ref().unwrap()).clone()));
    for (labels, is_excluded) in [
        (json!({label::EXPORT: "false"}), true),
        (json!({label::EXPORT: "true"}), false),
        (Value::Null, false),
    ] {
        knowledge.change_namespaces(Change::Apply(namespace(labels)));
        assert_eq!(knowledge.known(&service()).unwrap().namespace.excluded, is_excluded);
    }

    let entry = with(written, |entry| entry.service = None);
    let excluded = Settings { is_excluded: true, ..Settings::default() };
    assert_eq!(invalid(&entry, excluded.clone()), "NamespaceExcluded", "before what else may be wrong");
    let steps = super::desired(&known_with("east", &entry, excluded.clone()), false);
    let withdrawn = |step: &Step| match step {
        Step::Put { want, .. } => want.spec.0.as_ref().unwrap().service.as_ref().is_some_and(|s| s.withdrawn),
        Step::Remove { .. } | Step::Delete { .. } => true,
    };
    assert!(steps.len() == 2 && steps.iter().all(withdrawn), "{steps:?}");
    let nobody_asked =
        with(entry, |entry| (entry.export, entry.unexported) = (None, Some(Unexported::Decided)));
    let nobody_asked = known_with("east", &nobody_asked, excluded);
    let offered = offered(&nobody_asked);
    assert!(offered.offer.is_none() && offered.invalid.is_none());
}

#[test]
fn unexporting_withdraws_the_service_which_speaks_for_its_slices() {
    let mut written = carried_out(entry());
    (written.export, written.unexported) = (None, Some(Unexported::Decided));
    let steps = desired(&written, false);
    let Step::Put { want, .. } = &steps[0] else { panic!() };
    assert!(want.spec.0.as_ref().unwrap().service.as_ref().unwrap().withdrawn);
    assert!(matches!(steps[1], Step::Delete { .. }));

    let mut gone = carried_out(written);
    assert!(gone.own_slices.is_empty());
    let Step::Put { have, want } = &desired(&gone, false)[0] else { panic!() };
    assert_eq!(have.as_ref(), Some(want), "said once, then the leader's turn");
    gone.own_service = None;
    assert!(desired(&gone, false).is_empty());
}

#[test]
fn an_export_that_vanished_with_its_crd_goes_on() {
    let mut written = carried_out(entry());
    for why in [None, Some(Unexported::Vanished)] {
        (written.export, written.unexported) = (None, why);
        assert_eq!(carried_out(written.clone()), written, "nobody decided: {why:?}");
    }
    written.slices.clear();
    let steps = desired(&written, false);
    let Step::Remove { emptied, .. } = &steps[1] else { panic!("its endpoints are followed") };
    assert_eq!(emptied.spec.0.as_ref().unwrap().endpoint_slice.as_ref().unwrap().endpoints, vec![]);
}

#[test]
fn a7_what_a_restored_cluster_does_not_have_stays_exported_until_it_is_there_again() {
    let mut written = carried_out(entry());
    let lost = |service| {
        let mut entry = written.clone();
        (entry.export, entry.unexported, entry.service) = (None, Some(Unexported::Lost), service);
        entry.slices.clear();
        desired(&entry, false)
    };
    assert!(lost(None).is_empty(), "not even its endpoints go");
    assert!(matches!(lost(written.service.clone())[1], Step::Remove { .. }), "its endpoints are followed");
    (written.export, written.unexported, written.service) = (None, Some(Unexported::Decided), None);
    assert_eq!(desired(&written, false).len(), 2, "somebody deleted both");
}

#[test]
fn a_record_that_does_not_decode_is_put_right() {
    let mut written = carried_out(entry());
    Arc::make_mut(written.own_service.as_mut().unwrap()).spec = Lenient(Err("broken".into()));
    let spec = |entry: ServiceEntry| carried_out(entry).own_service.as_ref().unwrap().spec.clone();
    assert_eq!(spec(written), spec(entry()));
}

fn all_endpoints(steps: &[Step]) -> Vec<&Step> {
    let of = |step: &&Step| {
        let (Step::Put { want: record, .. }
        | Step::Remove { emptied: record, .. }
        | Step::Delete { have: record }) = step;
        record.metadata.name.as_deref() == Some("east-shop-web-endpoints")
    };
    steps.iter().filter(of).collect()
}

#[test]
fn all_endpoints_are_written_in_one_record_while_somebody_reads_it() {
    let mut entry = entry();
    let steps = desired(&entry, true);
    let [Step::Put { have: None, want }] = all_endpoints(&steps)[..] else { panic!("{steps:?}") };
    let golden: Value =
        serde_json::from_str(include_str!("../../../../api/tests/golden/export-endpoints.json")).unwrap();
    let record = serde_json::to_value(want).unwrap();
    assert_eq!((&record["metadata"], &record["spec"]), (&golden["metadata"], &golden["spec"]));

    entry.own_endpoints = Some(Arc::new(want.clone()));
    let steps = desired(&entry, true);
    let [Step::Put { have, want }] = all_endpoints(&steps)[..] else { panic!("{steps:?}") };
    assert_eq!(have.as_ref(), Some(want), "a second pass has nothing to say");

    let steps = desired(&entry, false);
    let [Step::Remove { emptied, .. }] = all_endpoints(&steps)[..] else { panic!("{steps:?}") };
    assert_eq!(emptied.spec.0.as_ref().unwrap().endpoints, Some(EndpointsPayload::default()));
    entry.own_endpoints = None;
    assert!(all_endpoints(&desired(&entry, false)).is_empty());
}

#[test]
fn an_export_without_endpoints_says_so_in_the_record_of_all() {
    let entry = with(entry(), |entry| entry.slices.clear());
    let steps = desired(&entry, true);
    let [Step::Put { want, .. }] = all_endpoints(&steps)[..] else { panic!("{steps:?}") };
    assert_eq!(want.spec.0.as_ref().unwrap().endpoints, Some(EndpointsPayload::default()));
}

/// What is tried to write the records of an export with two slices, and whether all was done.
async fn exported(broken: Option<&str>) -> (Vec<String>, bool) {
    let knowledge = Knowledge::new(std::sync::Arc::unwrap_or_clone(known("east", &entry()).cluster));
    let mut second = slice(&["10.1.0.9"]);
    second.metadata.name = Some("web-y".into());
    knowledge.services.change(Change::Apply(export()));
    knowledge.services.change(Change::Apply(local_service(|_| {})));
    knowledge.services.change(Change::Reset(vec![slice(&["10.1.0.7"]), second]));
    let namespace = json!({"metadata": {"name": "shop"}});
    knowledge.change_namespaces(Change::Apply(serde_json::from_value(namespace).unwrap()));
    let ((client, tried), access) = (breaks_at(broken), access());
    let writer = Writer::new(client.clone(), "test", "leader", access.env.metrics);
    let antrea = Members::default();
    let exporting = Exporting {
        knowledge,
        antrea,
        crd: ExportCrd::new(client),
        home: access.home,
        writer,
        events: access.env.events,
    };
    let done = exporting.reconcile(service()).await;
    (tried.with(std::mem::take), done.is_ok())
}

/// Issue 14, A6.
#[tokio::test]
async fn a6_a_record_that_is_not_written_does_not_keep_the_others_from_being_written() {
    let (all, is_done) = exported(None).await;
    assert!(is_done && all.len() == 3, "{all:?}");
    for broken in &all {
        let (tried, is_done) = exported(Some(broken)).await;
        assert_eq!(tried, all, "{broken} fails");
        assert!(!is_done, "{broken} is to be tried again");
    }
}
