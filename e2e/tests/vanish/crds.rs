//! CRDs are deleted, or replaced by older ones.

use api::cluster_set::ClusterSet;
use e2e::{
    fixture::{AREA, CLUSTERS, SET, World, alone},
    waiting::eventually,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::kept::{Kept, a_while, time_goes_by};

fn crds(world: &World, cluster: &str) -> Api<CustomResourceDefinition> {
    Api::all(world.cluster(cluster).client.clone())
}

async fn delete(world: &World, cluster: &str, of: Vec<CustomResourceDefinition>) {
    for crd in of {
        let name = crd.name_any();
        crds(world, cluster).delete(&name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{name} of {cluster} is gone"), || async {
            match crds(world, cluster).get_opt(&name).await.unwrap() {
                None => Ok(()),
                Some(crd) => Err(format!("{:?}", crd.status)),
            }
        })
        .await;
    }
}

#[test]
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
        world.cluster("east").export(kept.namespace(), "web").await;
        kept.converges(world).await;
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

/// The ClusterSet's condition `Ready` has this reason, or what it has.
async fn says(world: &World, cluster: &str, namespace: &str, reason: &str) -> Result<(), String> {
    let set =
        world.cluster(cluster).api::<ClusterSet>(namespace).get(SET).await.map_err(|e| e.to_string())?;
    let conditions = set.status.unwrap_or_default().conditions;
    let told = conditions.iter().any(|condition| condition.reason.as_deref() == Some(reason));
    if told { Ok(()) } else { Err(format!("{conditions:?}")) }
}

#[test]
fn older_crds_applied_over_ours_take_nothing_away_and_are_reported() {
    alone(async |world| {
        let kept = Kept::set_up(world, "old-crds", &CLUSTERS).await;
        for kind in ["resourceexports", "resourceimports"] {
            make_old(world, &format!("{kind}.multicluster.crd.antrea.io")).await;
        }
        for (cluster, namespace) in [("east", "freeport-system"), ("leader", AREA)] {
            eventually(&format!("{cluster} says so"), || says(world, cluster, namespace, "SchemaPruned"))
                .await;
        }
        a_while().await;
        kept.nothing_went("the CRDs are older").await;
        world.set_up_again().await;
        eventually("east is content", || says(world, "east", "freeport-system", "Connected")).await;
        eventually("and so is the leader", || says(world, "leader", AREA, "Ready")).await;
        kept.converges(world).await;
    });
}
