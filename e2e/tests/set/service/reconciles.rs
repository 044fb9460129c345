//! One reconcile per change. Counts of reconciles, not times: a controller reconciles a Service only for what it reads.

use std::collections::BTreeMap;

use e2e::{
    audit::while_all_are_heard,
    fixture::{CLUSTERS, World, alone},
    seen::{imported, right, says},
    waiting::eventually,
};

const METRIC: &str = "freeport_reconcile_total";

/// Reconciles of each member, by cluster and controller, without those that did none.
type Counts = BTreeMap<(&'static str, String), f64>;

async fn counts(world: &World) -> Counts {
    // Nothing is left to write, and everybody has seen what was written.
    world.settled().await;
    let mut counts = Counts::new();
    for cluster in CLUSTERS {
        let metrics = world.metrics(&format!("freeport-member-{cluster}")).await.unwrap();
        // Of all Services together there is one report, whose controller looks at most every 2 s.
        let of_services = metrics.by(METRIC, "controller").into_iter();
        let of_cluster = of_services.filter(|(controller, _)| controller != "report");
        counts.extend(of_cluster.map(|(controller, count)| ((cluster, controller), count)));
    }
    counts
}

async fn since(world: &World, before: &Counts) -> Counts {
    let now = counts(world).await;
    let more = now.into_iter().map(|(of, count)| {
        let had = before.get(&of).copied().unwrap_or_default();
        (of, count - had)
    });
    let more: Counts = more.filter(|(_, count)| *count > 0.0).collect();
    e2e::note!("reconciles: {more:?}");
    more
}

/// Waits until every cluster has imported just this endpoint of `web`.
async fn everywhere(world: &World, ns: &str, address: &str) {
    for name in CLUSTERS {
        let cluster = world.cluster(name);
        eventually(&format!("{name} has {address}"), || async {
            right(imported(cluster, ns, "web").await, |seen| seen.addresses("east") == [address])
        })
        .await;
    }
}

#[e2e::test]
fn a_change_is_one_reconcile_by_each_controller_that_reads_it() {
    alone(async |world| {
        let ns = world.namespace("reconciles", &CLUSTERS).await;
        let east = world.cluster("east");
        east.service(&ns, "web", &[("http", 80)]).await;
        east.slice(&ns, "web", "web-1", &["10.1.0.7"], &[("http", 8080)]).await;

        let before = counts(world).await;
        east.export(&ns, "web").await;
        everywhere(world, &ns, "10.1.0.7:8080").await;
        eventually("Ready", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        let exported = since(world, &before).await;
        assert!(exported.values().all(|count| *count <= 3.0), "a new export: {exported:?}");
        let at_importers = exported.keys().filter(|(cluster, _)| *cluster != "east");
        assert!(at_importers.clone().all(|(_, controller)| controller == "import"), "{exported:?}");

        let changed = while_all_are_heard(world, async |turn| {
            let (before, address) = (counts(world).await, format!("10.1.1.{turn}"));
            east.replace_slice(&ns, "web", "web-1", &[&address], &[("http", 8080)]).await;
            everywhere(world, &ns, &format!("{address}:8080")).await;
            since(world, &before).await
        })
        .await;
        let import = CLUSTERS.map(|cluster| ((cluster, "import".to_owned()), 1.0));
        let export = (("east", "export".to_owned()), 1.0);
        assert_eq!(changed, import.into_iter().chain([export]).collect(), "an endpoint");

        east.unexport(&ns, "web").await;
        world.release(&ns).await;
    });
}
