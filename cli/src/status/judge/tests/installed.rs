//! What was installed and is off, away or not to be seen.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::*;
use crate::status::report::ActiveReplica;

#[test]
fn a_policy_that_is_off_is_a_problem_and_one_that_may_not_be_read_is_none() {
    let [policy, _] = leader::policy();
    let off = Found { records_policy: Some(Ok([Some(policy), None])), ..good() };
    let problems = report(&off, now()).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].place, "ValidatingAdmissionPolicyBinding freeport-records");
    assert_eq!(problems[0].what, "does not exist: any member can write any other's records");
    assert!(problems[0].next.contains("freeport init"), "{}", problems[0].next);

    let [policy, mut binding] = member::policy();
    binding.body["spec"]["validationActions"] = json!(["Audit"]);
    let warns = Found { imports_policy: Some(Ok([Some(policy), Some(binding)])), ..good() };
    let problems = report(&warns, now()).problems;
    assert!(problems.len() == 1 && problems[0].what.contains("switched off"), "{problems:?}");

    let [mut policy, binding] = member::own_policy();
    policy.body["spec"]["matchConditions"][0]["expression"] = json!("false");
    let altered = Found { own_policy: Some(Ok([Some(policy), Some(binding)])), ..good() };
    let problems = report(&altered, now()).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].place, "ValidatingAdmissionPolicy freeport-member-own");
    assert!(
        problems[0].what.ends_with("can change and delete every Service of this cluster"),
        "{problems:?}"
    );

    let part = "ValidatingAdmissionPolicy freeport-records".into();
    let refused = Gap { part, why: Why::Forbidden("jane may not".into()) };
    let unseen = report(&Found { records_policy: Some(Err(refused)), ..good() }, now());
    assert!(unseen.is_well(), "{:?}", unseen.problems);
    let note = "ValidatingAdmissionPolicy freeport-records was not checked: jane may not";
    assert_eq!(unseen.notes, [note]);
}

#[test]
fn a_policy_that_refuses_mistakes_may_be_off() {
    let [content, [policy, mut binding]] = member::checks();
    binding.body["spec"]["validationActions"] = json!(["Warn"]);
    let there = [content, [policy, binding]].map(|check| Some(Ok(check.map(Some))));
    let off = report(&Found { checks: there.into(), ..good() }, now());
    assert!(off.is_well(), "{:?}", off.problems);
    let note = "ValidatingAdmissionPolicyBinding freeport-exports is switched off: spec.validationActions lacks Deny: \
                mistakes are not refused";
    assert_eq!(off.notes, [note]);
}

#[test]
fn a_daemon_without_a_pod_is_a_problem_and_what_it_said_is_stale() {
    let silent = Found { life: Some(Ok(Some(renewed(90)))), ..good() };
    let dead = report(&Found { member: Some(Ok(Some(deployment(1, 0)))), ..silent }, now());
    assert_eq!(dead.problems.len(), 1, "{:?}", dead.problems);
    assert_eq!(dead.problems[0].place, "Deployment freeport-system/freeport-member");
    assert_eq!(dead.problems[0].what, "has no available replica for 5m: the daemon does not run");
    assert!(dead.problems[0].next.contains("logs deploy/freeport-member"), "{}", dead.problems[0].next);
    assert!(dead.belongs[0].stale);
    let text = text(&dead);
    assert!(text.contains("is not running; it last reported: Ready is True for 10m"), "{text}");

    let mut off = Found { leader: Some(Ok(Some(deployment(0, 0)))), ..good() };
    area(&mut off).leases = Ok(leases([("hub", renewed(7)), ("east", renewed(12))]));
    let off = report(&off, now());
    let problems: Vec<_> = off.problems.iter().map(|problem| problem.what.as_str()).collect();
    assert!(problems.iter().any(|what| what.contains("scaled to 0")), "{problems:?}");
    assert!(!off.belongs[0].stale);
}

#[test]
fn a_daemon_elsewhere_shows_by_its_lease_that_it_lives() {
    let outside = Found { leader: Some(Ok(None)), member: Some(Ok(None)), ..good() };
    let well = report(&outside, now());
    assert!(well.is_well() && well.notes.is_empty(), "{:?} {:?}", well.problems, well.notes);
    let dead = report(&Found { life: Some(Ok(Some(renewed(40)))), ..outside }, now());
    assert_eq!(dead.problems.len(), 1, "{:?}", dead.problems);
    assert_eq!(dead.problems[0].place, "Lease freeport-system/freeport-member");
    assert_eq!(dead.problems[0].what, "freeport-member does not renew its Lease: last renewed 40s ago");
    assert!(dead.belongs[0].stale);

    let outside = Found { leader: Some(Ok(None)), member: Some(Ok(None)), ..good() };
    let never = report(&Found { life: Some(Ok(None)), ..outside }, now());
    assert!(
        never.problems.len() == 1 && never.problems[0].what.contains("never run"),
        "{:?}",
        never.problems
    );

    let both = report(&Found { member: Some(Ok(Some(deployment(1, 0)))), ..good() }, now());
    assert!(both.problems.len() == 1 && !both.belongs[0].stale, "{:?}", both.problems);
    assert!(both.problems[0].next.ends_with("delete deployment freeport-member"), "{:?}", both.problems);
}

#[test]
fn a_daemon_that_may_not_be_looked_at_is_a_note() {
    let part = "Deployment freeport-system/freeport-member".into();
    let refused = Gap { part, why: Why::Forbidden("jane may not".into()) };
    let unseen = report(&Found { member: Some(Err(refused)), ..good() }, now());
    assert!(unseen.is_well(), "{:?}", unseen.problems);
    assert_eq!(unseen.notes, ["Deployment freeport-system/freeport-member was not checked: jane may not"]);
}

#[test]
fn of_several_replicas_the_active_one_is_named_while_it_is() {
    let held = |seconds_ago: i64| {
        let spec = json!({"holderIdentity": "freeport-leader-5f_x1", "leaseDurationSeconds": 10, "renewTime": MicroTime(ago(seconds_ago))});
        serde_json::from_value(json!({"metadata": {"name": "freeport-leader-active"}, "spec": spec})).unwrap()
    };
    let with = |lease| Found { active: [(label::LEADER, Some(Ok(lease))), (label::MEMBER, None)], ..good() };
    let seen = report(&with(Some(held(3))), now());
    let active = ActiveReplica { daemon: "freeport-leader".into(), replica: "freeport-leader-5f".into() };
    assert_eq!((&seen.active_replicas, seen.is_well()), (&vec![active], true));
    assert!(text(&seen).contains("freeport-leader: freeport-leader-5f is the active replica"));
    assert_eq!(report(&with(Some(held(60))), now()).active_replicas, [], "there is one replica now");
}
