//! Issue 41: exporters read from ClusterReports where their Services are not imported, and why.

use std::time::Duration;

use api::{
    condition::Condition,
    mcs::IMPORTED,
    report::{ClusterReport, ClusterReportStatus},
};
use e2e::{
    audit,
    cluster::Cluster,
    daemon::{DAEMONS, End, LEADER},
    fixture::{AREA, CLUSTERS, World, alone},
    ground::is_simulated,
    seen::{conditions, event, imported},
    waiting::{SWEPT, eventually, within},
};
use k8s_openapi::api::core::v1::Service;
use kube::{
    CustomResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

/// Condition `Imported` of the ServiceExport, if that is its reason.
async fn says(east: &Cluster, (ns, name): (&str, &str), reason: &str) -> Result<Condition, String> {
    let said = conditions(east, ns, name).await.remove(IMPORTED).ok_or("says nothing")?;
    if said.reason == reason { Ok(said) } else { Err(format!("{said:?}")) }
}

/// What a cluster reports.
async fn report(world: &World, cluster: &str) -> ClusterReportStatus {
    let report = world.leader().api::<ClusterReport>(AREA).get_opt(cluster).await.unwrap();
    report.and_then(|report| report.status).unwrap_or_default()
}

/// Writes of reports since then, by verb and cluster.
fn written(world: &World, since: &audit::Mark) -> Vec<String> {
    let of_reports =
        audit::written(world, since).into_iter().filter(|write| write.what().contains("clusterreports"));
    of_reports.map(|write| format!("{} {}", write.what(), write.name())).collect()
}

/// Restarts all daemons and lets time go by.
async fn restart(world: &World, how: End, seconds: u64) {
    for daemon in DAEMONS {
        world.end(daemon, how).await;
        world.start(daemon).await;
    }
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Runs a test in a ClusterSet in which no report is written late because it changed in earlier tests.
fn fresh<F: Future<Output = ()>>(test: impl FnOnce(&'static World) -> F) {
    alone(|world| async move {
        restart(world, End::Stop, 0).await;
        world.settled().await;
        test(world).await;
    });
}

#[e2e::test]
fn an_exporter_reads_where_its_service_is_not_imported_and_why() {
    fresh(async |world| {
        let ns = &world.namespace("reports", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        west.service(ns, "antrea-mc-taken", &[("mine", 7)]).await;
        east.exported(ns, "taken", &["10.1.0.1"]).await;
        east.exported(ns, "web", &["10.1.0.2"]).await;
        let missing =
            eventually("leader has no Namespace", || says(east, (ns, "web"), "NamespaceMissing")).await;
        let said = format!("not in leader: it has no Namespace {ns}");
        assert_eq!((missing.status.as_str(), missing.message.as_str()), ("True", said.as_str()));
        eventually("its Event", || event(east, ns, "web", "NamespaceMissing")).await;
        let taken =
            eventually("the name is taken in west", || says(east, (ns, "taken"), "NotEverywhere")).await;
        let begins = "west: ServiceNameTaken: Service antrea-mc-taken exists";
        assert!(taken.status == "False" && taken.message.starts_with(begins), "{taken:?}");
        assert!(taken.message.ends_with(&said), "{taken:?}");
        eventually("its Event", || event(east, ns, "taken", "NotEverywhere")).await;
        let west_reports = report(world, "west").await;
        assert_eq!((west_reports.missing_namespaces.len(), west_reports.not_ready.len()), (0, 1));
        assert_eq!(west_reports.features, ["Services"]);

        west.delete::<Service>(ns, "antrea-mc-taken").await;
        leader.create_namespace(ns).await;
        for name in ["taken", "web"] {
            let said = eventually(name, || says(east, (ns, name), "Imported")).await;
            assert_eq!(said.status, "True");
            eventually("its Event", || event(east, ns, name, "Imported")).await;
        }
        assert_eq!(report(world, "west").await.not_ready, []);
        world.release(ns).await;
    });
}

/// Exports of one Namespace that two clusters lack.
const MANY: usize = 40;

#[e2e::test]
fn what_many_exports_change_costs_one_report_and_a_restart_none() {
    fresh(async |world| {
        let (ns, east) = (&world.namespace("one-report", &["east"]).await, world.cluster("east"));
        let names: Vec<_> = (0..MANY).map(|n| format!("web-{n}")).collect();
        let mark = audit::mark(world);
        for name in &names {
            east.exported(ns, name, &["10.1.0.1"]).await;
        }
        for name in &names {
            eventually(name, || says(east, (ns, name), "NamespaceMissing")).await;
        }
        world.settled().await;
        let mut reports = written(world, &mark);
        reports.sort();
        let of = |cluster: &str| format!("patch clusterreports/status {cluster}");
        assert_eq!(reports, [of("leader"), of("west")]);

        // On real programs minutes are too long.
        let numbers = if is_simulated() { 400 } else { 0 };
        tokio::time::sleep(Duration::from_secs(numbers)).await;
        if is_simulated() {
            assert_eq!(report(world, "east").await.exports.total, i32::try_from(MANY).unwrap());
            assert_eq!(report(world, "west").await.imports.total, i32::try_from(MANY).unwrap());
        }
        for how in [End::Stop, End::Crash] {
            let mark = audit::mark(world);
            restart(world, how, numbers + 5).await;
            assert_eq!(written(world, &mark), [""; 0], "{how:?}");
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn without_the_kind_nothing_is_reported_and_nothing_fails() {
    fresh(async |world| {
        let ns = &world.namespace("no-reports", &["east", "west"]).await;
        let (leader, east) = (world.leader(), world.cluster("east"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("it is reported", || says(east, (ns, "web"), "NamespaceMissing")).await;
        let crd = leader.take_crd(ClusterReport::crd_name()).await;
        restart(world, End::Stop, 0).await;
        eventually("nothing is said any more", || async {
            match says(east, (ns, "web"), "NamespaceMissing").await {
                Err(said) if said == "says nothing" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        east.exported(ns, "db", &["10.1.0.2"]).await;
        eventually("exports go on", || imported(world.cluster("west"), ns, "db")).await;
        for name in CLUSTERS {
            let says = world.member_says(name, ("True", "Connected")).await;
            assert!(!says.contains("ClusterReport"), "{says}");
        }
        leader.put_back_crd(crd).await;
        eventually("it is reported again", || says(east, (ns, "web"), "NamespaceMissing")).await;
        world.release(ns).await;
    });
}

/// What no member would write: a report of a cluster that has no Lease, with an escape code.
#[e2e::test]
fn what_a_cluster_left_behind_is_printable_and_swept() {
    fresh(async |world| {
        let (ns, east) = (&world.namespace("left-report", &CLUSTERS).await, world.cluster("east"));
        let since = "2026-11-01T12:00:00Z";
        let import = json!({"namespace": ns, "name": "web", "reason": "Odd", "message": "\u{1b}[31mred", "since": since});
        let reports = world.leader().api::<ClusterReport>(AREA);
        let _: ClusterReport = world.leader().create(AREA, json!({"metadata": {"name": "north"}})).await;
        let status = Patch::Merge(json!({"status": {"notReady": [import]}}));
        reports.patch_status("north", &PatchParams::default(), &status).await.unwrap();
        east.exported(ns, "web", &["10.1.0.1"]).await;
        let odd = eventually("it is read", || says(east, (ns, "web"), "NotEverywhere")).await;
        assert_eq!(odd.message, "north: Odd:  [31mred");
        within(SWEPT, "it is deleted", || async {
            let there = reports.get_opt("north").await.map_err(|error| error.to_string())?;
            there.map_or(Ok(()), |_| Err(world.log_tail(LEADER)))
        })
        .await;
        eventually("nothing is said of it", || says(east, (ns, "web"), "Imported")).await;
        for name in CLUSTERS {
            assert!(reports.get_opt(name).await.unwrap().is_some(), "{name} is a member");
        }
        world.release(ns).await;
    });
}
