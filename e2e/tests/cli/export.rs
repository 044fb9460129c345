//! `freeport plan`, `export` and `unexport` on real clusters: a plan writes nothing and comes true; an import loses its last endpoint only with `--yes`.

use std::fs;

use e2e::waiting::{VOUCHED, within};
use serde_json::Value;

use super::member_set::{MemberSet, alone};

const NS: &str = "exporting";
/// `east` exports; the other clusters are looked at.
const EAST: &str = "--contexts east,west --leader-context leader";
/// `west` exports.
const WEST: &str = "--contexts west,east --leader-context leader";

#[e2e::test]
fn exports_begin_and_end_as_planned() {
    alone(async |set| {
        set.join("east").await;
        let (clusters, east, west) = (set.clusters, set.cluster("east"), set.cluster("west"));
        for cluster in [east, west] {
            cluster.create_namespace(NS).await;
        }
        east.service(NS, "web", &[("http", 80)]).await;
        east.slice(NS, "web", "web-1", &["10.2.0.1"], &[("http", 8080)]).await;

        planned_from_a_file(set).await;
        let said = clusters.freeport(&format!("export {NS}/web {EAST}")).await.succeeded();
        for part in [
            "applied ServiceExport",
            "web.exporting.svc.clusterset.local is in east, west after ",
            "not in leader: ",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let again = clusters.freeport(&format!("plan --unexport {NS}/web {EAST}")).await;
        again.reported(1, &["import   none: no cluster exports the Service", "loses its last endpoint"]);

        west.service(NS, "web", &[("http", 8080)]).await;
        west.slice(NS, "web", "web-1", &["10.3.0.1"], &[("http", 8080)]).await;
        conflicts_as_planned(set).await;

        clusters.freeport(&format!("unexport {NS}/web {WEST}")).await.succeeded();
        let ended = format!("unexport {NS}/web {EAST}");
        let unconfirmed = clusters.freeport(&ended).await;
        assert_eq!(unconfirmed.code, Some(2), "{unconfirmed}");
        assert!(unconfirmed.stderr.contains("add --yes"), "{unconfirmed}");
        assert!(exported(set, "east").await, "nothing was done");
        clusters.freeport(&format!("{ended} --yes")).await.succeeded();
        let imports = clusters.freeport(&format!("get imports -n {NS} --context west -o name")).await;
        assert_eq!(imports.stdout, "", "{imports}");
        clusters.freeport(&ended).await.refused(&["exporting/web", "does not exist"]);

        let nothing = clusters.freeport(&format!("export {NS}/nothing --context east")).await;
        assert_eq!(nothing.code, Some(1), "{nothing}");
        assert!(nothing.stdout.contains("is not valid: "), "{nothing}");
        for cluster in [east, west] {
            cluster.release_namespace(NS).await;
        }
    });
}

/// The ServiceExport of `--dry-run -o yaml` is a file for `freeport plan`, which writes nothing.
async fn planned_from_a_file(set: &MemberSet) {
    let clusters = set.clusters;
    let yaml =
        clusters.freeport(&format!("export {NS}/web --context east --dry-run -o yaml")).await.succeeded();
    let file = format!("{}/web.yaml", clusters.folder("east"));
    fs::write(&file, yaml).unwrap();
    let before = written(set).await;
    let plan = clusters.freeport(&format!("plan -f {file} {EAST}")).await;
    plan.reported(
        0,
        &[
            "ClusterSetIP, http:80/TCP",
            "in west: new address (IPv4); endpoints 0 -> 1",
            "not in   leader: no Namespace exporting",
        ],
    );
    clusters.freeport(&format!("export {NS}/web {EAST} --dry-run")).await.reported(0, &["exported by east"]);
    assert_eq!(written(set).await, before);
    assert!(!exported(set, "east").await);
}

/// `west` exports another port: the conditions become what the plan says, word by word.
async fn conflicts_as_planned(set: &MemberSet) {
    let clusters = set.clusters;
    let planned = clusters.freeport(&format!("export {NS}/web {WEST}")).await;
    assert_eq!(planned.code, Some(1), "{planned}");
    let line = planned.stdout.lines().find_map(|line| line.strip_prefix("  export   east: Conflict True "));
    let words = line.unwrap_or_else(|| panic!("{planned}")).to_owned();
    within(VOUCHED, "the conflict is as planned", async || {
        let get = format!("--context east -n {NS} get serviceexport web -o json");
        let export: Value = serde_json::from_str(&clusters.kubectl(&get).await.succeeded()).unwrap();
        let conditions = export["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let conflict =
            conditions.into_iter().find(|condition| condition["type"] == "Conflict").unwrap_or_default();
        let text = |field: &str| conflict[field].as_str().unwrap_or_default().to_owned();
        let found = format!("{}: {}", text("reason"), text("message"));
        if conflict["status"] == "True" && found == words {
            Ok(())
        } else {
            Err(format!("{found}\nplanned: {words}"))
        }
    })
    .await;
}

async fn exported(set: &MemberSet, cluster: &str) -> bool {
    let line = format!("--context {cluster} -n {NS} get serviceexports -o name");
    set.clusters.kubectl(&line).await.succeeded().contains("/web")
}

async fn written(set: &MemberSet) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for cluster in ["leader", "east", "west"] {
        all.push(set.clusters.written_by_people(cluster).await);
    }
    all
}
