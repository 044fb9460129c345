//! `freeport why` of set-ups that are broken in one way each, and mended by the command that it prints where there is one.

use e2e::waiting::{VOUCHED, within};

use crate::cli::{
    dns::server::Server,
    get,
    member_set::{MemberSet, alone},
};

const NS: &str = "why";

#[e2e::test]
fn each_cause_is_named_by_its_code_and_is_gone_when_it_is_mended() {
    alone(async |set| {
        set.join("east").await;
        let (leader, east, west) = (set.cluster("leader"), set.cluster("east"), set.cluster("west"));
        east.create_namespace(NS).await;
        east.service(NS, "web", &[("http", 80)]).await;
        east.slice(NS, "web", "web-1", &["10.2.0.1"], &[("http", 8080)]).await;
        mended(set, "web", "FP201").await;

        // It exports now, and west has no such Namespace.
        mended(set, "web", "FP501").await;
        well(set, "web").await;

        west.service(NS, "antrea-mc-taken", &[("http", 80)]).await;
        east.exported(NS, "taken", &["10.2.0.2"]).await;
        mended(set, "taken", "FP502").await;
        well(set, "taken").await;

        leader.create_namespace(NS).await;
        leader.service(NS, "web", &[("http", 8080)]).await;
        leader.slice(NS, "web", "web-1", &["10.1.0.1"], &[("http", 8080)]).await;
        leader.export(NS, "web").await;
        let said = found(set, "web", "FP401").await;
        checked(set, "FP401").await;
        assert!(said.contains("west can use why/web in part (FP401)"), "{said}");
        get::lists_a_conflict(set, NS).await;
        an_observer_sees_the_same(set).await;
        leader.unexport(NS, "web").await;
        well(set, "web").await;

        let server = Server::install(set).await;
        mended(set, "web", "FP701").await;
        let unbind = "delete clusterrolebinding coredns-serviceimports";
        set.clusters.kubectl(&format!("--context west {unbind}")).await.succeeded();
        mended(set, "web", "FP702").await;
        found(set, "web", "FP703").await;
        checked(set, "FP703").await;
        server.release().await;

        nothing_is_written(set).await;
        let clusters = set.clusters;
        clusters.freeport("why why/web --context nowhere").await.misused(&["\"nowhere\"", "west"]);
        clusters.freeport("why why/web --context west --from north").await.misused(&["\"north\"", "west"]);
        clusters.freeport("explain fp501").await.reported(0, &["FP501: ", "create namespace NAMESPACE"]);
        for cluster in [leader, east, west] {
            cluster.release_namespace(NS).await;
        }
    });
}

fn line(service: &str) -> String {
    format!("why {NS}/{service} --from west --contexts west,east --leader-context leader")
}

/// Waits until `freeport why` names the code, and no other one; what it prints.
async fn found(set: &MemberSet, service: &str, code: &str) -> String {
    within(VOUCHED, &format!("{code} of {service}"), async || {
        let ran = set.clusters.freeport(&line(service)).await;
        let codes = ran.stdout.lines().filter(|line| line.contains(" FP")).count();
        match ran.code == Some(1) && ran.stdout.contains(&format!(" {code} ")) && codes == 1 {
            true => Ok(ran.stdout),
            false => Err(ran.to_string()),
        }
    })
    .await
}

/// Waits until `freeport check` finds the code in the cluster that it is about, and nothing else there. That nobody exports is no fault of a cluster.
async fn checked(set: &MemberSet, code: &str) {
    let place = match code {
        "FP201" => return,
        // Of those that disagree the first one is named.
        "FP401" => "east",
        _ => "west",
    };
    within(VOUCHED, &format!("check finds {code} in {place}"), async || {
        let ran = set.clusters.freeport("check --contexts west,east --leader-context leader -o short").await;
        let failed = ran.stdout.lines().filter(|line| line.starts_with(&format!("FAILED {place} ")));
        let failed: Vec<_> = failed.collect();
        let is_it = matches!(failed[..], [line] if line.contains(&format!(": {code} ")));
        if ran.code == Some(1) && is_it { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
}

/// Waits for the code, and runs the command that is to be tried.
async fn mended(set: &MemberSet, service: &str, code: &str) {
    let said = found(set, service, code).await;
    checked(set, code).await;
    let (_, command) = said.trim_end().rsplit_once("try: ").unwrap();
    set.clusters.shell(command).await.succeeded();
}

/// Waits until nothing is found. There is no CoreDNS, so its step is not known.
async fn well(set: &MemberSet, service: &str) {
    within(VOUCHED, &format!("{service} is well"), async || {
        let ran = set.clusters.freeport(&line(service)).await;
        let is_well = ran.code == Some(0)
            && ran.stdout.contains("not known: dns; not dialled")
            && ran.stderr.is_empty();
        if is_well { Ok(()) } else { Err(ran.to_string()) }
    })
    .await;
}

async fn nothing_is_written(set: &MemberSet) {
    for cluster in ["leader", "west"] {
        let before = set.clusters.written_by_people(cluster).await;
        set.clusters.freeport(&line("web")).await.succeeded();
        set.clusters.freeport("check --contexts west,east --leader-context leader").await;
        assert_eq!(set.clusters.written_by_people(cluster).await, before, "{cluster}");
    }
}

/// Who is bound to `freeport-observer`, and to nothing else, finds what an administrator finds.
async fn an_observer_sees_the_same(set: &MemberSet) {
    let clusters = set.clusters;
    let binding = "create clusterrolebinding why-observers --clusterrole freeport-observer --group observers";
    for cluster in ["leader", "east", "west"] {
        clusters.kubectl(&format!("--context {cluster} {binding}")).await.succeeded();
    }
    let area = "--context leader -n clusterset-demo";
    let role = "create rolebinding why-observers --role freeport-observer --group observers";
    clusters.kubectl(&format!("{area} {role}")).await.succeeded();
    let jane = "--as jane --as-group observers";
    // The API server takes a moment to know of a binding.
    within(VOUCHED, "an observer sees all steps", async || {
        let all = clusters.freeport(&line("web")).await;
        let seen = clusters.freeport(&format!("{} {jane}", line("web"))).await;
        let steps =
            |ran: &str| ran.lines().filter_map(|line| line.get(..18).map(str::to_owned)).collect::<Vec<_>>();
        let is_same = steps(&seen.stdout) == steps(&all.stdout) && seen.code == all.code;
        if is_same && seen.stderr.is_empty() { Ok(()) } else { Err(seen.to_string()) }
    })
    .await;
    let listed = clusters.freeport(&format!("get services -A --contexts west,leader {jane}")).await;
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed}");
    let plan = format!("plan --unexport {NS}/web --contexts leader,west,east");
    let (all, seen) = (clusters.freeport(&plan).await, clusters.freeport(&format!("{plan} {jane}")).await);
    assert_eq!(
        (seen.code, seen.stdout.as_str(), seen.stderr.as_str()),
        (all.code, all.stdout.as_str(), ""),
        "{seen}"
    );
    let nobody = clusters.freeport("get imports -A --context west --as nobody").await;
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(3), ""), "{nobody}");
    assert!(nobody.stderr.contains("note: serviceimports of west were not looked at: "), "{nobody}");
    for cluster in ["leader", "east", "west"] {
        let line = format!("--context {cluster} delete clusterrolebinding why-observers");
        clusters.kubectl(&line).await.succeeded();
    }
    clusters.kubectl(&format!("{area} delete rolebinding why-observers")).await.succeeded();
}
