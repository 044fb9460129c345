//! Issue 38: the exporter reads which clusters do not import a Service because they lack its Namespace.

use e2e::{
    fixture::{CLUSTERS, shared},
    seen::{conditions, imported},
    waiting::eventually,
};

#[e2e::test]
fn an_exporter_reads_which_clusters_lack_the_namespace_until_they_have_it() {
    shared(async |world| {
        let ns = &world.namespace("lacking", &["east"]).await;
        let east = world.cluster("east");
        let says = async |lack: Option<&str>| {
            let said = conditions(east, ns, "web").await.remove("Ready");
            let said = said.filter(|said| said.reason == "Exported").ok_or("not exported")?;
            let lack = lack
                .map(|lack| format!(". It is not imported in {lack}, because there is no Namespace {ns};"));
            let is_right = match &lack {
                Some(lack) => said.message.contains(lack),
                None => said.message == "the leader has merged this export",
            };
            if is_right && said.status == "True" { Ok(()) } else { Err(said.message) }
        };
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("two lack it", || says(Some("leader, west"))).await;
        east.exported(ns, "db", &["10.1.0.2"]).await;
        world.leader().create_namespace(ns).await;
        eventually("one lacks it", || says(Some("west"))).await;
        world.cluster("west").create_namespace(ns).await;
        eventually("all have it", || says(None)).await;
        for name in CLUSTERS {
            eventually(&format!("{name} imports"), || imported(world.cluster(name), ns, "web")).await;
        }
        world.release(ns).await;
    });
}
