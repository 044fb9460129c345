//! Issue 38: an import that ends and comes back within some minutes has its address again, unless another Service has it.

use e2e::{
    daemon::End,
    fixture::{World, alone},
    seen::{imported, not_imported},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Service;
use serde_json::json;

/// The ServiceExport of `web` is deleted; `west` imports it no more.
async fn ends(world: &World, ns: &str) {
    world.cluster("east").unexport(ns, "web").await;
    eventually("withdrawn", || not_imported(world.cluster("west"), ns, "web")).await;
}

#[e2e::test]
fn an_export_that_is_replaced_keeps_its_address_in_other_clusters_unless_somebody_has_it() {
    alone(async |world| {
        let ns = &world.namespace("returning", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        let first = eventually("imported", || imported(west, ns, "web")).await;
        // As `kubectl replace --force` does.
        east.unexport(ns, "web").await;
        east.export(ns, "web").await;
        let replaced = eventually("imported again", || imported(west, ns, "web")).await;
        assert_eq!(replaced.vip, first.vip);

        ends(world, ns).await;
        world.end("freeport-member-west", End::Stop).await;
        world.start("freeport-member-west").await;
        east.export(ns, "web").await;
        let restarted = eventually("imported after a restart", || imported(west, ns, "web")).await;
        assert_eq!(restarted.vip, first.vip);

        ends(world, ns).await;
        let taken =
            json!({"metadata": {"name": "mine"}, "spec": {"clusterIP": first.vip, "ports": [{"port": 80}]}});
        eventually("somebody takes the address", || async {
            let mine = serde_json::from_value(taken.clone()).unwrap();
            let made = west.api::<Service>(ns).create(&kube::api::PostParams::default(), &mine).await;
            made.map_err(|error| error.to_string())
        })
        .await;
        east.export(ns, "web").await;
        let other = eventually("imported with another address", || imported(west, ns, "web")).await;
        assert_ne!(other.vip, first.vip);
        let mine = west.api::<Service>(ns).get("mine").await.unwrap();
        assert_eq!(mine.spec.unwrap().cluster_ip, Some(first.vip));
        world.release(ns).await;
    });
}
