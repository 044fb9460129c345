//! What to do next.

use super::*;

#[test]
fn what_is_to_be_left_is_left_by_the_command_for_it() {
    for (reason, command) in [
        ("Left", "`freeport leave`"),
        ("AnotherClusterSet", "kubectl -n freeport-system delete clusterset demo"),
        ("DuplicateClusterID", "`freeport leave --force`"),
    ] {
        assert_advised("False", reason, command);
    }
}

#[test]
fn what_is_wrong_with_a_link_has_its_own_advice() {
    for (status, reason, command) in [
        ("False", "TokenRefused", "`freeport join --clusterset demo --cluster-id hub` again"),
        ("False", "CRDMissing", "`freeport init`"),
        ("False", "LeaderUnreachable", "does the leader's API server answer"),
        ("False", "Disconnected", "read freeport-member's log"),
        ("False", "CannotWatch", "`freeport join --clusterset demo"),
        ("True", "LeaderSilent", "`freeport status` in the leader's cluster"),
        ("True", "ClockSkew", "set the clocks"),
        ("True", "CRDOutdated", "`freeport join"),
        ("True", "DuplicateClusterID", "in the other cluster, `freeport leave --force`"),
        ("True", "WireVersionDiffers", "one version of Freeport"),
        ("True", "ClusterPropertyConflict", "kubectl delete clusterproperty"),
        ("False", "ClusterPropertyConflict", "kubectl delete clusterproperty"),
    ] {
        assert_advised(status, reason, command);
    }
}

#[test]
fn what_is_wrong_at_the_leader_has_its_own_advice() {
    for (reason, command) in [
        ("FeatureUnavailable", "`freeport init`"),
        ("SchemaPruned", "`freeport init`"),
        ("InvalidSpec", "correct the ClusterSet"),
        ("SomeNotReady", "kubectl -n clusterset-demo get leases"),
        ("Odd", "freeport-leader's log"),
    ] {
        let mut found = good();
        area(&mut found).sets = Ok(vec![set(None, &[says("Ready", "False", reason, "Services")])]);
        let problems = report(&found, now()).problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].next.contains(command), "{problems:?}");
    }
}

#[test]
fn writes_that_are_refused_are_a_problem_in_a_member_and_at_the_leader() {
    let refused = || says("WritesAccepted", "False", "Refused", "refuses to delete Service shop/web");
    let accepted = || says("WritesAccepted", "True", "Accepted", "");
    let problems = |of_member: AntreaCondition, of_leader: AntreaCondition| {
        let mut found = good();
        let ready = |word| says("Ready", "True", word, "");
        area(&mut found).sets = Ok(vec![set(None, &[ready("Ready"), of_leader])]);
        found.sets = Ok(vec![set(None, &[ready("Connected"), of_member])]);
        report(&found, now()).problems
    };
    assert_eq!(problems(accepted(), accepted()).len(), 0);
    let both = problems(refused(), refused());
    assert_eq!(both.len(), 2, "{both:?}");
    for problem in both {
        assert!(
            problem.what.contains("delete Service shop/web") && problem.next.contains("policy"),
            "{problem:?}"
        );
    }
}

#[test]
fn what_is_refused_to_a_member_that_leaves_is_said() {
    let next = |refused: Option<&str>| {
        let noted = Note { refused: refused.map(str::to_owned), ..noted(true) };
        let problems = report(&Found { noted: Ok(Some(noted)), sets: Ok(vec![]), ..good() }, now()).problems;
        let leaving = problems.into_iter().find(|problem| problem.what.contains("is leaving"));
        leaving.map(|problem| (problem.what, problem.next)).unwrap()
    };
    let (what, advice) = next(Some("the leader's API server refuses to delete Lease x: \"no\""));
    assert!(
        what.ends_with("refuses to delete Lease x: \"no\"") && !advice.contains("--force"),
        "{what} {advice}"
    );
    assert!(next(None).1.contains("--force"));
}

#[test]
fn an_object_whose_condition_says_what_is_in_the_way_has_its_own_advice() {
    for (reason, command) in [
        ("ServiceNameTaken", "set its label"),
        ("ServiceRefused", "within a minute; kubectl -n shop describe serviceimport web"),
        ("EndpointsRefused", "an object of that name"),
        ("DeletionRefused", "within a minute; kubectl"),
        ("IPFamilyNotSupported", "IP family"),
        ("Odd", "kubectl -n shop describe serviceimport web"),
    ] {
        let import = entry("web", vec![says("Ready", "False", reason, "")]);
        let problems = report(&Found { imports: Some(Ok(vec![import])), ..good() }, now()).problems;
        assert!(problems.len() == 1 && problems[0].next.contains(command), "{problems:?}");
    }
    for (reason, command) in
        [("NoService", "create the Service"), ("NamespaceExcluded", "taken off the Namespace")]
    {
        let export = entry("web", vec![says("Valid", "False", reason, "")]);
        let problems = report(&Found { exports: Some(Ok(vec![export])), ..good() }, now()).problems;
        assert!(problems.len() == 1 && problems[0].next.contains(command), "{problems:?}");
    }
}

fn assert_advised(status: &str, reason: &str, command: &str) {
    let lost = says("Ready", status, reason, "");
    let found = Found { sets: Ok(vec![set(None, &[lost])]), ..good() };
    let problems = report(&found, now()).problems;
    assert!(problems[0].next.contains(command), "{}", problems[0].next);
}

#[test]
fn a_token_that_counts_for_ever_is_named_with_what_ends_it() {
    let mut found = good();
    area(&mut found).long_lived = vec!["east".into()];
    let problems = report(&found, now()).problems;
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!(problem.place, "Secret clusterset-demo/freeport-member-east-token");
    let ends = "kubectl -n clusterset-demo delete secret freeport-member-east-token";
    assert!(problem.next.contains(ends), "{problem:?}");
}
