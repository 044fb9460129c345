//! CRDs are deleted, or replaced by older ones.

use e2e::{
    cluster_set::says,
    daemon::{DAEMONS, End},
    fixture::{AREA, CLUSTERS, World, alone},
    seen::{event, imported, imported_slices, right},
    waiting::{VOUCHED, eventually, within},
};
use k8s_openapi::{
    api::discovery::v1::EndpointSlice,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::ResourceExt;

use super::kept::{Kept, a_while, time_goes_by};

const RECORDS: [&str; 2] = ["resourceexports", "resourceimports"];
const PRUNED: (&str, &str) = ("False", "SchemaPruned");

async fn delete(world: &World, cluster: &str, of: Vec<CustomResourceDefinition>) {
    for crd in of {
        world.cluster(cluster).take_crd(&crd.name_any()).await;
    }
}

#[e2e::test]
fn crds_deleted_and_installed_again_take_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "crds-deleted", &["leader", "west"]).await;
        delete(world, "east", api::crd::member()).await;
        a_while().await;
        kept.nothing_went("east has no CRDs").await;
        let of_records =
            api::crd::leader().into_iter().filter(|crd| crd.spec.names.kind.starts_with("Resource"));
        delete(world, "leader", of_records.collect()).await;
        a_while().await;
        kept.nothing_went("nor does the leader know of records").await;
        world.set_up_again().await;
        time_goes_by(world).await;
        kept.nothing_went("they are back, east's ServiceExport is not").await;
        // A session that begins while there is no such CRD finds it out when there is one again.
        let vanished = || event(world.cluster("east"), kept.namespace(), "web", "ServiceExportVanished");
        eventually("an Event says that the export goes on", vanished).await;
        world.cluster("east").export(kept.namespace(), "web").await;
        kept.converges(world).await;
    });
}

/// Takes our additions out of the CRD, as Antrea's are without them.
async fn make_old(world: &World, name: &str) {
    let mut versions = world.leader().crd_versions(name).await;
    let spec =
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].as_object_mut().unwrap();
    spec.remove("exporters");
    spec.remove("endpointSlice");
    if let Some(service) = spec.get_mut("service") {
        service["properties"].as_object_mut().unwrap().retain(|key, _| key == "serviceSpec");
    }
    world.leader().install_crd_versions(name, &versions).await;
}

/// Has every daemon list everything anew.
async fn start_again(world: &World) {
    for daemon in DAEMONS {
        world.end(daemon, End::Crash).await;
        world.launch(daemon).await;
    }
}

#[e2e::test]
fn daemons_that_listed_records_by_older_crds_read_them_again_when_the_crds_are_put_right() {
    alone(async |world| {
        let kept = Kept::set_up(world, "old-lists", &["leader", "east"]).await;
        let west = world.cluster("west");
        for kind in RECORDS {
            make_old(world, &format!("{kind}.multicluster.crd.antrea.io")).await;
        }
        start_again(world).await;
        world.member_says("east", PRUNED).await;
        // What is lost now, nobody can make again: what was in it is not told.
        for slice in imported_slices(west, kept.namespace(), "web").await {
            west.delete::<EndpointSlice>(kept.namespace(), &slice.name_any()).await;
        }
        kept.nothing_went("daemons started while the CRDs are older").await;
        world.set_up_again().await;
        within(VOUCHED, "west has the endpoints again", || async {
            right(imported(west, kept.namespace(), "web").await, |seen| seen.endpoints.len() == 2)
        })
        .await;
        kept.converges(world).await;
    });
}

#[e2e::test]
fn older_crds_applied_over_ours_take_nothing_away_and_are_reported() {
    alone(async |world| {
        let kept = Kept::set_up(world, "old-crds", &CLUSTERS).await;
        for kind in RECORDS {
            make_old(world, &format!("{kind}.multicluster.crd.antrea.io")).await;
        }
        world.member_says("east", PRUNED).await;
        eventually("the leader says so", || says(world.leader(), AREA, PRUNED)).await;
        a_while().await;
        kept.nothing_went("the CRDs are older").await;
        world.set_up_again().await;
        world.member_says("east", ("True", "Connected")).await;
        eventually("and the leader is content", || says(world.leader(), AREA, ("True", "Ready"))).await;
        kept.converges(world).await;
    });
}
