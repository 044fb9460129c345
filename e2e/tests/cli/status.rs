//! `freeport status` of a set that lives, and of one with a member that does not.

use e2e::waiting::{VOUCHED, within};
use serde_json::Value;

use crate::cli::{
    clusters::SET,
    member_set::{MemberSet, alone},
    program::Ran,
};

#[e2e::test]
fn a_set_that_is_well_says_so() {
    alone(async |set| {
        set.join("east").await;
        all_is_well(set).await;
        let text = well(async || set.clusters.freeport("status --context leader").await).await;
        for part in
            ["leader: all is well", "leads ClusterSet demo as cluster leader", "freeport-leader: present"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        for cluster in SET {
            let ready = |line: &&str| line.trim_start().starts_with(cluster) && line.contains(" Ready ");
            assert!(text.lines().any(|line| ready(&line)), "{cluster} is in the table: {text}");
        }
        let text =
            well(async || set.clusters.freeport("status --context east --clusterset demo").await).await;
        assert!(text.contains("belongs to ClusterSet demo as cluster east"), "{text}");
        let plugin = well(async || set.clusters.kubectl("freeport status --context west").await).await;
        assert!(plugin.contains("west: all is well"), "{plugin}");
        assert!(!plugin.contains("note: "), "a daemon outside shows that it lives: {plugin}");
        let other = set.clusters.freeport("status --context east --clusterset other").await;
        other.reported(1, &["neither leads nor belongs to ClusterSet other"]);
    });
}

#[e2e::test]
fn a_policy_that_is_off_is_said() {
    alone(async |set| {
        let clusters = set.clusters;
        let off = "--context leader delete validatingadmissionpolicybinding freeport-records";
        clusters.kubectl(off).await.succeeded();
        let gone = "problem: ValidatingAdmissionPolicyBinding freeport-records: does not exist: any member can write";
        clusters
            .freeport("status --context leader")
            .await
            .reported(1, &[gone, "next: run `freeport init` again"]);
        let join =
            "join --clusterset demo --cluster-id west --context west --leader-context leader --external";
        let joined = clusters.freeport(&format!("{join} {}", clusters.folder("west"))).await;
        joined.warned(&["leader: ", "freeport-records does not exist", "freeport init"]);
        joined.warned(&["leader: ", "https://127.0.0.1:", "loopback", "--leader-server"]);
        set.join("leader").await;

        let weaken = r#"{"spec":{"validationActions":["Warn","Audit"]}}"#;
        let imports = "validatingadmissionpolicybinding freeport-imports";
        let line = format!("--context west patch {imports} --type merge -p {weaken}");
        clusters.kubectl(&line).await.succeeded();
        let west = clusters.freeport("status --context west").await;
        west.reported(1, &["freeport-imports: is switched off", "next: run `freeport join` again"]);
        clusters.kubectl(&format!("--context west delete {imports}")).await.succeeded();
        set.join("west").await;

        // The daemon itself may read no policy.
        let kubeconfig = format!("{}/freeport-member.kubeconfig", clusters.folder("west"));
        let unseen =
            well(async || clusters.freeport(&format!("status --kubeconfig {kubeconfig}")).await).await;
        let note = "note: ValidatingAdmissionPolicy freeport-imports was not checked: ";
        assert!(unseen.contains(note), "{unseen}");
        set.join("east").await;
        all_is_well(set).await;
    });
}

/// What a command prints once it finds that all is well: a renewal of a Lease may be late.
async fn well(run: impl AsyncFn() -> Ran) -> String {
    within(VOUCHED, "all is well", async || {
        let ran = run().await;
        if ran.code == Some(0) { Ok(ran.stdout) } else { Err(ran.to_string()) }
    })
    .await
}

/// Waits until each cluster of the set says that all is well.
pub(crate) async fn all_is_well(set: &MemberSet) {
    for cluster in SET {
        let line = format!("status --context {cluster} -o json");
        let report = within(VOUCHED, &format!("{cluster} is well"), || async {
            let ran = set.clusters.freeport(&line).await;
            if ran.code == Some(0) { Ok(json(&ran.stdout)) } else { Err(ran.to_string()) }
        })
        .await;
        assert_eq!(report["problems"], serde_json::json!([]), "{report}");
        assert_eq!(report["belongs"][0]["clusterID"], cluster, "{report}");
        assert_eq!(report["belongs"][0]["stale"], false, "{report}");
    }
}

/// Waits until the leader says that `east` is silent.
pub(crate) async fn names_the_silent_member(set: &MemberSet) {
    within(VOUCHED, "east is silent", || async {
        let ran = set.clusters.freeport("status --context leader -o json").await;
        let report = json(&ran.stdout);
        if state(&report, "east") == "NotReady" && state(&report, "west") == "Ready" {
            assert_eq!(ran.code, Some(1), "{ran}");
            return Ok(());
        }
        Err(ran.to_string())
    })
    .await;
    let away = [
        "Lease freeport-system/freeport-member: freeport-member does not renew its Lease: last renewed",
        "is not running; it last reported: Ready is True",
    ];
    within(VOUCHED, "east knows it of itself", || async {
        let ran = set.clusters.freeport("status --context east").await;
        let told = ran.code == Some(1) && away.iter().all(|part| ran.stdout.contains(part));
        if told { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
    let text = set.clusters.kubectl("freeport status --context leader").await;
    text.reported(1, &["cluster east is NotReady: last renewed", "does freeport-member run in cluster east"]);
}

/// The leader knows that `east` was removed, and finds nothing wrong with that.
pub(crate) async fn says_that_it_left(set: &MemberSet) {
    within(VOUCHED, "east has left", || async {
        let ran = set.clusters.freeport("status --context leader -o json").await;
        match (ran.code, state(&json(&ran.stdout), "east").as_str()) {
            (Some(0), "Left") => Ok(()),
            _ => Err(ran.to_string()),
        }
    })
    .await;
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// State of a cluster in the leader's report.
fn state(report: &Value, cluster: &str) -> String {
    let clusters = report["leads"][0]["clusters"].as_array();
    let found = clusters.into_iter().flatten().find(|entry| entry["clusterID"] == cluster);
    found.and_then(|entry| entry["state"].as_str()).unwrap_or_default().to_owned()
}
