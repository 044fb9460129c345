//! What is exported in one set is nobody's business in another.

use std::collections::BTreeSet;

use api::resource_export::ResourceExport;
use e2e::{
    seen::{imported, not_imported, right},
    waiting::{always, eventually},
};
use kube::api::ListParams;

use crate::areas::fixture::{AREAS, Areas, FIRST, SECOND, area};

/// IDs of the clusters that have records in a set's Common Area, but for those that the flood left.
async fn exporters(world: &Areas, set: &str) -> BTreeSet<String> {
    let records = world
        .leader()
        .api::<ResourceExport>(&area(set))
        .list(&ListParams::default().labels("sourceClusterID"))
        .await
        .unwrap();
    records.into_iter().filter_map(|record| record.spec.cluster_id).collect()
}

#[e2e::test]
fn exports_do_not_cross_sets() {
    AREAS.beside(async |world| {
        let ns = world.namespace_everywhere("apart").await;
        for (cluster, address, only) in [
            ("leader", "10.1.0.1", "only-leader"),
            ("east", "10.2.0.1", "only-east"),
            ("west", "10.3.0.1", "only-west"),
        ] {
            world.cluster(cluster).exported(&ns, "web", &[address]).await;
            world.cluster(cluster).exported(&ns, only, &[address]).await;
        }
        for (cluster, of) in
            [("leader", ["leader", "east"].as_slice()), ("east", &["leader", "east"]), ("west", &["west"])]
        {
            let (seen, of) = (world.cluster(cluster), of.iter().map(|&of| of.to_owned()).collect());
            eventually(&format!("{cluster} sees its own set"), || async {
                right(imported(seen, &ns, "web").await, |seen| {
                    seen.clusters == of && seen.endpoints.keys().cloned().collect::<BTreeSet<_>>() == of
                })
            })
            .await;
            for other in of {
                eventually(&format!("and all of it: {other}"), || {
                    let only = format!("only-{other}");
                    let ns = &ns;
                    async move { imported(seen, ns, &only).await }
                })
                .await;
            }
        }
        always("and nothing else", || async {
            for (cluster, service) in [
                ("west", "only-leader"),
                ("west", "only-east"),
                ("leader", "only-west"),
                ("east", "only-west"),
            ] {
                not_imported(world.cluster(cluster), &ns, service).await?;
            }
            Ok(())
        })
        .await;
        assert_eq!(exporters(world, FIRST).await, ["leader", "east"].map(str::to_owned).into());
        assert_eq!(exporters(world, SECOND).await, ["west".to_owned()].into());
        eventually("members are counted for each", || async {
            let members = (
                world.measured("freeport_members", FIRST).await?,
                world.measured("freeport_members", SECOND).await?,
            );
            if members == (Some(2.0), Some(1.0)) { Ok(()) } else { Err(format!("{members:?}")) }
        })
        .await;
        world.release(&ns).await;
    });
}
