//! Each code: a set-up that is broken in one way, and gives exactly one line that is not well.

mod fixture;

use std::collections::BTreeSet;

use serde_json::json;

use self::fixture::{
    EAST, HUB, WEST, condition, connected, deployment, export, import, lease, now, object, pod, set, valid,
};
use super::{
    check,
    cluster::Cluster,
    report::{Group, Line, Mark, Report},
};
use crate::{
    code::{Code, TABLE, WORDS},
    gap::Gap,
};

/// Breaks a set that is well.
type Break = fn(&mut [Cluster]);

const FAILED: Mark = Mark::Failed;
const WARN: Mark = Mark::Warn;

/// What breaks a set that is well, by the code that is found and its mark.
const BROKEN: &[(u16, Mark, Break)] = &[
    (1, FAILED, |all| all[WEST] = Cluster::unknown("west", &Gap::NoAnswer("west: no answer".into()))),
    // The members say, too, that they do not reach it.
    (1, FAILED, |all| {
        all[HUB] = Cluster::unknown("hub", &Gap::NoAnswer("hub: no answer".into()));
        for at in [EAST, WEST] {
            ready(all, at, "False", "LeaderUnreachable", "the connection is refused");
        }
    }),
    (2, FAILED, |all| all[EAST].server.as_mut().unwrap().release = Some((1, 30))),
    (3, FAILED, |all| {
        all[WEST]
            .crds
            .as_mut()
            .unwrap()
            .retain(|crd| crd.metadata.name.as_deref() != Some("serviceimports.multicluster.x-k8s.io"));
        all[WEST].imports = Ok(vec![]);
    }),
    (4, WARN, |all| all[WEST].member.pods = Ok(vec![object(pod(&json!({"running": {}}), 7))])),
    (5, WARN, |all| all[EAST].server.as_mut().unwrap().ahead = Some(jiff::SignedDuration::from_secs(-40))),
    (6, WARN, |all| all[EAST].member.lease = Ok(Some(lease("freeport-member", 5, "0.4.1")))),
    (7, FAILED, |all| {
        all[WEST].member.sets = Ok(vec![set("east", &[connected()])]);
        ready(all, EAST, "True", "DuplicateClusterID", "another running cluster uses cluster ID east");
    }),
    (7, FAILED, |all| {
        all[WEST].member.sets = Ok(vec![set("east", &[connected()])]);
        ready(all, EAST, "False", "DuplicateClusterID", "another running cluster was there first");
    }),
    (8, FAILED, |all| all[WEST].pod_ranges = Ok("10.2.128.0/17".parse().unwrap())),
    (9, WARN, |all| all[WEST].service_ranges = Ok("10.92.0.0/16".parse().unwrap())),
    (10, FAILED, |all| {
        let refused = condition("WritesAccepted", "False", "Refused", "EndpointSlice shop/x: exceeded quota");
        all[WEST].member.sets = Ok(vec![set("west", &[connected(), refused])]);
    }),
    (10, FAILED, |all| {
        let refused =
            condition("WritesAccepted", "False", "Refused", "ResourceImport shop-x-service: exceeded quota");
        all[HUB].areas.as_mut().unwrap()[0].sets = Ok(vec![set("hub", &[connected(), refused])]);
    }),
    (11, WARN, |all| {
        let kept = condition("CredentialRenewed", "False", "LongLived", "the token counts for ever");
        all[WEST].member.sets = Ok(vec![set("west", &[connected(), kept])]);
    }),
    (101, FAILED, |all| all[WEST].member.sets = Ok(vec![])),
    (102, FAILED, |all| all[EAST].member.lease = Ok(Some(lease("freeport-member", 600, "0.2.0")))),
    // Stopped, so the leader does not hear from it either, and what its conditions say is old.
    (103, FAILED, |all| {
        all[WEST].member.deployment = Ok(Some(object(deployment(0))));
        all[WEST].imports = Ok(vec![import("web", &[condition("Ready", "False", "ServiceNameTaken", "")])]);
        silent_at_the_leader(all, "west");
    }),
    // It was not looked at itself.
    (103, FAILED, |all| silent_at_the_leader(all, "north")),
    (104, FAILED, |all| {
        all[WEST].member.deployment =
            Ok(Some(object(json!({"spec": {"replicas": 1, "selector": {}, "template": {}}}))));
        all[WEST].member.lease = Ok(None);
        let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}});
        all[WEST].member.pods = Ok(vec![object(pod(&waiting, 0))]);
    }),
    (105, FAILED, |all| {
        ready(all, WEST, "False", "LeaderUnreachable", "no answer in time");
        silent_at_the_leader(all, "west");
    }),
    (106, FAILED, |all| ready(all, WEST, "False", "LeaderUnreachable", "the connection is refused")),
    (107, FAILED, |all| {
        ready(all, WEST, "False", "TokenRefused", "the token of Secret freeport-leader-demo")
    }),
    (108, FAILED, |all| ready(all, WEST, "False", "CertificateExpired", "the leader's certificate")),
    (109, FAILED, |all| {
        let of_leader = "resourceimports.multicluster.crd.antrea.io";
        all[HUB].crds.as_mut().unwrap().retain(|crd| crd.metadata.name.as_deref() != Some(of_leader));
        for at in [EAST, WEST] {
            ready(all, at, "False", "CRDMissing", "the leader's cluster does not serve kind ResourceImport");
        }
    }),
    (110, FAILED, |all| {
        all[HUB].areas.as_mut().unwrap()[0].leases.as_mut().unwrap()[0] =
            lease("freeport-leader", 600, "0.2.0");
        for at in [EAST, WEST] {
            ready(all, at, "True", "LeaderSilent", "freeport-leader does not renew its Lease");
        }
        let pending = [condition("Valid", "True", "Valid", ""), condition("Ready", "False", "Pending", "")];
        all[EAST].exports.as_mut().unwrap().push(export("new", &pending));
    }),
    (111, FAILED, |all| ready(all, WEST, "False", "CannotWatch", "forbidden")),
    (202, FAILED, |all| invalid(all, "NoService", "there is no Service web")),
    (203, FAILED, |all| invalid(all, "InvalidServiceType", "type ExternalName cannot be exported")),
    (204, FAILED, |all| invalid(all, "NamespaceExcluded", "label")),
    (205, FAILED, |all| invalid(all, "ImportedService", "this Service was imported")),
    (301, FAILED, |all| invalid(all, "TooManyPorts", "the Service has 101 ports")),
    (302, FAILED, |all| {
        let ready = condition("Ready", "False", "Refused", "the leader's API server refuses a record");
        all[EAST].exports = Ok(vec![export("web", &[condition("Valid", "True", "Valid", ""), ready])]);
        let refused = condition("WritesAccepted", "False", "Refused", "ResourceExport: forbidden");
        all[EAST].member.sets = Ok(vec![set("east", &[connected(), refused])]);
    }),
    (303, FAILED, |all| {
        let pending =
            [condition("Valid", "True", "Valid", ""), condition("Ready", "False", "Pending", "wait")];
        all[EAST].exports = Ok(vec![export("web", &pending)]);
    }),
    // Both exporters say it.
    (401, FAILED, |all| conflict(all, "PortConflict")),
    (402, FAILED, |all| conflict(all, "TypeConflict")),
    (403, FAILED, |all| conflict(all, "SessionAffinityConflict")),
    (501, FAILED, |all| {
        let missing = condition("ImportsComplete", "False", "NamespaceMissing", "Namespace shop");
        all[WEST].member.sets = Ok(vec![set("west", &[connected(), missing])]);
        all[WEST].imports = Ok(vec![]);
        let time = "2026-11-30T09:59:55.000000Z";
        let lacks = json!({"multicluster.freeport.dev/lacks": format!("{time} shop")});
        let lease = json!({
            "metadata": {"name": "freeport-member-west", "annotations": lacks},
            "spec": {"holderIdentity": "u/p", "leaseDurationSeconds": 30, "renewTime": time},
        });
        all[HUB].areas.as_mut().unwrap()[0].leases.as_mut().unwrap()[3] = object(lease);
    }),
    (502, FAILED, |all| not_ready(all, "ServiceNameTaken")),
    (503, FAILED, |all| {
        not_ready(all, "ServiceRefused");
        let refused = condition("WritesAccepted", "False", "Refused", "Service: exceeded quota");
        all[WEST].member.sets = Ok(vec![set("west", &[connected(), refused])]);
    }),
    (504, FAILED, |all| not_ready(all, "IPFamilyNotSupported")),
    (505, FAILED, |all| not_ready(all, "NotOurs")),
    (506, FAILED, |all| not_ready(all, "EndpointsPending")),
    (603, FAILED, |all| unanswered(all, "PortMismatch")),
    // Who imports it says it, too.
    (605, FAILED, |all| unanswered(all, "NoEndpoints")),
    (701, FAILED, |all| {
        all[WEST].dns.corefile = Ok(Some(".:53 {\n    kubernetes cluster.local\n}\n".into()))
    }),
    (702, FAILED, |all| all[WEST].dns.rules = Ok(vec![])),
    (703, FAILED, |all| all[WEST].dns.deployment = Ok(Some(object(deployment(0))))),
];

/// Codes that only the walk of one Service finds.
const OF_WHY: [u16; 5] = [201, 404, 601, 604, 606];

fn ready(all: &mut [Cluster], at: usize, status: &str, reason: &str, message: &str) {
    let id = all[at].context.clone();
    all[at].member.sets = Ok(vec![set(&id, &[condition("Ready", status, reason, message)])]);
}

fn silent_at_the_leader(all: &mut [Cluster], id: &str) {
    let leases = all[HUB].areas.as_mut().unwrap()[0].leases.as_mut().unwrap();
    leases.push(lease(&format!("freeport-member-{id}"), 600, "0.2.0"));
}

fn invalid(all: &mut [Cluster], reason: &str, message: &str) {
    all[EAST].exports = Ok(vec![export("web", &[condition("Valid", "False", reason, message)])]);
}

fn conflict(all: &mut [Cluster], reason: &str) {
    let [one, other] = valid();
    for at in [HUB, EAST] {
        let said = condition("Conflict", "True", reason, "1 of 2 disagree");
        all[at].exports = Ok(vec![export("web", &[one.clone(), other.clone(), said])]);
    }
}

fn not_ready(all: &mut [Cluster], reason: &str) {
    all[WEST].imports = Ok(vec![import("web", &[condition("Ready", "False", reason, "")])]);
}

fn unanswered(all: &mut [Cluster], reason: &str) {
    let said = condition("NoReadyEndpoints", "True", reason, "");
    let [one, other] = valid();
    all[EAST].exports = Ok(vec![export("web", &[one, other, said.clone()])]);
    all[WEST].imports = Ok(vec![import("web", &[condition("Ready", "True", "Ready", ""), said])]);
}

fn lines(report: &Report) -> Vec<&Line> {
    report.lines.iter().filter(|line| [FAILED, WARN].contains(&line.mark)).collect()
}

#[test]
fn a_set_that_is_well_is_ok_in_each_group() {
    let report = check(&fixture::healthy(), now());
    assert!(report.lines.iter().all(|line| line.mark == Mark::Ok), "{:#?}", report.lines);
    let groups = |of: Option<&str>| {
        let lines =
            report.lines.iter().filter(|line| line.place.as_ref().map(|place| place.title.as_str()) == of);
        lines.map(|line| line.group.word()).collect::<BTreeSet<_>>()
    };
    let all: BTreeSet<_> = Group::OF_CLUSTER.into_iter().map(Group::word).collect();
    assert_eq!((groups(Some("west")), groups(None)), (all, BTreeSet::from(["set"])));
    assert!(report.is_well() && !report.may_mend() && report.seen == 3);
}

#[test]
fn each_set_up_gives_exactly_one_line_with_its_code() {
    for (code, mark, break_it) in BROKEN {
        let mut clusters = fixture::healthy();
        break_it(&mut clusters);
        let report = check(&clusters, now());
        let found = lines(&report);
        let [line] = found[..] else { panic!("{code}: {:#?}", report.lines) };
        let finding = line.finding.as_ref().unwrap();
        assert_eq!((finding.code, line.mark), (Code(*code), *mark), "{:#?}", report.lines);
        let next = finding.next();
        // Of a cluster that was not looked at nobody knows the context.
        let words: Vec<_> = next.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let missing = WORDS.iter().find(|word| words.contains(&word.to_uppercase().as_str()));
        let may_lack = line.text.contains("north").then_some(&"context");
        assert_eq!(missing, may_lack, "the command has all names: {next}");
    }
}

#[test]
fn each_code_has_a_set_up() {
    let tested: BTreeSet<_> = BROKEN.iter().map(|(code, ..)| *code).chain(OF_WHY).chain([607]).collect();
    assert_eq!(tested, TABLE.iter().map(|entry| entry.code).collect::<BTreeSet<_>>());
}

#[test]
fn what_follows_is_skipped_with_its_cause() {
    let mut clusters = fixture::healthy();
    BROKEN.iter().find(|(code, ..)| *code == 103).unwrap().2(&mut clusters);
    let report = check(&clusters, now());
    let skipped: Vec<_> = report.lines.iter().filter(|line| line.mark == Mark::Skipped).collect();
    let groups: Vec<_> = skipped.iter().map(|line| line.group).collect();
    assert_eq!(groups, [Group::Link, Group::Exports, Group::Imports]);
    assert!(skipped.iter().all(|line| line.text == "follows from FP103"), "{skipped:#?}");
}

#[test]
fn what_is_wrong_elsewhere_keeps_nothing_else_from_being_looked_at() {
    for (code, _, break_it) in BROKEN.iter().filter(|(code, ..)| [401, 103].contains(code)) {
        let mut clusters = fixture::healthy();
        break_it(&mut clusters);
        let report = check(&clusters, now());
        let is_of_hub = |line: &&Line| line.place.as_ref().is_some_and(|place| place.title == "hub");
        let imports = report.lines.iter().filter(is_of_hub).find(|line| line.group == Group::Imports);
        assert_eq!(imports.unwrap().mark, Mark::Ok, "{code}: {:#?}", report.lines);
    }
}

#[test]
fn several_services_with_one_problem_are_one_line() {
    let mut clusters = fixture::healthy();
    let invalid = condition("Valid", "False", "NoService", "there is none");
    let exports = ["a", "b", "c", "d", "e", "f"].map(|name| export(name, std::slice::from_ref(&invalid)));
    clusters[EAST].exports = Ok(exports.into_iter().chain([export("web", &valid())]).collect());
    let report = check(&clusters, now());
    let found = lines(&report);
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = &found[0].text;
    assert!(
        text.starts_with("shop/a in east: NoService: there is none; also shop/b, shop/c, shop/d"),
        "{text}"
    );
    assert!(report.lines.iter().any(|line| line.text == "well: 1 of 7"), "{:#?}", report.lines);
}

#[test]
fn codes_can_be_chosen_and_skipped() {
    let mut clusters = fixture::healthy();
    for wanted in [204, 501] {
        BROKEN.iter().find(|(code, ..)| *code == wanted).unwrap().2(&mut clusters);
    }
    let report = || check(&clusters, now());
    let codes = |report: &Report| -> Vec<_> {
        lines(report).iter().filter_map(|line| Some(line.finding.as_ref()?.code.0)).collect()
    };
    assert_eq!(codes(&report()), [204, 501]);
    assert_eq!(codes(&report().narrowed(&[Code(501)], &[])), [501]);
    assert_eq!(report().narrowed(&[Code(501)], &[]).lines.len(), 1);
    let skipped = report().narrowed(&[], &[Code(501), Code(204)]);
    assert!(skipped.is_well() && skipped.lines.iter().any(|line| line.text == "FP501 is not to be found"));
}

#[test]
fn what_may_not_be_read_is_skipped_and_no_finding() {
    for gap in [Gap::NotLooked, Gap::Forbidden("no".into()), Gap::NoKind, Gap::Failed("500".into())] {
        for at in [HUB, EAST, WEST] {
            let mut clusters = fixture::healthy();
            clusters[at] = Cluster::unknown(clusters[at].context.clone(), &gap);
            let report = check(&clusters, now());
            assert!(report.is_well() && lines(&report).is_empty(), "{:#?}", report.lines);
            assert_eq!(report.seen, 2);
            assert!(report.lines.iter().any(|line| line.mark == Mark::Skipped), "{:#?}", report.lines);
        }
    }
}

#[test]
fn another_look_is_taken_only_where_it_may_help() {
    for (code, _, break_it) in BROKEN.iter().filter(|(_, mark, _)| *mark == FAILED) {
        let mut clusters = fixture::healthy();
        break_it(&mut clusters);
        let entry = TABLE.iter().find(|entry| entry.code == *code).unwrap();
        assert_eq!(check(&clusters, now()).may_mend(), entry.again, "{code}");
    }
}

#[test]
fn a_leader_that_is_no_member_is_well() {
    let mut clusters = fixture::healthy();
    clusters[HUB].member.sets = Ok(vec![]);
    clusters[HUB].member.lease = Ok(None);
    clusters[HUB].member.deployment = Ok(None);
    let report = check(&clusters, now());
    assert!(lines(&report).is_empty(), "{:#?}", report.lines);
    assert!(
        report.lines.iter().any(|line| line.text == "leads demo and is no member"),
        "{:#?}",
        report.lines
    );
    clusters[HUB].areas = Err(Gap::Forbidden("no".into()));
    let report = check(&clusters, now());
    assert!(lines(&report).is_empty(), "whether it leads is not known: {:#?}", report.lines);
}
