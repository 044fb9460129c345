//! A CRD of ClusterSets that loses a field, and is put right, together with the ClusterSet or not.

use std::cell::Cell;

use api::cluster_set::ClusterSet;
use e2e::{
    fixture::{SET, SYSTEM, alone},
    waiting::eventually,
};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::traces::CONNECTED;

const CRD: &str = "clustersets.multicluster.crd.antrea.io";

#[e2e::test]
fn a_cluster_set_that_is_put_right_together_with_its_crd_counts() {
    alone(async |world| {
        let (east, params) = (world.cluster("east"), PatchParams::default());
        let sets = east.api::<ClusterSet>(SYSTEM);
        let (set, whole) = (sets.get(SET).await.unwrap(), east.crd_versions(CRD).await);
        let mut older = whole.clone();
        let fields = &mut older[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        fields.as_object_mut().unwrap().remove("namespace").unwrap();
        east.install_crd_versions(CRD, &older).await;
        world.member_says("east", ("False", "InvalidSpec")).await;

        east.install_crd_versions(CRD, &whole).await;
        // More than once: for a moment who watches hears of it as the CRD was before.
        for time in 0..20 {
            let patch = json!({"metadata": {"labels": {"again": time.to_string()}}, "spec": set.spec});
            eventually("the ClusterSet is whole", || async {
                let now = sets.patch(SET, &params, &Patch::Merge(&patch)).await;
                let now = now.map_err(|error| error.to_string())?;
                if now.spec == set.spec { Ok(()) } else { Err(format!("{:?}", now.spec)) }
            })
            .await;
        }
        world.member_says("east", CONNECTED).await;
        let _: ClusterSet = east.patch(SYSTEM, SET, &json!({"metadata": {"labels": {"again": null}}})).await;
    });
}

#[e2e::test]
fn a_status_that_the_crd_did_not_keep_is_written_again_when_the_crd_is_put_right() {
    alone(async |world| {
        let (east, params) = (world.cluster("east"), PatchParams::default());
        let (sets, whole) = (east.api::<ClusterSet>(SYSTEM), east.crd_versions(CRD).await);
        let mut older = whole.clone();
        let fields = &mut older[0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        fields.as_object_mut().unwrap().remove("conditions").unwrap();
        east.install_crd_versions(CRD, &older).await;
        let again = Cell::new(0);
        eventually("what was said is lost", || async {
            // Whatever is written goes through the CRD.
            let now = {
                again.set(again.get() + 1);
                let labels = json!({"again": again.get().to_string()});
                let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
                sets.patch(SET, &params, &patch).await.map_err(|error| error.to_string())?
            };
            let said = now.status.unwrap_or_default().conditions;
            if said.is_empty() { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
        eventually("the member writes its status without conditions", || async {
            let log = world.log_tail("freeport-member-east");
            match log.contains("writing the status without it") {
                true => Ok(()),
                false => Err(log),
            }
        })
        .await;
        east.install_crd_versions(CRD, &whole).await;
        world.member_says("east", CONNECTED).await;
        let _: ClusterSet = east.patch(SYSTEM, SET, &json!({"metadata": {"labels": {"again": null}}})).await;
    });
}
