//! One good case and one bad one, judged and printed; then what the two do not show.

mod advice;
mod binding;
mod incomplete;
mod installed;
mod offloading;

use std::collections::BTreeMap;

use api::{condition::AntreaCondition, label, lease::LeaseView, membership, name};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::{SignedDuration, Timestamp},
};

use serde_json::json;

use super::report;
use crate::objects::{leader, member};
use crate::status::{
    found::{Area, Entry, Found, Gap, Record, Why},
    print::text,
    report::{LeaderState, MemberState},
};
use crate::view::{ClusterSetView, Note};

const VERSION: &str = "1.2.3";

fn now() -> Timestamp {
    "2026-11-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn says(type_: &str, status: &str, reason: &str, message: &str) -> AntreaCondition {
    AntreaCondition {
        type_: Some(type_.into()),
        status: Some(status.into()),
        last_transition_time: Some(Time(ago(600))),
        reason: Some(reason.into()),
        message: Some(message.into()),
    }
}

fn renewed(seconds_ago: i64) -> LeaseView {
    lease(seconds_ago, &[])
}

/// With these annotations in place of the usual ones.
fn lease(seconds_ago: i64, other: &[(&str, &str)]) -> LeaseView {
    let mut annotations = json!({label::VERSION: VERSION, label::WIRE: label::WIRE_VERSION});
    for (key, value) in other {
        annotations[*key] = json!(value);
    }
    let renewed = ago(seconds_ago).strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let lease =
        json!({"metadata": {"name": "l", "annotations": annotations}, "spec": {"renewTime": renewed}});
    serde_json::from_value(lease).unwrap()
}

fn entry(name: &str, conditions: Vec<AntreaCondition>) -> Entry {
    Entry { namespace: "shop".into(), name: name.into(), conditions, deletion: None }
}

fn record(cluster: &str, offers_service: bool, conditions: Vec<AntreaCondition>) -> Record {
    let entry = Entry { namespace: "clusterset-demo".into(), ..entry(&format!("{cluster}-web"), conditions) };
    Record { cluster: cluster.into(), offers_service, entry }
}

fn set(server: Option<&str>, conditions: &[AntreaCondition]) -> ClusterSetView {
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "generation": 1},
        "spec": {"clusterID": "hub", "leaders": [{"server": server}]},
        "status": {"observedGeneration": 1, "conditions": conditions},
    }))
    .unwrap()
}

fn noted(leaving: bool) -> Note {
    Note {
        cluster_set: Some("demo".into()),
        cluster_id: Some("hub".into()),
        ranges: None,
        server: Some("https://hub:6443".into()),
        leave: leaving.then(|| membership::LEAVE.into()),
        refused: None,
    }
}

fn leases<const N: usize>(leases: [(&str, LeaseView); N]) -> BTreeMap<String, LeaseView> {
    let name =
        |id: &str| if id == label::LEADER { name::LEADER_LEASE.into() } else { name::member_lease(id) };
    leases.into_iter().map(|(id, lease)| (name(id), lease)).collect()
}

/// The leader's cluster, itself a member, with one more: nothing is wrong.
fn good() -> Found {
    let area = Area {
        namespace: "clusterset-demo".into(),
        sets: Ok(vec![set(None, &[])]),
        leases: Ok(leases([(label::LEADER, renewed(3)), ("hub", renewed(7)), ("east", renewed(12))])),
        joined: Ok(vec!["hub".into(), "east".into()]),
        long_lived: vec![],
        records: Ok(vec![record("east", true, vec![]), record("east", false, vec![])]),
        imports: Ok(1),
    };
    let export = vec![says("Valid", "True", "Valid", ""), says("Ready", "True", "Exported", "")];
    Found {
        cluster: "kind-hub".into(),
        version: VERSION.into(),
        asked: None,
        areas: Ok(vec![area]),
        sets: Ok(vec![set(
            Some("https://hub:6443"),
            &[says("Ready", "True", "Connected", "exports and imports flow")],
        )]),
        noted: Ok(Some(noted(false))),
        records_policy: Some(Ok(leader::policy().map(Some))),
        imports_policy: Some(Ok(member::policy().map(Some))),
        own_policy: Some(Ok(member::own_policy().map(Some))),
        checks: member::checks().map(|check| Some(Ok(check.map(Some)))).into(),
        leader: Some(Ok(Some(deployment(1, 1)))),
        member: Some(Ok(Some(deployment(1, 1)))),
        life: Some(Ok(Some(renewed(7)))),
        active: [(label::LEADER, Some(Ok(None))), (label::MEMBER, Some(Ok(None)))],
        exports: Some(Ok(vec![entry("web", export)])),
        imports: Some(Ok(vec![entry("web", vec![says("Ready", "True", "Ready", "")])])),
        offloading: None,
        lost_records: Ok(Vec::new()),
        binding: None,
    }
}

/// Unavailable for five minutes, if it is.
fn deployment(wanted: i32, available: i32) -> Deployment {
    let is = if available > 0 { "True" } else { "False" };
    let condition = json!({"type": "Available", "status": is, "lastTransitionTime": ago(300).to_string()});
    serde_json::from_value(json!({
        "spec": {"replicas": wanted, "selector": {}, "template": {}},
        "status": {"availableReplicas": available, "conditions": [condition]},
    }))
    .unwrap()
}

fn area(found: &mut Found) -> &mut Area {
    &mut found.areas.as_mut().unwrap()[0]
}

fn bad() -> Found {
    let mut found = good();
    let failure = says("Failure", "False", "UnknownKind", "spec.kind is\n\"Thing\"");
    *area(&mut found) = Area {
        leases: Ok(leases([
            (label::LEADER, lease(90, &[(label::VERSION, "1.2.2")])),
            ("hub", lease(7, &[(label::WIRE, "2")])),
            ("east", renewed(300)),
            ("west", lease(90_000, &[(label::LEFT, label::TRUE)])),
            ("fast", renewed(-180)),
        ])),
        joined: Ok(vec!["hub".into(), "new".into()]),
        records: Ok(vec![record("east", true, vec![failure])]),
        imports: Err(Gap {
            part: "resourceimports in clusterset-demo".into(),
            why: Why::Forbidden("jane may not".into()),
        }),
        ..good().areas.unwrap().remove(0)
    };
    let lost = says("Ready", "False", "Disconnected", "connection refused");
    found.sets = Ok(vec![set(Some("https://hub:6443"), &[lost])]);
    let export = |conflict| {
        vec![
            says("Valid", "True", "Valid", ""),
            says("Ready", "True", "Exported", ""),
            says("Conflict", conflict, "PortConflict", "ports differ"),
        ]
    };
    let exports = (0..12).map(|i| entry(&format!("web{i:02}"), export("True")));
    found.exports = Some(Ok(exports.chain([entry("fine", export("False"))]).collect()));
    found.imports = Some(Err(Gap { part: "serviceimports".into(), why: Why::NoCrd }));
    found
}

#[test]
fn a_cluster_where_all_is_well() {
    let report = report(&good(), now());
    assert!(report.is_well());
    assert_eq!(text(&report), include_str!("golden/good.txt"));
}

#[test]
fn a_cluster_where_much_is_wrong() {
    let report = report(&bad(), now());
    assert!(!report.is_well());
    assert_eq!(text(&report), include_str!("golden/bad.txt"));
}

#[test]
fn the_shape_for_machines_stays() {
    let json = serde_json::to_string_pretty(&report(&good(), now())).unwrap();
    assert_eq!(json + "\n", include_str!("golden/good.json"));
}

#[test]
fn a_table_fits_a_hundred_columns() {
    let mut found = good();
    let long = lease(-100_000_000, &[(label::VERSION, &"v".repeat(80))]);
    area(&mut found).leases = Ok(leases([(&"x".repeat(63), long)]));
    let text = text(&report(&found, now()));
    let rows =
        text.lines().skip_while(|line| !line.starts_with("  CLUSTER")).take_while(|line| !line.is_empty());
    let widths: Vec<usize> = rows.map(|row| row.chars().count()).collect();
    assert!(widths.len() > 1 && widths.iter().all(|width| *width <= 100), "{widths:?}");
}

#[test]
fn a_cluster_of_no_set_is_told_what_to_run() {
    let nothing = |asked: Option<&str>| Found {
        asked: asked.map(Into::into),
        areas: Ok(vec![]),
        sets: Ok(vec![]),
        noted: Ok(None),
        records_policy: None,
        imports_policy: None,
        own_policy: None,
        checks: vec![],
        leader: None,
        member: None,
        life: None,
        exports: None,
        imports: None,
        ..good()
    };
    let problems = report(&nothing(None), now()).problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].what, "neither leads nor belongs to a ClusterSet");
    let problems = report(&nothing(Some("prod")), now()).problems;
    assert_eq!(problems[0].what, "neither leads nor belongs to ClusterSet prod");
    assert!(problems[0].next.contains("freeport join --clusterset prod "), "{}", problems[0].next);

    let refused = Gap { part: "namespaces".into(), why: Why::Forbidden("no".into()) };
    let problems = report(&Found { areas: Err(refused), ..nothing(None) }, now()).problems;
    assert_eq!(problems.len(), 1, "who may not look cannot say that there is nothing: {problems:?}");
    assert_eq!(problems[0].place, "namespaces");
}

#[test]
fn a_lease_that_may_not_be_read_says_nothing_of_its_holder() {
    let mut found = good();
    let gap = Gap { part: "leases in clusterset-demo".into(), why: Why::Forbidden("no".into()) };
    area(&mut found).leases = Err(gap);
    let report = report(&found, now());
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert_eq!(report.leads[0].leader.state, LeaderState::Unknown);
    assert!(report.leads[0].clusters.iter().all(|cluster| cluster.state == MemberState::Unknown));
}

#[test]
fn what_a_lease_says_is_refused_is_a_problem_unless_the_cluster_set_says_so() {
    let refused = || lease(7, &[(label::REFUSED, "change the status of ClusterSet demo: denied")]);
    let mut found = good();
    found.life = Some(Ok(Some(refused())));
    area(&mut found).leases.as_mut().unwrap().insert(name::LEADER_LEASE.into(), refused());
    let of = |found: &Found| -> Vec<String> {
        report(found, now()).problems.into_iter().map(|problem| problem.what).collect()
    };
    let words = "reports: change the status of ClusterSet demo: denied";
    assert_eq!(of(&found), [format!("freeport-leader {words}"), format!("freeport-member {words}")]);
    let says_so =
        [says("Ready", "True", "Connected", ""), says("WritesAccepted", "False", "Refused", "denied")];
    found.sets = Ok(vec![set(None, &says_so)]);
    assert!(!of(&found).contains(&format!("freeport-member {words}")));
}

#[test]
fn who_may_not_read_the_set_still_sees_exports() {
    let forbidden = || Gap { part: "clustersets".into(), why: Why::Forbidden("no".into()) };
    let mut found = Found { sets: Err(forbidden()), noted: Ok(None), ..good() };
    area(&mut found).sets = Err(forbidden());
    let report = report(&found, now());
    assert_eq!(report.problems.len(), 2, "{:?}", report.problems);
    assert!(report.leads[0].clusters.iter().all(|cluster| cluster.role.is_none()));
    let text = text(&report);
    assert!(text.contains("belongs to a ClusterSet that cannot be read\n  ServiceExports: 1\n"), "{text}");
}

#[test]
fn half_a_minute_is_the_limit_in_both_directions() {
    let state = |seconds_ago| {
        let mut found = good();
        area(&mut found).leases = Ok(leases([(label::LEADER, renewed(3)), ("hub", renewed(seconds_ago))]));
        report(&found, now()).leads[0].clusters.iter().find(|c| c.cluster_id == "hub").unwrap().state
    };
    assert_eq!([29, 30].map(state), [MemberState::Ready, MemberState::NotReady]);
    assert_eq!([-30, -31].map(state), [MemberState::Ready, MemberState::Unknown]);
}

#[test]
fn an_export_nobody_has_looked_at_is_not_ready() {
    let mut found = good();
    found.exports = Some(Ok(vec![entry("web", vec![])]));
    let report = report(&found, now());
    assert_eq!(report.service_exports.unwrap().troubled, 1);
    assert_eq!(report.problems[0].place, "ServiceExport shop/web");
}

#[test]
fn a_cluster_that_has_not_finished_leaving_still_belongs() {
    let without_set = |leaving| Found { sets: Ok(vec![]), noted: Ok(Some(noted(leaving))), ..good() };
    let left = report(&without_set(true), now());
    assert_eq!(left.problems.len(), 1, "{:?}", left.problems);
    assert!(left.problems[0].what.contains("is leaving ClusterSet demo"), "{}", left.problems[0].what);
    assert!(text(&left).contains("is leaving ClusterSet demo as cluster hub (leader https://hub:6443)"));

    let vanished = report(&without_set(false), now());
    assert_eq!(vanished.problems.len(), 1, "{:?}", vanished.problems);
    assert!(vanished.problems[0].what.contains("is gone"), "{}", vanished.problems[0].what);
    assert_eq!(vanished.belongs.len(), 1);

    let told = report(&Found { noted: Ok(Some(noted(true))), ..good() }, now());
    assert_eq!((told.problems.len(), told.belongs.len(), told.belongs[0].leaving), (1, 1, true));
}

/// Issue 14, C.
#[test]
fn c_an_invalid_cluster_set_of_a_common_area_says_what_to_correct() {
    let mut found = good();
    let why = says("Ready", "False", "InvalidSpec", "spec.leaders names other");
    found.areas.as_mut().unwrap()[0].sets = Ok(vec![set(None, &[why])]);
    let report = report(&found, now());
    let [problem] = report.problems.as_slice() else { panic!("{:?}", report.problems) };
    assert!(
        problem.what.contains("InvalidSpec") && problem.next.contains("correct the ClusterSet"),
        "{problem:?}"
    );
}
