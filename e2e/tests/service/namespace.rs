//! Namespaces come and go.

use crate::{
    fixture::{eventually, shared},
    seen::{imported, not_imported, says},
};

#[test]
fn an_import_waits_for_its_namespace_and_is_not_missed_when_it_goes() {
    shared(async |world| {
        let ns = world.namespace("late", &["leader", "east"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("imported where the Namespace is", || imported(leader, &ns, "web")).await;

        west.create_namespace(&ns).await;
        let first = eventually("imported once the Namespace is there", || imported(west, &ns, "web")).await;
        west.delete_namespace(&ns).await;
        imported(leader, &ns, "web").await.expect("others do not notice");
        west.create_namespace(&ns).await;
        let second =
            eventually("imported into the next one of that name", || imported(west, &ns, "web")).await;
        assert_ne!(first.import_uid, second.import_uid);
        eventually("Ready all along", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;

        east.delete_namespace(&ns).await;
        for cluster in [leader, west] {
            eventually(&format!("withdrawn with its Namespace from {}", cluster.name), || {
                not_imported(cluster, &ns, "web")
            })
            .await;
            cluster.delete_namespace(&ns).await;
        }
    });
}
