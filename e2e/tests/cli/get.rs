//! `freeport get` of Service `web` in a Namespace, which `east` and `leader` export, in conflict, and all three clusters import.

use e2e::waiting::{VOUCHED, within};
use serde_json::{Value, json};

use super::member_set::MemberSet;

pub(crate) async fn lists_a_conflict(set: &MemberSet, namespace: &str) {
    let clusters = set.clusters;
    let all = "--contexts west,east,leader";
    within(VOUCHED, "the Service is listed", async || {
        let ran = clusters.freeport(&format!("get services -n {namespace} {all} -o json")).await;
        let listing: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let web = json!({
            "namespace": namespace, "name": "web", "type": "ClusterSetIP", "ports": ["http:80/TCP"],
            "exportedBy": ["east", "leader"], "importedBy": {"east": true, "leader": true, "west": true}, "conflict": true,
        });
        let is_listed = listing["items"].as_array().is_some_and(|items| items.contains(&web));
        let is_said = listing["kind"] == "ServiceList" && listing["notLookedAt"] == json!([]);
        if is_listed && is_said && ran.code == Some(0) { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
    let conflicts = clusters.freeport(&format!("get conflicts -A {all}")).await;
    conflicts.reported(0, &["NAMESPACE", "east", "leader", "PortConflict"]);
    let names =
        clusters.freeport(&format!("get imports -n {namespace} --context west -o name")).await.succeeded();
    assert!(names.lines().any(|name| name == format!("{namespace}/web")), "{names}");
    let known = clusters.freeport("get clusters --context leader").await;
    known.reported(0, &["CLUSTER", "east     member  Ready", "leader   leader  Ready", "west"]);
    let nothing = clusters.freeport("get exports --context west").await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{nothing}");
    assert!(nothing.stderr.contains("nothing found in Namespace default"), "{nothing}");
}
