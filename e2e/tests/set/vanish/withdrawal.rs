//! Much is taken back at once: by members, which say so, or by what the leader's imports say alone.

use std::time::Instant;

use api::{cluster_set::ClusterSet, label, mcs::ServiceImport, resource_import::ResourceImport};
use e2e::{
    cluster::Cluster,
    cluster_set::imports_complete,
    daemon::{End, LEADER},
    fixture::{AREA, CLUSTERS, SET, SYSTEM, World, alone},
    seen::event,
    waiting::{VOUCHED, always, eventually, within},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

const WEST: &str = "freeport-member-west";
const SERVICES: usize = 40;
/// Of 40, 30 of a hundred go by the leader's word.
const STAY: usize = SERVICES - 12;

async fn imports(cluster: &Cluster, ns: &str) -> Result<usize, String> {
    let imports = cluster.api::<ServiceImport>(ns).list_metadata(&ListParams::default()).await;
    imports.map(|imports| imports.items.len()).map_err(|error| error.to_string())
}

async fn are(cluster: &Cluster, ns: &str, count: usize) -> Result<(), String> {
    let there = imports(cluster, ns).await?;
    if there == count { Ok(()) } else { Err(format!("{there} imports in {}", cluster.name)) }
}

/// Whether most are there and some are not. Other tests may have left imports of which a share goes as well, so it is not the exact number.
async fn most_are(cluster: &Cluster, ns: &str) -> Result<(), String> {
    let there = imports(cluster, ns).await?;
    if (STAY - 4..=STAY).contains(&there) {
        Ok(())
    } else {
        Err(format!("{there} imports in {}", cluster.name))
    }
}

/// What is left of the ResourceImports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Empty,
    /// A leader deletes what it takes back.
    Nothing,
}

/// Makes all ResourceImports say that nobody exports anything, while no leader puts that right.
async fn nobody_exports(world: &World, ns: &str, left: Left) {
    world.end(LEADER, End::Stop).await;
    let all = world.leader().api::<ResourceImport>(AREA);
    for import in all.list(&ListParams::default()).await.unwrap() {
        if import.spec.namespace.as_deref() == Some(ns) {
            let none = json!({"spec": {"exporters": []}});
            let _: ResourceImport = world.leader().patch(AREA, &import.name_any(), &none).await;
            if left == Left::Nothing {
                all.delete(&import.name_any(), &DeleteParams::default()).await.unwrap();
            }
        }
    }
}

async fn says(cluster: &Cluster, reason: &str) -> Result<(), String> {
    let said = imports_complete(cluster).await?;
    if said.0 == reason { Ok(()) } else { Err(format!("{said:?}")) }
}

/// Whether the member counts all imports that are left.
async fn are_withheld(world: &World, ns: &str) -> Result<(), String> {
    let withheld = world.metrics(WEST).await?.sum("freeport_imports_withheld");
    let there = imports(world.cluster("west"), ns).await?;
    if withheld == there as f64 { Ok(()) } else { Err(format!("{withheld} of {there} are withheld")) }
}

#[e2e::test]
fn what_only_the_leader_takes_back_stays_for_the_most_part_and_what_members_take_back_goes() {
    alone(async |world| {
        let ns = world.namespace("withdrawal", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for number in 0..SERVICES {
            east.exported(&ns, &format!("web-{number}"), &["10.1.0.1"]).await;
        }
        within(VOUCHED, "imported", || are(west, &ns, SERVICES)).await;

        nobody_exports(world, &ns, Left::Empty).await;
        within(VOUCHED, "it is said", || says(west, "MassWithdrawal")).await;
        within(VOUCHED, "some go", || most_are(west, &ns)).await;
        always("the others stay", || most_are(west, &ns)).await;
        eventually("an Event says it", || event(west, SYSTEM, SET, "MassWithdrawal")).await;
        are_withheld(world, &ns).await.unwrap();
        world.start(LEADER).await;
        within(VOUCHED, "the leader puts it right", || are(west, &ns, SERVICES)).await;
        within(VOUCHED, "it is said", || says(west, "Complete")).await;

        // Longer than what counts as at once.
        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        nobody_exports(world, &ns, Left::Nothing).await;
        within(VOUCHED, "some go", || most_are(west, &ns)).await;
        always("the others stay", || most_are(west, &ns)).await;
        within(VOUCHED, "it is said", || says(west, "MassWithdrawal")).await;
        world.end(WEST, End::Crash).await;
        world.start(WEST).await;
        within(VOUCHED, "another process finds the same", || are_withheld(world, &ns)).await;
        within(VOUCHED, "and says it", || says(west, "MassWithdrawal")).await;
        let annotations = json!({"metadata": {"annotations": {label::LET_GO: "2026-11-26"}}});
        let _: ClusterSet = west.patch(SYSTEM, SET, &annotations).await;
        within(VOUCHED, "somebody lets them go", || are(west, &ns, 0)).await;
        world.start(LEADER).await;
        within(VOUCHED, "the leader puts it right", || are(west, &ns, SERVICES)).await;

        tokio::time::sleep(std::time::Duration::from_secs(11)).await;
        let begun = Instant::now();
        let exports = east.api::<api::mcs::ServiceExport>(&ns);
        exports.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        within(VOUCHED, "what its member takes back goes", || are(west, &ns, 0)).await;
        e2e::note!("{SERVICES} exports end: gone in {:.1} s", begun.elapsed().as_secs_f64());
        let annotations = json!({"metadata": {"annotations": {label::LET_GO: null}}});
        let _: ClusterSet = west.patch(SYSTEM, SET, &annotations).await;
        world.release(&ns).await;
    });
}
