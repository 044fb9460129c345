//! Issue 14, A4 and A9: what a member does not import though nothing failed.

use super::*;

fn said(reason: &str) -> crate::status::report::Report {
    said_of("ImportsComplete", reason)
}

fn said_of(type_: &str, reason: &str) -> crate::status::report::Report {
    let connected = says("Ready", "True", "Connected", "exports and imports flow");
    let imports = says(type_, "False", reason, "shop/web waits");
    let set = set(Some("https://hub:6443"), &[connected, imports]);
    report(&Found { sets: Ok(vec![set]), ..good() }, now())
}

#[test]
fn more_imports_than_a_cluster_makes_are_a_problem() {
    let report = said("TooManyImports");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    let problem = &report.problems[0];
    assert_eq!(problem.place, "ClusterSet freeport-system/demo");
    assert_eq!(problem.what, "ImportsComplete is False: TooManyImports: shop/web waits");
    assert!(problem.next.contains("--max-imports"), "{}", problem.next);
}

#[test]
fn a_namespace_that_is_not_there_may_be_meant() {
    let report = said("NamespaceMissing");
    assert!(report.is_well());
    assert_eq!(report.notes, ["ClusterSet freeport-system/demo: shop/web waits"]);
}

#[test]
fn what_has_no_endpoint_that_can_answer_may_be_meant() {
    let without = |name: &str, status| {
        let fine = [says("Valid", "True", "Valid", ""), says("Ready", "True", "Exported", "")];
        let fine = fine.into_iter().chain([says("NoReadyEndpoints", status, "NotReady", "none is ready")]);
        entry(name, fine.collect())
    };
    let all = ["e", "d", "c", "b", "a"].map(|name| without(name, if name == "b" { "False" } else { "True" }));
    let found =
        Found { exports: Some(Ok(all.into())), imports: Some(Ok(vec![without("e", "True")])), ..good() };
    let report = report(&found, now());
    assert!(report.is_well(), "{:?}", report.problems);
    let without = "without an endpoint that can answer: ";
    assert_eq!(
        report.notes,
        [
            format!(
                "ServiceExports {without}shop/a (NotReady), shop/c (NotReady), shop/d (NotReady) and 1 more"
            ),
            format!("ServiceImports {without}shop/e (NotReady)"),
        ]
    );
}

#[test]
fn what_somebody_has_to_decide_about_is_a_problem_and_named() {
    let all = [
        ("ImportsComplete", "NotOurs", "kubectl delete serviceimport"),
        ("ImportsComplete", "ImportsNotReady", "kubectl describe serviceimport"),
        ("ImportsComplete", "RecordsLeftOut", "credential"),
        ("ImportsComplete", "AddressesLeftOut", "--pod-cidrs"),
        ("ImportsComplete", "ClustersUnreached", "--probe off"),
        ("ExportsDeclared", "ServiceExportVanished", "create the ServiceExports again"),
        ("CredentialRenewed", "LongLived", "`freeport join` again"),
    ];
    for (type_, reason, next) in all {
        let report = said_of(type_, reason);
        let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
        assert_eq!(problem.what, format!("{type_} is False: {reason}: shop/web waits"));
        assert!(problem.next.contains(next), "{}", problem.next);
    }
}

#[test]
fn an_import_that_an_api_server_refuses_is_one_problem() {
    let connected = says("Ready", "True", "Connected", "exports and imports flow");
    let not_ready = says("ImportsComplete", "False", "ImportsNotReady", "shop/web is not ready");
    let refused = says("WritesAccepted", "False", "Refused", "refuses to create ServiceImport shop/web");
    let of = |conditions: &[AntreaCondition], imports| {
        let sets = Ok(vec![set(Some("https://hub:6443"), conditions)]);
        let report = report(&Found { sets, imports: Some(Ok(imports)), ..good() }, now());
        let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
        problem.what.clone()
    };
    let what = of(&[connected.clone(), not_ready.clone(), refused], vec![]);
    assert!(what.contains("refuses to create"), "{what}");
    let taken = entry("web", vec![says("Ready", "False", "ServiceNameTaken", "it exists")]);
    let what = of(&[connected, not_ready], vec![taken]);
    assert!(what.contains("ServiceNameTaken"), "{what}");
}
