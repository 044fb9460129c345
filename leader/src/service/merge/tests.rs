use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use api::resource_export::{ServicePayload, can_be_written};
use http::{Request, Response};
use k8s_openapi::{api::core::v1::ServicePort as CorePort, apimachinery::pkg::apis::meta::v1::Time};
use kit::{index::Shared, objects::Change, watch::Latest};
use kube::{Client, client::Body};
use proptest::prelude::*;

use rules::merge::{Offer, merge};

use super::*;
use crate::{feature::fixture, service::index::judged::Judgement};

fn service() -> ServiceName {
    ServiceName::new("shop", "web")
}

fn offer(cluster: &str, exported_at: i64, ports: &[i32]) -> Offer {
    let exported_at = Some(Time(jiff::Timestamp::from_second(exported_at).unwrap()));
    let mut payload = ServicePayload { exported_at, ..ServicePayload::default() };
    let port = |port: &i32| CorePort { port: *port, protocol: Some("TCP".into()), ..CorePort::default() };
    payload.service_spec.ports = Some(ports.iter().map(port).collect());
    let metadata = ObjectMeta {
        name: Some(name::service_export(cluster, &service())),
        uid: Some(format!("uid-{cluster}")),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    Offer { metadata, payload }
}

fn entry(offers: &[(&str, i64, &[i32])]) -> ServiceEntry {
    let offers =
        offers.iter().map(|(c, at, ports)| ((*c).to_owned(), Arc::new(offer(c, *at, ports)))).collect();
    ServiceEntry { offers, ..ServiceEntry::default() }
}

/// The entry after its plan has been carried out.
fn carried_out(mut entry: ServiceEntry) -> ServiceEntry {
    if let Plan::Write { import: Some(spec), withdrawn, .. } = desired(&service(), &entry) {
        entry.offers.retain(|_, offer| !withdrawn.contains(&offer.metadata));
        let is_over = is_over(&spec);
        let import = Import { metadata: ObjectMeta::default(), spec: Lenient(Ok(spec)) };
        entry.import = (!is_over).then(|| Arc::new(import));
    }
    entry
}

fn spec(entry: &ServiceEntry) -> ResourceImportSpec {
    entry.import.as_ref().unwrap().spec.0.clone().unwrap()
}

fn exporters(spec: &ResourceImportSpec) -> Vec<&str> {
    spec.exporters.iter().flatten().map(|e| e.cluster_id.as_str()).collect()
}

#[test]
fn r34_r35_the_oldest_export_comes_first_and_all_are_told_where_they_differ() {
    let merged = spec(&carried_out(entry(&[("west", 1, &[80]), ("east", 2, &[81]), ("north", 1, &[82])])));
    assert_eq!(exporters(&merged), ["north", "west", "east"], "oldest first, then by ID");
    assert_eq!(merged.exported_by.as_deref(), Some("north, west, east"));
    assert_eq!(merged.service_import.unwrap().spec.ports[0].port, 82);
    for exporter in merged.exporters.unwrap() {
        assert_eq!(exporter.observed, format!("uid-{}/1", exporter.cluster_id));
        let [conflict] = exporter.conflicts.as_slice() else { panic!("{exporter:?}") };
        assert_eq!(conflict.reason, "PortConflict");
        assert!(conflict.message.contains("cluster north has the oldest export"), "{}", conflict.message);
    }
}

#[test]
fn a_withdrawal_shrinks_the_import_and_the_last_one_empties_it_before_it_goes() {
    let mut both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
    Arc::make_mut(both.offers.get_mut("east").unwrap()).payload.withdrawn = true;
    let mut one = carried_out(both);
    assert_eq!(exporters(&spec(&one)), ["west"]);
    assert!(!one.offers.contains_key("east"));
    Arc::make_mut(one.offers.get_mut("west").unwrap()).payload.withdrawn = true;
    let Plan::Write { import: Some(none), withdrawn, .. } = desired(&service(), &one) else { panic!() };
    assert_eq!(none.exporters, Some(vec![]));
    assert!(none.service_import.is_some(), "Antrea dereferences it");
    assert_eq!((withdrawn.len(), is_over(&none)), (1, true));
}

#[test]
fn an_import_that_nobody_exports_stays_as_long_as_somebody_is_evicted() {
    let mut one = carried_out(entry(&[("east", 1, &[80])]));
    let had = spec(&one);
    Arc::make_mut(one.offers.get_mut("east").unwrap()).payload.withdrawn = true;
    let Plan::Write { import: Some(mut none), .. } = desired(&service(), &one) else { panic!() };
    let evicted = [("east".to_owned(), jiff::Timestamp::UNIX_EPOCH)].into();
    none.evicted = lost(Some(&had), &none, &evicted);
    assert!(none.exporters == Some(vec![]) && !is_over(&none), "who was away learns of it");

    let import = Import { metadata: ObjectMeta::default(), spec: Lenient(Ok(none.clone())) };
    let kept = ServiceEntry { import: Some(Arc::new(import)), ..ServiceEntry::default() };
    let Plan::Write { import: Some(mut again), .. } = desired(&service(), &kept) else { panic!() };
    again.evicted = lost(Some(&none), &again, &evicted);
    assert_eq!(again, none, "a second look writes nothing");
    again.evicted = lost(Some(&none), &again, &BTreeMap::new());
    assert!(is_over(&again), "it is heard again, or has left");
}

fn missing(entry: &ServiceEntry) -> Vec<String> {
    let Plan::Write { missing, .. } = desired(&service(), entry) else { panic!() };
    missing.into_iter().collect()
}

#[test]
fn what_vanishes_without_being_withdrawn_keeps_its_part_until_it_is_confirmed_or_back() {
    let both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
    let mut vanished = both.clone();
    vanished.offers.remove("east");
    assert_eq!(missing(&vanished), ["east"]);
    assert_eq!(spec(&carried_out(vanished.clone())), spec(&both));
    // The others are merged meanwhile.
    let mut others = vanished.clone();
    others.offers.remove("west");
    others.offers.insert("north".into(), Arc::new(offer("north", 3, &[80])));
    others.confirmed_gone.insert("west".into());
    assert_eq!(exporters(&spec(&carried_out(others))), ["east", "north"]);
    vanished.offers.clear();
    assert_eq!(missing(&vanished), ["east", "west"], "however much vanished");
    assert_eq!(spec(&carried_out(vanished.clone())), spec(&both));

    vanished.offers = entry(&[("east", 1, &[80]), ("west", 2, &[80])]).offers;
    assert_eq!(spec(&carried_out(vanished)), spec(&both), "back");

    let mut confirmed = both;
    confirmed.offers.remove("east");
    confirmed.confirmed_gone.insert("east".into());
    assert_eq!(exporters(&spec(&carried_out(confirmed))), ["west"]);
}

#[test]
fn a_record_that_is_not_valid_keeps_its_part_and_holds_nobody_up() {
    let mut both = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
    both.offers.remove("east");
    both.refused.insert("east".into(), "r".into());
    both.offers.insert("north".into(), Arc::new(offer("north", 3, &[80])));
    let merged = spec(&carried_out(both));
    assert_eq!(exporters(&merged), ["east", "west", "north"]);
    assert_eq!(merged.exporters.unwrap()[0].observed, "uid-east/1", "the verdict on what it said before");

    let mut younger = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
    younger.offers.remove("west");
    younger.refused.insert("west".into(), "r".into());
    younger.offers.insert("east".into(), Arc::new(offer("east", 1, &[81])));
    assert_eq!(spec(&carried_out(younger)).service_import.unwrap().spec.ports[0].port, 81);

    let mut alone = entry(&[]);
    alone.refused.insert("east".into(), "r".into());
    assert_eq!(
        desired(&service(), &alone),
        Plan::Write { import: None, withdrawn: vec![], missing: BTreeSet::new() },
        "never had a part"
    );
}

/// Issue 14, A9: the ports of the others may go while one is refused.
#[test]
fn a9_ports_shrink_while_a_record_is_refused() {
    let ports = |entry: &ServiceEntry| -> Vec<i32> {
        spec(entry).service_import.unwrap().spec.ports.iter().map(|port| port.port).collect()
    };
    for (east, west) in [(1, 2), (2, 1)] {
        let mut entry = carried_out(entry(&[("east", east, &[80, 81]), ("west", west, &[82])]));
        Arc::make_mut(entry.offers.get_mut("west").unwrap()).payload.service_spec.ports =
            Some(named_ports(&[82, 83]));
        Arc::make_mut(entry.offers.get_mut("east").unwrap()).payload.service_spec.ports =
            Some(named_ports(&[80, 81]));
        let mut entry = carried_out(entry);
        assert_eq!(ports(&entry), [80, 81, 82, 83]);
        entry.offers.remove("east");
        entry.refused.insert("east".into(), "r".into());
        Arc::make_mut(entry.offers.get_mut("west").unwrap()).payload.service_spec.ports =
            Some(named_ports(&[83]));
        let mut entry = carried_out(entry);
        assert_eq!(ports(&entry), [80, 81, 83]);
        entry = carried_out(entry);
        assert_eq!(ports(&entry), [80, 81, 83], "and stay");
        Arc::make_mut(entry.offers.get_mut("west").unwrap()).payload.withdrawn = true;
        assert_eq!(ports(&carried_out(entry)), [80, 81]);
    }
}

fn named_ports(ports: &[i32]) -> Vec<CorePort> {
    let port = |port: &i32| CorePort { name: Some(format!("p{port}")), port: *port, ..CorePort::default() };
    ports.iter().map(port).collect()
}

/// Issue 14, A2: what cannot be written is not copied, whoever wrote it into the import.
#[test]
fn a2_a_time_that_cannot_be_written_is_not_copied() {
    let mut entry = carried_out(entry(&[("east", 1, &[80]), ("west", 2, &[80])]));
    let exporters = |entry: &mut ServiceEntry| {
        Arc::make_mut(entry.import.as_mut().unwrap())
            .spec
            .0
            .as_mut()
            .unwrap()
            .exporters
            .as_mut()
            .unwrap()
            .clone()
    };
    let mut changed = exporters(&mut entry);
    changed[1].exported_at = Some(serde_json::from_str("\"0000-01-01T00:00:00+23:59\"").unwrap());
    Arc::make_mut(entry.import.as_mut().unwrap()).spec.0.as_mut().unwrap().exporters = Some(changed);
    entry.offers.remove("west");
    entry.refused.insert("west".into(), "r".into());
    let times: Vec<_> =
        spec(&carried_out(entry)).exporters.unwrap().into_iter().map(|e| e.exported_at).collect();
    assert!(times.iter().flatten().all(can_be_written), "{times:?}");
}

#[test]
fn an_import_that_names_nobody_is_not_emptied_for_lack_of_records() {
    let mut foreign = carried_out(entry(&[("east", 1, &[80])]));
    let mut spec = spec(&foreign);
    spec.exporters = None;
    foreign.import = Some(Arc::new(Import { metadata: ObjectMeta::default(), spec: Lenient(Ok(spec)) }));
    foreign.offers.clear();
    assert_eq!(desired(&service(), &foreign), Plan::Hold);
}

/// Offers of different clusters, of a few ages so that ties come up.
fn offers() -> impl Strategy<Value = Vec<(String, Offer)>> {
    let one = (0..3i64, prop::collection::btree_set(1..5i32, 1..4), any::<bool>());
    prop::collection::btree_map("[a-f]", one, 0..6).prop_map(|clusters| {
        let made = clusters.into_iter().map(|(cluster, (at, ports, withdrawn))| {
            let ports: Vec<_> = ports.into_iter().collect();
            let mut offer = offer(&cluster, at, &ports);
            offer.payload.withdrawn = withdrawn;
            (cluster, offer)
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn merging_does_not_depend_on_order(
        (sorted, shuffled) in offers().prop_flat_map(|sorted| (Just(sorted.clone()), Just(sorted).prop_shuffle()))
    ) {
        let merged = |offers: &[(String, Offer)]| merge(offers.iter().map(|(c, o)| (c.as_str(), o)).collect());
        prop_assert_eq!(merged(&sorted), merged(&shuffled));
    }

    /// Who exports and takes that back leaves no trace, whatever others export.
    #[test]
    fn removal_is_the_inverse_of_addition(offers in offers(), at in 0..3i64, ports in prop::collection::btree_set(1..5i32, 1..4)) {
        let entry = ServiceEntry { offers: offers.into_iter().map(|(cluster, offer)| (cluster, Arc::new(offer))).collect(), ..ServiceEntry::default() };
        let before = carried_out(entry);
        let mut with = before.clone();
        let ports: Vec<_> = ports.into_iter().collect();
        with.offers.insert("z".into(), Arc::new(offer("z", at, &ports)));
        let mut with = carried_out(with);
        Arc::make_mut(with.offers.get_mut("z").unwrap()).payload.withdrawn = true;
        prop_assert_eq!(carried_out(with).import, before.import);
    }

    #[test]
    fn a_second_pass_wants_what_is_there(offers in offers()) {
        let entry = ServiceEntry { offers: offers.into_iter().map(|(cluster, offer)| (cluster, Arc::new(offer))).collect(), ..ServiceEntry::default() };
        let settled = carried_out(entry);
        if let Some(import) = &settled.import {
            let spec = import.spec.0.clone().unwrap();
            let written = Plan::Write { import: Some(spec), withdrawn: vec![], missing: BTreeSet::new() };
            prop_assert_eq!(desired(&service(), &settled), written);
        }
    }
}

/// An import that no watch has observed yet may name exporters that this plan does not know. Seed 90 of the hunt lost such an exporter.
#[tokio::test]
async fn a_create_that_meets_an_import_is_planned_again() {
    let asked = Shared::<Vec<String>>::default();
    let answer = {
        let asked = asked.clone();
        move |request: Request<Body>| {
            asked.with(|asked| asked.push(request.method().to_string()));
            let status = r#"{"kind": "Status", "status": "Failure", "reason": "AlreadyExists", "code": 409}"#;
            let answer =
                Response::builder().status(409).body(Body::from(status.as_bytes().to_vec())).unwrap();
            async move { Ok::<_, Infallible>(answer) }
        }
    };
    let access = fixture::access(Client::new(tower::service_fn(answer), "cs"));
    let records = Records::new(&access);
    let Offer { metadata, payload } = offer("east", 1, &[80]);
    let judgement =
        Judgement::Service { cluster: "east".into(), service: service(), payload: Box::new(payload) };
    records.entries.change(Change::Apply(Judged { judgement, ..Judged::named(metadata) }));
    let vouching = Vouching::new("Services", access.leases.clone(), Latest::default());
    let merging = Merging { records, vouching, writer: access.writer(), access };
    assert!(matches!(Box::pin(merging.reconcile(service())).await, Err(Error::Stale)));
    assert_eq!(asked.with(|asked| asked.clone()), ["POST"], "the import is not changed");
}
