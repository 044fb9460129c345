//! Each code: a set-up of plain objects that is broken in one way, and gives exactly that code.

mod fixture;
mod gaps;

use std::collections::BTreeSet;

use serde_json::json;

use self::fixture::{
    EAST, HUB, WEST, ago, announce, condition, export, merged, object, record, service, set, silent, slice,
    well,
};
use super::{Mark, Picture, why};
use crate::{
    cluster::Cluster,
    code::{Code, TABLE, WORDS},
    gap::Gap,
    step::Step,
};

/// Breaks a set that is well.
type Break = fn(&mut Picture);

/// What breaks a set that is well, by the code that is found.
const BROKEN: &[(u16, Break)] = &[
    (101, |picture| picture.clusters[WEST].member.sets = Ok(vec![])),
    (102, |picture| picture.clusters[EAST].member.lease = Ok(Some(silent("freeport-member")))),
    (103, |picture| {
        picture.clusters[WEST].member.deployment = Ok(Some(object(json!({"spec": {"replicas": 0}}))));
    }),
    (104, |picture| {
        let west = &mut picture.clusters[WEST];
        west.member.deployment = Ok(Some(object(json!({"spec": {"replicas": 1}}))));
        let waiting = json!({"reason": "ImagePullBackOff", "message": "no such image"});
        let status = json!({"containerStatuses": [{"name": "member", "state": {"waiting": waiting}}]});
        west.member.pods =
            Ok(vec![object(json!({"metadata": {"name": "freeport-member-1"}, "status": status}))]);
    }),
    (105, |picture| {
        not_connected(picture, "LeaderUnreachable", "https://hub:6443 cannot be reached: no answer in time")
    }),
    (106, |picture| {
        let message = "https://hub:6443 cannot be reached: the connection is refused: nothing listens there";
        not_connected(picture, "LeaderUnreachable", message);
    }),
    (107, |picture| not_connected(picture, "TokenRefused", "the token of Secret freeport-leader-demo")),
    (108, |picture| not_connected(picture, "CertificateUntrusted", "is signed by another authority")),
    (109, |picture| {
        not_connected(picture, "CRDMissing", "the leader's cluster does not serve kind ResourceImport")
    }),
    (110, |picture| {
        let leases = vec![silent("freeport-leader"), announce("freeport-member-west")];
        area(picture).leases = Ok(leases);
    }),
    (111, |picture| {
        not_connected(picture, "DuplicateClusterID", "another running cluster uses cluster ID west")
    }),
    (201, |picture| {
        picture.clusters[EAST].exports = Ok(vec![export("wbe", &[])]);
        area(picture).records = Ok(vec![]);
        area(picture).merged = Ok(None);
    }),
    (202, |picture| picture.clusters[EAST].services = Ok(vec![service("wbe", &json!({}))])),
    (203, |picture| {
        let spec = json!({"type": "ExternalName", "externalName": "example.com"});
        picture.clusters[EAST].services = Ok(vec![service("web", &spec)]);
    }),
    (204, |picture| {
        let labels = json!({"multicluster.freeport.dev/export": "false"});
        picture.clusters[EAST].namespace =
            Ok(Some(object(json!({"metadata": {"name": "shop", "labels": labels}}))));
    }),
    (205, |picture| invalid(picture, "ImportedService", "this Service was imported")),
    (301, |picture| invalid(picture, "TooManyPorts", "the Service has 101 ports")),
    (302, |picture| {
        let ready = condition("Ready", "False", "Refused", "the leader's API server refuses a record");
        picture.clusters[EAST].exports =
            Ok(vec![export("web", &[condition("Valid", "True", "Valid", ""), ready])]);
        area(picture).records = Ok(vec![]);
    }),
    (303, |picture| area(picture).records = Ok(vec![])),
    (401, |picture| {
        second_exporter(picture, &json!({"ports": [{"name": "http", "port": 8080}]}));
        // Without a port that is used, its endpoints are not imported.
        picture.clusters[WEST].slices.as_mut().unwrap().pop();
    }),
    (402, |picture| {
        let spec = json!({"clusterIP": "None", "ports": [{"name": "http", "port": 80}]});
        second_exporter(picture, &spec);
    }),
    (403, |picture| {
        let spec = json!({"sessionAffinity": "ClientIP", "ports": [{"name": "http", "port": 80}]});
        second_exporter(picture, &spec);
    }),
    (404, |picture| area(picture).merged = Ok(None)),
    (501, |picture| {
        let west = &mut picture.clusters[WEST];
        (west.namespace, west.services) = (Ok(None), Ok(vec![]));
        (west.import, west.slices) = (Ok(None), Ok(vec![]));
    }),
    (502, |picture| {
        let west = &mut picture.clusters[WEST];
        west.services = Ok(vec![service("antrea-mc-web", &json!({}))]);
        west.import = Ok(None);
    }),
    (503, |picture| import(picture, "ServiceRefused", "exceeded quota: small")),
    (504, |picture| import(picture, "IPFamilyNotSupported", "this Service has IPv6 in the whole set")),
    (505, |picture| {
        let metadata = json!({"name": "web", "labels": {"app.kubernetes.io/managed-by": "submariner"}});
        picture.clusters[WEST].import = Ok(Some(object(json!({"metadata": metadata}))));
    }),
    (506, |picture| picture.clusters[WEST].import = Ok(None)),
    (601, |picture| {
        let east = &mut picture.clusters[EAST];
        east.services = Ok(vec![service("web", &json!({"selector": {"app": "web"}}))]);
        east.slices = Ok(vec![slice(&json!({"kubernetes.io/service-name": "web"}), &[])]);
    }),
    (603, |picture| {
        let ports = json!([{"name": "http", "port": 80, "targetPort": "web"}, {"name": "old", "port": 81, "targetPort": 8081}]);
        let east = &mut picture.clusters[EAST];
        east.services = Ok(vec![service("web", &json!({"selector": {"app": "web"}, "ports": ports}))]);
    }),
    (604, |picture| {
        let west = picture.clusters[WEST].services.as_mut().unwrap();
        west[0].spec.0.as_mut().unwrap().internal_traffic_policy = Some("Local".into());
    }),
    (605, |picture| {
        let slices = vec![slice(&json!({"kubernetes.io/service-name": "web"}), &[false, false])];
        picture.clusters[EAST].slices = Ok(slices);
    }),
    (607, |picture| picture.clusters[WEST].slices = Ok(vec![])),
    (701, |picture| picture.clusters[WEST].dns = fixture::coredns(false, 1)),
    (702, |picture| picture.clusters[WEST].dns.rules = Ok(vec![])),
    (703, |picture| picture.clusters[WEST].dns = fixture::coredns(true, 0)),
];

fn area(picture: &mut Picture) -> &mut crate::cluster::Area {
    &mut picture.clusters[HUB].areas.as_mut().unwrap()[0]
}

fn not_connected(picture: &mut Picture, reason: &str, message: &str) {
    picture.clusters[WEST].member.sets = Ok(vec![set("west", &condition("Ready", "False", reason, message))]);
}

fn invalid(picture: &mut Picture, reason: &str, message: &str) {
    let valid = condition("Valid", "False", reason, message);
    picture.clusters[EAST].exports = Ok(vec![export("web", &[valid])]);
}

fn import(picture: &mut Picture, reason: &str, message: &str) {
    let ready = condition("Ready", "False", reason, message);
    picture.clusters[WEST].import = Ok(Some(fixture::import(&ready)));
}

/// `hub` exports the Service, too, a day after `east`.
fn second_exporter(picture: &mut Picture, spec: &serde_json::Value) {
    let hub = &mut picture.clusters[HUB];
    hub.exports = Ok(vec![export("web", &well())]);
    hub.services = Ok(vec![service("web", &json!({}))]);
    hub.slices = Ok(vec![slice(&json!({"kubernetes.io/service-name": "web"}), &[true])]);
    let records = area(picture).records.as_mut().unwrap();
    records.push(record("hub", &ago(3600), spec));
    area(picture).merged = Ok(Some(merged(&["east", "hub"])));
    let imported = |id: &str| {
        let labels = json!({"multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/source-cluster": id});
        slice(&labels, &[true])
    };
    picture.clusters[WEST].slices = Ok(vec![imported("east"), imported("hub")]);
}

#[test]
fn each_set_up_gives_exactly_its_code() {
    for (code, break_it) in BROKEN {
        let mut picture = fixture::healthy();
        break_it(&mut picture);
        let walk = why(&picture, Some("west")).unwrap();
        let text = walk.text().join("\n");
        assert_eq!(walk.codes(), [Code(*code)], "{text}");
        let is_said = walk.lines.iter().any(|line| {
            [Mark::Warn, Mark::Fail].contains(&line.mark) && line.text.starts_with(&Code(*code).to_string())
        });
        assert!(is_said && walk.verdict.contains("try: "), "{text}");
        let missing = WORDS.iter().find(|word| walk.verdict.contains(&word.to_uppercase()));
        assert_eq!(missing, None, "the command has all names: {text}");
    }
}

#[test]
fn each_code_has_a_set_up() {
    let tested = BROKEN.iter().map(|(code, _)| *code).chain([606]);
    let table = TABLE.iter().filter(|entry| entry.step.is_some()).map(|entry| entry.code);
    assert_eq!(tested.collect::<BTreeSet<_>>(), table.collect::<BTreeSet<_>>());
}

#[test]
fn of_a_set_that_is_well_nothing_is_found_and_it_is_said_that_nobody_dialled() {
    let walk = why(&fixture::healthy(), Some("west")).unwrap();
    assert_eq!(walk.codes(), [], "{:?}", walk.text());
    assert!(walk.lines.iter().all(|line| line.mark == Mark::Ok), "{:?}", walk.text());
    assert_eq!(walk.lines.len(), Step::ALL.len());
    assert!(walk.verdict.starts_with("FP606 ") && walk.verdict.ends_with("not dialled"), "{}", walk.verdict);
    assert!(walk.text()[0].starts_with("1 ok    set        west belongs to demo, link Connected for 3d"));
}

#[test]
fn later_steps_are_skipped_and_the_command_has_the_names_of_the_clusters() {
    let mut picture = fixture::healthy();
    BROKEN.iter().find(|(code, _)| *code == 501).unwrap().1(&mut picture);
    let walk = why(&picture, Some("west")).unwrap();
    assert_eq!(walk.skipped, [Step::Endpoints, Step::Dns]);
    let text = walk.text();
    assert_eq!(
        text[text.len() - 3..],
        [
            "5 FAIL  import     FP501 west has no Namespace shop",
            "  skip  endpoints, dns",
            "west cannot use shop/web. try: kubectl --context west create namespace shop",
        ]
    );
}

#[test]
fn nearest_names_are_said() {
    let said = |code: u16| {
        let mut picture = fixture::healthy();
        BROKEN.iter().find(|(of, _)| *of == code).unwrap().1(&mut picture);
        why(&picture, Some("west")).unwrap().text().join("\n")
    };
    assert!(said(201).contains("the nearest ServiceExport is wbe in east"), "{}", said(201));
    assert!(said(202).contains("the nearest Service is wbe in east"), "{}", said(202));
}

#[test]
fn who_loses_a_port_is_told_who_wins_and_how_many_disagree() {
    let mut picture = fixture::healthy();
    BROKEN.iter().find(|(code, _)| *code == 401).unwrap().1(&mut picture);
    let walk = why(&picture, Some("west")).unwrap();
    let line = walk.lines.iter().find(|line| line.mark == Mark::Warn).unwrap();
    for part in ["export of hub", "http 80/TCP", "http 8080/TCP", "clients cannot reach", "1 of 2"] {
        assert!(line.text.contains(part), "{part}: {}", line.text);
    }
    assert!(
        walk.verdict.starts_with("west can use shop/web in part (FP401); not dialled. try: "),
        "{}",
        walk.verdict
    );
}

#[test]
fn a_named_port_is_lost_alone_or_with_the_whole_service() {
    let walked = |ports: serde_json::Value, there: serde_json::Value| {
        let mut picture = fixture::healthy();
        let east = &mut picture.clusters[EAST];
        east.services = Ok(vec![service("web", &json!({"selector": {"app": "web"}, "ports": ports}))]);
        let labels = json!({"kubernetes.io/service-name": "web"});
        let endpoints = json!([{"conditions": {"ready": true}}]);
        east.slices = Ok(vec![object(
            json!({"metadata": {"name": "s", "labels": labels}, "endpoints": endpoints, "ports": there}),
        )]);
        why(&picture, Some("west")).unwrap()
    };
    let (http, admin) = (
        json!({"name": "http", "port": 80, "targetPort": "web"}),
        json!({"name": "admin", "port": 81, "targetPort": 81}),
    );
    let there = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    assert_eq!(walked(json!([http]), there).codes(), []);
    let all = walked(json!([http]), json!(null));
    assert_eq!((all.codes(), all.skipped), (vec![Code(603)], vec![Step::Dns]));
    let one = walked(json!([http, admin]), json!([{"name": "admin", "port": 81}]));
    assert_eq!((one.codes(), one.skipped.len()), (vec![Code(603)], 0));
    assert!(
        one.text().join("\n").contains("no Pod has a port \"web\" (targetPort of port 80)"),
        "{:?}",
        one.text()
    );
}

#[test]
fn clients_beside_a_pod_are_not_kept_away_and_headless_services_have_no_address() {
    let local = |change: fn(&mut Picture)| {
        let mut picture = fixture::healthy();
        BROKEN.iter().find(|(code, _)| *code == 604).unwrap().1(&mut picture);
        change(&mut picture);
        why(&picture, Some("west")).unwrap().codes()
    };
    assert_eq!(local(|_| {}), [Code(604)]);
    let headless = |picture: &mut Picture| {
        let west = picture.clusters[WEST].services.as_mut().unwrap();
        west[0].spec.0.as_mut().unwrap().cluster_ip = Some("None".into());
    };
    assert_eq!(local(headless), []);
    let beside = |picture: &mut Picture| {
        let labels = json!({"multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/source-cluster": "west"});
        picture.clusters[WEST].slices.as_mut().unwrap().push(slice(&labels, &[true]));
    };
    assert_eq!(local(beside), []);
}

#[test]
fn without_a_name_the_address_can_be_used() {
    let mut picture = fixture::healthy();
    BROKEN.iter().find(|(code, _)| *code == 701).unwrap().1(&mut picture);
    let verdict = why(&picture, Some("west")).unwrap().verdict;
    assert_eq!(
        verdict,
        "west can use shop/web in part (FP701); not dialled. try: freeport dns --apply --context west"
    );
    picture.clusters[WEST].dns.corefile = Ok(None);
    let walk = why(&picture, Some("west")).unwrap();
    assert_eq!(
        (walk.codes(), walk.lines.last().unwrap().mark),
        (vec![], Mark::Unknown),
        "another DNS server"
    );
    assert!(walk.verdict.ends_with("not known: dns; not dialled"), "{}", walk.verdict);
}

#[test]
fn an_importing_cluster_that_does_not_answer_is_not_seen() {
    let mut picture = fixture::healthy();
    assert!(!why(&picture, Some("west")).unwrap().is_unseen);
    picture.clusters[WEST] = Cluster::unknown("west", &Gap::NoAnswer("no answer".into()));
    let walk = why(&picture, Some("west")).unwrap();
    assert!(walk.is_unseen && walk.findings.is_empty(), "{:?}", walk.text());
    assert!(!why(&picture, Some("east")).unwrap().is_unseen);
}

#[test]
fn one_exporter_that_is_away_degrades_and_the_only_one_breaks() {
    let mut picture = fixture::healthy();
    second_exporter(&mut picture, &json!({"ports": [{"name": "http", "port": 80}]}));
    assert_eq!(why(&picture, Some("west")).unwrap().codes(), []);
    picture.clusters[EAST].member.lease = Ok(Some(silent("freeport-member")));
    let walk = why(&picture, Some("west")).unwrap();
    assert_eq!((walk.codes(), walk.skipped.len()), (vec![Code(102)], 0), "{:?}", walk.text());
    assert!(walk.text()[0].starts_with("1 warn  set        FP102 freeport-member of east does not run"));
}
