//! Namespaces come and go.

use api::mcs::ServiceImport;

use e2e::{
    fixture::shared,
    seen::{holds, imported, not_imported, right, says},
    waiting::eventually,
    watched::Watched,
};

#[e2e::test]
fn r19_r20_an_import_waits_for_its_namespace_and_is_not_missed_when_it_goes() {
    shared(async |world| {
        let ns = world.namespace("late", &["leader", "east"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        let before = eventually("imported where the Namespace is", || async {
            right(imported(leader, &ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let elsewhere = Watched::<ServiceImport>::of(leader, &ns).await;

        west.create_namespace(&ns).await;
        let first = eventually("imported once the Namespace is there", || imported(west, &ns, "web")).await;
        west.delete_namespace(&ns).await;
        west.create_namespace(&ns).await;
        let second =
            eventually("imported into the next one of that name", || imported(west, &ns, "web")).await;
        assert_ne!(first.import_uid, second.import_uid);
        assert_eq!(imported(leader, &ns, "web").await, Ok(before), "others do not notice");
        elsewhere.nothing_deleted("others do not notice");
        eventually("Ready all along", || says(east, (&ns, "web"), "Ready", "True", "Exported")).await;

        east.delete_namespace(&ns).await;
        for cluster in [leader, west] {
            eventually(&format!("withdrawn with its Namespace from {}", cluster.name), || {
                not_imported(cluster, &ns, "web")
            })
            .await;
        }
        eventually("nor in the Common Area", || holds(world, &ns, "web", 0)).await;
        world.release(&ns).await;
    });
}
