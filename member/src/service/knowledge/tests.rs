use std::{collections::BTreeSet, sync::Arc};

use kit::{drive::drive, metrics::Metrics, queue::Outcome};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    fixture::{IMPORT, export, golden, nothing, read, steps, succeeded, taken_in, written},
    *,
};
use crate::service::{
    antrea::leader::AntreaImport,
    index::{
        STATUS,
        entry::Unexported,
        view::{Export, Service},
    },
    offer::record::Step,
};

/// The Services that the controllers of the status have to reconcile.
async fn to_reconcile(known: &Knowledge) -> BTreeSet<ServiceName> {
    let (stop, seen) = (CancellationToken::new(), Shared::<BTreeSet<_>>::default());
    let reconcile = |service| {
        seen.with(|seen| seen.insert(service));
        async { Ok(Outcome::Done) }
    };
    let queue = known.services.queue(2);
    let driven = drive("test", queue, Metrics::new().unwrap(), stop.clone(), reconcile);
    let until_idle = async {
        while !known.services.busy(STATUS).is_empty() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    tokio::join!(driven, until_idle);
    seen.with(std::mem::take)
}

fn rival(known: &Knowledge, service: &ServiceName) -> Option<ServiceName> {
    known.known(service).unwrap().under_antrea.rival
}

fn said(golden: &str) -> (Value, Value) {
    let golden: Value = serde_json::from_str(golden).unwrap();
    (golden["metadata"].clone(), golden["spec"].clone())
}

#[test]
fn the_records_are_those_of_the_wire_contract_and_the_endpoints_wait_for_the_service() {
    let (known, web) = (nothing(), ServiceName::new("team-a", "web"));
    export(&known, &web, 12);
    let first = written(&steps(&known, &web));
    let [service] = first.as_slice() else { panic!("{first:?}") };
    let want = said(include_str!("../../../../api/tests/golden/export-service-to-antrea.json"));
    assert_eq!((service["metadata"].clone(), service["spec"].clone()), want);

    taken_in(&known, service.clone(), |_| {});
    assert_eq!(steps(&known, &web).len(), 1, "not yet taken");
    taken_in(&known, service.clone(), succeeded);
    let both = written(&steps(&known, &web));
    let want = said(include_str!("../../../../api/tests/golden/export-endpoints-to-antrea.json"));
    assert_eq!((both[1]["metadata"].clone(), both[1]["spec"].clone()), want);

    taken_in(&known, both[1].clone(), |_| {});
    for step in steps(&known, &web) {
        let Step::Put { have: Some(have), want } = step else { panic!("{step:?}") };
        assert_eq!(have.spec, want.spec, "nothing to say");
    }
    known.services.note(&web, |entry| (entry.export, entry.unexported) = (None, Some(Unexported::Decided)));
    let gone = ["service", "endpoints"].map(|kind| json!({"delete": format!("east-team-a-web-{kind}")}));
    assert_eq!(written(&steps(&known, &web)), gone);
    taken_in(&known, service.clone(), |r| r["metadata"]["deletionTimestamp"] = json!("2026-11-01T13:00:00Z"));
    assert_eq!(written(&steps(&known, &web)), gone[1..], "the other waits for the leader");
    export(&known, &web, 14);
    assert_eq!(written(&steps(&known, &web)).len(), 1, "nor is it written again before");
}

/// Otherwise a Lease would say of what is not there yet that there is no more.
#[test]
fn an_export_that_has_to_be_read_first_is_unwritten() {
    let (known, web) = (nothing(), ServiceName::new("shop", "web"));
    let metadata = json!({"name": "web", "namespace": "shop"});
    known.services.change(Change::Apply(read::<Service>(&json!({"metadata": metadata}))));
    assert!(known.unwritten().is_empty());
    known.services.change(Change::Apply(read::<Export>(&json!({"metadata": metadata}))));
    assert!(known.known(&web).unwrap().entry.unread().is_some());
    assert_eq!(known.unwritten(), [web]);
}

#[tokio::test]
async fn of_two_services_that_want_one_name_the_older_export_has_it() {
    let (known, long, short) = (nothing(), ServiceName::new("a-b", "c"), ServiceName::new("a", "b-c"));
    export(&known, &long, 12);
    assert_eq!(steps(&known, &long).len(), 1);
    let first = written(&steps(&known, &long)).remove(0);
    taken_in(&known, first, |_| {});
    assert_eq!(to_reconcile(&known).await, [long.clone()].into());
    export(&known, &short, 10);
    let both = [short.clone(), long.clone()].into();
    assert_eq!(to_reconcile(&known).await, both, "what changes for one is reconciled for the other");
    assert_eq!(rival(&known, &long), Some(short.clone()));
    assert_eq!(written(&steps(&known, &long)), [json!({"delete": "east-a-b-c-service"})]);
    assert_eq!(rival(&known, &short), None);
    assert_eq!(steps(&known, &short).len(), 1);

    known.services.note(&short, |entry| entry.service = None);
    assert_eq!(rival(&known, &long), None, "the older one cannot be exported");
}

#[test]
fn ports_follow_the_order_of_the_import() {
    let (known, web) = (nothing(), ServiceName::new("shop", "web"));
    export(&known, &web, 12);
    known.services.note(&web, |entry| {
        let ports = json!([{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
        Arc::make_mut(entry.service.as_mut().unwrap()).spec.ports = read(&ports);
    });
    let numbers = |known: &Knowledge| {
        let record = written(&steps(known, &web))[0].clone();
        let ports = record["spec"]["service"]["serviceSpec"]["ports"].as_array().unwrap().clone();
        ports.iter().map(|port| port["port"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&known), [80, 53]);
    let import = golden(IMPORT, |import| {
        let ports = json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 80}]);
        import["spec"]["serviceImport"]["spec"]["ports"] = ports;
    });
    known.services.change(Change::Apply(read::<AntreaImport>(&import)));
    assert_eq!(numbers(&known), [53, 80]);
}
