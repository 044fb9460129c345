//! Somebody else changes or deletes what Freeport made, or was there first.

use api::{
    mcs::{ServiceImport, ServiceImportSpec},
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    fixture::{AREA, always, eventually, shared},
    seen::{imported, records, right},
};

#[test]
fn what_users_delete_or_edit_is_put_back_and_the_address_stays() {
    shared(async |world| {
        let ns = world.namespace("drift", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        let before = eventually("imported", || async {
            right(imported(west, &ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let back = async |what: &str| {
            eventually(what, || async {
                right(imported(west, &ns, "web").await, |seen| {
                    (&seen.vip, &seen.ports, &seen.endpoints)
                        == (&before.vip, &before.ports, &before.endpoints)
                })
            })
            .await;
        };
        west.delete::<Service>(&ns, "antrea-mc-web").await;
        back("the Service, with its address").await;
        let slices = west.api::<EndpointSlice>(&ns).list(&ListParams::default()).await.unwrap();
        for slice in slices {
            west.delete::<EndpointSlice>(&ns, &slice.name_any()).await;
        }
        back("the slice").await;
        west.delete::<ServiceImport>(&ns, "web").await;
        back("the ServiceImport").await;
        let edit = json!({"spec": {"ports": [{"name": "evil", "port": 666}]}, "metadata": {"labels": {"theirs": "stays"}}});
        west.api::<ServiceImport>(&ns)
            .patch("web", &PatchParams::default(), &Patch::Merge(&edit))
            .await
            .unwrap();
        west.api::<Service>(&ns)
            .patch("antrea-mc-web", &PatchParams::default(), &Patch::Merge(&edit))
            .await
            .unwrap();
        back("their ports").await;
        let import = west.api::<ServiceImport>(&ns).get("web").await.unwrap();
        assert_eq!(import.labels()["theirs"], "stays");
        east.delete_namespace(&ns).await;
        west.delete_namespace(&ns).await;
    });
}

#[test]
fn records_an_administrator_deletes_come_back_and_no_import_goes() {
    shared(async |world| {
        let ns = world.namespace("records", &["east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        let before = eventually("imported", || async {
            right(imported(west, &ns, "web").await, |seen| seen.endpoints.len() == 1)
        })
        .await;
        let there = records(world, &ns, "web").await;
        assert_eq!(there.len(), 3, "{there:?}");
        for record in &there {
            if leader.api::<ResourceImport>(AREA).get_opt(record).await.unwrap().is_some() {
                leader.delete::<ResourceImport>(AREA, record).await;
            } else {
                leader.delete::<ResourceExport>(AREA, record).await;
            }
        }
        always("the import stays", || async {
            right(imported(west, &ns, "web").await, |seen| *seen == before).map(drop)
        })
        .await;
        eventually("the records are back", || async {
            match records(world, &ns, "web").await {
                records if records == there => Ok(()),
                records => Err(format!("{records:?}")),
            }
        })
        .await;
        east.delete_namespace(&ns).await;
        west.delete_namespace(&ns).await;
    });
}

#[test]
fn what_was_there_before_us_is_left_alone() {
    shared(async |world| {
        let ns = world.namespace("foreign", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let theirs = west.service(&ns, "antrea-mc-web", &[("mine", 7)]).await;
        let import = ServiceImport::new("api", ServiceImportSpec::default());
        let import = west.api(&ns).create(&PostParams::default(), &import).await.unwrap();
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        east.exported(&ns, "api", &["10.1.0.2"]).await;
        east.exported(&ns, "other", &["10.1.0.3"]).await;
        eventually("others go on", || imported(west, &ns, "other")).await;
        eventually("ServiceNameTaken", || async {
            let import =
                west.api::<ServiceImport>(&ns).get_opt("web").await.unwrap().ok_or("no ServiceImport")?;
            let ready = import.status.unwrap_or_default().conditions.into_iter().find(|c| c.type_ == "Ready");
            match ready {
                Some(ready) if ready.reason == "ServiceNameTaken" && import.spec.ips.is_empty() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        always("theirs is untouched", || async {
            let now = west.api::<Service>(&ns).get("antrea-mc-web").await.unwrap();
            let import_now = west.api::<ServiceImport>(&ns).get("api").await.unwrap();
            let theirs_slices = ListParams::default().labels("kubernetes.io/service-name=antrea-mc-web");
            let slices = west.api::<EndpointSlice>(&ns).list(&theirs_slices).await.unwrap();
            match (now == theirs, import_now == import, slices.items.len()) {
                (true, true, 0) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        west.delete::<Service>(&ns, "antrea-mc-web").await;
        west.delete::<ServiceImport>(&ns, "api").await;
        for service in ["web", "api"] {
            eventually("once they are gone", || imported(west, &ns, service)).await;
        }
        east.delete_namespace(&ns).await;
        west.delete_namespace(&ns).await;
    });
}
