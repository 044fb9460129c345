//! A leader and a member from nothing: what a dry run prints is what is applied, by whomever; names that YAML takes for
//! something else; daemons inside, which these clusters without nodes do not run.

use crate::cli::{
    another_backend,
    clusters::{Clusters, PAIR, PAIRED},
    dns, offloading,
    program::{is_unchanged, touched},
};
use e2e::manifests;
use serde_json::json;

const INIT: &str = "init --clusterset on --cluster-id no --context hub";
const JOIN: &str = "join --clusterset on --cluster-id 1.5 --context spoke --leader-context hub";

#[e2e::test]
fn a_pair_from_nothing() {
    PAIRED.beside(async |clusters| {
        for cluster in PAIR {
            let ran = clusters.freeport(&format!("status --context {cluster}")).await;
            ran.reported(1, &["neither leads nor belongs to a ClusterSet", "freeport init", "freeport join"]);
        }
        another_backend::is_asked_for_a_contract(clusters).await;
        dns::imports_come_first(clusters).await;
        kubectl_applies_what_a_dry_run_prints(clusters).await;
        names_are_kept(clusters).await;
        nothing_is_left_to_apply(clusters).await;
        ranges_are_noted_until_something_else_is_said(clusters).await;
        deployed_and_waited_for(clusters).await;
        who_never_connected_leaves(clusters).await;
        files_alone_do_it(clusters).await;
        offloading::from_nothing(clusters).await;
    });
}

async fn kubectl_applies_what_a_dry_run_prints(clusters: &Clusters) {
    let written =
        async || [clusters.written_by_people("hub").await, clusters.written_by_people("spoke").await];
    let apply = async |command: &str, only: &str, cluster: &str| {
        let line = format!("{command} --dry-run -o yaml {only}");
        let before = written().await;
        let printed = clusters.freeport(&line).await.succeeded();
        assert_eq!(written().await, before, "{line} writes nothing");
        clusters.kubectl_reading(&format!("--context {cluster} apply -f -"), &printed).await.succeeded();
        assert_ne!(written().await, before, "what kubectl writes is seen");
        printed
    };
    let served = async |cluster: &str| {
        let wait = format!("--context {cluster} wait --for=condition=established crd --all");
        clusters.kubectl(&wait).await.succeeded();
    };
    apply(INIT, "--only crds", "hub").await;
    served("hub").await;
    let all = apply(INIT, "", "hub").await;
    assert!(all.contains("kind: Deployment") && all.contains("# cluster: hub"), "{all}");
    apply(JOIN, "--only crds", "spoke").await;
    served("spoke").await;
    let there = apply(JOIN, "--only leader", "hub").await;
    assert!(there.contains("# cluster: hub") && !there.contains("# cluster: spoke"), "{there}");
    copy_the_credential(clusters, &all).await;
    let here = apply(JOIN, "--only member", "spoke").await;
    assert!(here.contains("# cluster: spoke") && !here.contains("# cluster: hub"), "{here}");
    copy_the_credential(clusters, &here).await;
}

/// Runs the command that a dry run says in a comment, since it prints no credential.
async fn copy_the_credential(clusters: &Clusters, printed: &str) {
    let (_, said) = printed.split_once("copy the credential").unwrap();
    let command =
        said.lines().skip(1).map_while(|line| line.strip_prefix("# ")).collect::<Vec<_>>().join("\n");
    clusters.shell(&command).await.succeeded();
}

async fn names_are_kept(clusters: &Clusters) {
    for (cluster, namespace, id) in [
        ("hub", "clusterset-on", "no"),
        ("hub", "freeport-system", "no"),
        ("spoke", "freeport-system", "1.5"),
    ] {
        let line =
            format!("--context {cluster} -n {namespace} get clusterset on -o jsonpath={{.spec.clusterID}}");
        assert_eq!(clusters.kubectl(&line).await.succeeded(), id);
    }
    let accounts =
        clusters.kubectl("--context hub -n clusterset-on get serviceaccounts -o name").await.succeeded();
    for account in ["serviceaccount/freeport-member-no", "serviceaccount/freeport-member-1.5"] {
        assert!(accounts.contains(account), "{accounts}");
    }
}

/// The ranges of addresses that endpoints of the member may have.
async fn ranges_are_noted_until_something_else_is_said(clusters: &Clusters) {
    let key = r"multicluster\.freeport\.dev/address-ranges";
    let account = "--context hub -n clusterset-on get serviceaccount freeport-member-1.5";
    let noted = format!("{account} -o jsonpath={{.metadata.annotations.{key}}}");
    let noted = async || clusters.kubectl(&noted).await.succeeded();
    let join = async |flags: &str| clusters.freeport(&format!("{JOIN} --only leader {flags}")).await;
    let printed = join("--dry-run --pod-cidrs 10.1.0.0/16").await.succeeded();
    assert!(printed.contains("/address-ranges: 10.1.0.0/16"), "{printed}");
    assert_eq!(noted().await, "");
    join("--pod-cidrs fd00:1::/64,10.1.0.0/16").await.succeeded();
    assert_eq!(noted().await, "10.1.0.0/16,fd00:1::/64");
    join("").await.succeeded();
    assert_eq!(noted().await, "10.1.0.0/16,fd00:1::/64");
    join("--pod-cidrs auto").await.refused(&["spoke: it cannot be found out", "--pod-cidrs 10.1.0.0/16"]);
    join("--pod-cidrs 10.1.0.0/16 --service-cidrs auto").await.succeeded();
    let both = noted().await;
    assert!(both.starts_with("10.1.0.0/16,10."), "{both}");
    join("--pod-cidrs any").await.succeeded();
    assert_eq!(noted().await, "");
}

/// But the kubeconfigs of daemons outside.
async fn nothing_is_left_to_apply(clusters: &Clusters) {
    for (command, cluster) in [(INIT, "hub"), (JOIN, "spoke")] {
        let dir = clusters.folder(cluster);
        let run = async || clusters.freeport(&format!("{command} --external {dir}")).await.succeeded();
        let said = run().await;
        let others = |line: &&str| !line.starts_with("next: ") && !line.contains(&dir);
        assert_eq!(said.lines().filter(others).find(|line| !is_unchanged(line)), None, "{said}");
        let number = |line: &str| line.split(' ').nth(1)?.parse::<u32>().ok();
        let of_cluster =
            said.lines().find(|line| line.starts_with(&format!("{cluster}: ")) && is_unchanged(line));
        assert!(of_cluster.and_then(number) > Some(10), "in one line:\n{said}");
        assert_eq!(touched(&run().await), [""; 0]);
    }
}

/// Without nodes no Pod runs, so what is said to be ready is said by an older one.
async fn deployed_and_waited_for(clusters: &Clusters) {
    an_older_member_said_that_it_is_ready(clusters).await;
    for (command, cluster, daemon) in [(INIT, "hub", "freeport-leader"), (JOIN, "spoke", "freeport-member")] {
        let all = format!("--context {cluster} -n freeport-system delete deployments --all");
        clusters.kubectl(&all).await.succeeded();
        // It was set up to run outside before, and no Lease tells whether it does.
        let outside = format!("{daemon} was set up to run outside of this cluster");
        let said =
            clusters.freeport(&format!("{command} --no-wait")).await.refused(&[&outside, "--external"]);
        assert_eq!(said, "", "nothing was changed");
        let mark = "multicluster.freeport.dev/runs-outside-";
        let inside = format!("--context {cluster} -n freeport-system annotate serviceaccounts --all {mark}");
        clusters.kubectl(&inside).await.succeeded();
        let ran = clusters.freeport(&format!("{command} --timeout 3")).await;
        let not_ready =
            format!("{cluster}: {daemon} is not ready after 3 s: Deployment freeport-system/{daemon}: ");
        let pods = format!("kubectl --context {cluster} -n freeport-system describe pods");
        let why = format!("0 of 1 Pods are available; Pod {daemon}-");
        let said = ran.timed_out(&[&not_ready, &why, ": Pending", &pods]);
        assert!(said.contains(&format!("{cluster}: created Deployment freeport-system/{daemon}")), "{said}");
        let waiting = format!("{cluster}: waiting for {daemon}: Deployment freeport-system/{daemon}: ");
        assert!(said.contains(&waiting), "{said}");
        let said = clusters.freeport(&format!("{command} --no-wait")).await.succeeded();
        assert_eq!(touched(&said), [""; 0]);
        assert!(said.lines().last().unwrap().starts_with("next: freeport "), "{said}");
        let dead = format!("Deployment freeport-system/{daemon}: has no available replica");
        let log = format!("logs deploy/{daemon}");
        clusters.freeport(&format!("status --context {cluster}")).await.reported(1, &[&dead, &log]);
    }
    let stale = "freeport-member is not running; it last reported: Ready is True";
    clusters.freeport("status --context spoke").await.reported(1, &[stale]);
}

async fn an_older_member_said_that_it_is_ready(clusters: &Clusters) {
    let set = "--context spoke -n freeport-system";
    let generation = format!("{set} get clusterset on -o jsonpath={{.metadata.generation}}");
    let generation: i64 = clusters.kubectl(&generation).await.succeeded().parse().unwrap();
    let ready = json!({"type": "Ready", "status": "True", "reason": "Connected", "message": "",
        "lastTransitionTime": "2026-11-01T12:00:00Z"});
    let status = json!({"status": {"observedGeneration": generation, "conditions": [ready]}});
    let said = format!("{set} patch clusterset on --subresource status --type merge -p {status}");
    clusters.kubectl(&said).await.succeeded();
}

async fn who_never_connected_leaves(clusters: &Clusters) {
    // What bears another name is another's, whatever it is called.
    let (credential, role) = ("secret/freeport-leader-on", "role/freeport-member-1.5");
    for (cluster, namespace, object) in
        [("spoke", "freeport-system", credential), ("hub", "clusterset-on", role)]
    {
        let line = format!("--context {cluster} -n {namespace} label {object} --overwrite");
        clusters.kubectl(&format!("{line} app.kubernetes.io/managed-by=somebody")).await.succeeded();
    }
    let said = clusters.freeport("leave --context spoke --leader-context hub").await.succeeded();
    assert!(said.contains("spoke: deleted ClusterSet freeport-system/on"), "{said}");
    assert!(said.contains("hub: deleted ServiceAccount clusterset-on/freeport-member-1.5"), "{said}");
    for left in [
        "spoke: left Secret freeport-system/freeport-leader-on",
        "hub: left Role clusterset-on/freeport-member-1.5",
    ] {
        assert!(said.contains(left), "{said}");
    }
    clusters.kubectl(&format!("--context spoke -n freeport-system delete {credential}")).await.succeeded();
    clusters.kubectl(&format!("--context hub -n clusterset-on delete {role}")).await.succeeded();
    let gone = "--context hub -n clusterset-on get serviceaccounts,roles,rolebindings,secrets -o name";
    let left = clusters.kubectl(gone).await.succeeded();
    assert!(!left.contains("1.5"), "{left}");
}

/// The commands of docs/cli.md, as they are there but for the clusters' names and the leader's address.
async fn files_alone_do_it(clusters: &Clusters) {
    manifests::apply(&clusters.world.real().fleet, "hub", "spoke").await;

    let join = "join --clusterset demo --cluster-id east --context spoke --leader-context hub --no-wait";
    let said = clusters.freeport(join).await.succeeded();
    let noted = "hub: changed ServiceAccount clusterset-demo/freeport-member-east";
    assert_eq!(touched(&said), [noted], "who the ID belongs to is all that the files cannot say");
}
