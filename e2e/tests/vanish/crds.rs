//! CRDs are deleted, or replaced by older ones.

use api::name;
use e2e::fixture::{CLUSTERS, World, alone};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::kept::Kept;

fn crds(world: &World, cluster: &str) -> Api<CustomResourceDefinition> {
    Api::all(world.cluster(cluster).client.clone())
}

async fn delete(world: &World, cluster: &str, of: Vec<CustomResourceDefinition>) {
    for crd in of {
        let name = crd.name_any();
        crds(world, cluster).delete(&name, &DeleteParams::default()).await.unwrap();
        e2e::waiting::eventually(&format!("{name} of {cluster} is gone"), || async {
            match crds(world, cluster).get_opt(&name).await.unwrap() {
                None => Ok(()),
                Some(crd) => Err(format!("{:?}", crd.status)),
            }
        })
        .await;
    }
}

#[test]
fn the_leaders_crds_deleted_and_installed_again_take_nothing_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "crds-deleted", &["east", "west"]).await;
        delete(world, "leader", api::crd::leader()).await;
        world.west_looks_on().await;
        kept.nothing_went("the leader has no CRDs").await;
        world.set_up_again().await;
        world.settled().await;
        kept.nothing_went("they are back").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}

#[test]
fn a_members_crds_deleted_and_installed_again_take_no_endpoint_away() {
    alone(async |world| {
        let kept = Kept::set_up(world, "member-crds", &["leader", "west"]).await;
        let export = ("east", "web");
        delete(world, export.0, api::crd::member()).await;
        world.west_looks_on().await;
        kept.nothing_went("east has no CRDs").await;
        world.set_up_again().await;
        world.settled().await;
        kept.nothing_went("they are back, east's ServiceExport is not").await;
        world.cluster("east").export(kept.namespace(), "web").await;
        world.settled().await;
        kept.nothing_went("exported again").await;
        kept.converges(world).await;
        world.release(kept.namespace()).await;
    });
}

/// Takes our additions out of the CRD, as Antrea's are without them.
async fn make_old(world: &World, name: &str) {
    let crd = crds(world, "leader").get(name).await.unwrap();
    let mut versions = json!(crd.spec.versions);
    let spec =
        versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].as_object_mut().unwrap();
    spec.remove("exporters");
    spec.remove("endpointSlice");
    if let Some(service) = spec.get_mut("service") {
        service["properties"].as_object_mut().unwrap().retain(|key, _| key == "serviceSpec");
    }
    let patch = json!({"spec": {"versions": versions}});
    crds(world, "leader").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[test]
fn older_crds_applied_over_ours_take_nothing_away_and_are_reported() {
    alone(async |world| {
        let kept = Kept::set_up(world, "old-crds", &CLUSTERS).await;
        for kind in ["resourceexports", "resourceimports"] {
            make_old(world, &format!("{kind}.multicluster.crd.antrea.io")).await;
        }
        e2e::waiting::eventually("it is noticed", || async {
            let pruned = world.metrics("freeport-member-east").await?.sum("freeport_writes_pruned_total");
            if pruned > 0.0 { Ok(()) } else { Err("nothing".into()) }
        })
        .await;
        world.west_looks_on().await;
        kept.nothing_went("the CRDs are older").await;
        world.set_up_again().await;
        world.settled().await;
        kept.nothing_went("ours are back").await;
        kept.converges(world).await;
        world.vouches(name::LEADER_LEASE).await;
        world.release(kept.namespace()).await;
    });
}
