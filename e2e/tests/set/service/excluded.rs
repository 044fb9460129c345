//! Namespaces that the administrator excluded from exporting.

use e2e::{
    cluster::Cluster,
    fixture::shared,
    seen::{event, holds, imported, not_imported, right, says},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

async fn label(cluster: &Cluster, namespace: &str, export: Value) {
    let patch = json!({"metadata": {"labels": {"multicluster.freeport.dev/export": export}}});
    let namespaces = Api::<Namespace>::all(cluster.client.clone());
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

#[e2e::test]
fn r7_what_was_exported_before_its_namespace_was_excluded_is_withdrawn_until_it_no_longer_is() {
    shared(async |world| {
        let ns = world.namespace("excluded", &["leader", "east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for exporter in ["east", "west"] {
            world.cluster(exporter).exported(&ns, "web", &["10.1.0.1"]).await;
        }
        let both = || async { right(imported(west, &ns, "web").await, |seen| seen.clusters.len() == 2) };
        eventually("both export", both).await;

        label(east, &ns, json!("false")).await;
        let excluded = || says(east, (&ns, "web"), "Valid", "False", "NamespaceExcluded");
        eventually("the ServiceExport says why", excluded).await;
        eventually("not exported", || says(east, (&ns, "web"), "Ready", "False", "Pending")).await;
        eventually("its Event", || event(east, &ns, "web", "NamespaceExcluded")).await;
        for importer in [east, west] {
            eventually("east's part is withdrawn, west's stays", || async {
                right(imported(importer, &ns, "web").await, |seen| {
                    seen.clusters.iter().eq(["west"]) && seen.addresses("east").is_empty()
                })
            })
            .await;
        }

        label(east, &ns, Value::Null).await;
        eventually("exported again", both).await;
        eventually("and told so", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;
        label(west, &ns, json!("false")).await;
        label(east, &ns, json!("false")).await;
        for importer in world.clusters() {
            eventually("nobody exports it any more", || not_imported(importer, &ns, "web")).await;
        }
        eventually("nor in the Common Area", || holds(world, &ns, "web", 0)).await;
        world.release(&ns).await;
    });
}
