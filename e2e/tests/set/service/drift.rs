//! Somebody else changes or deletes what Freeport made.

use api::{mcs::ServiceImport, resource_export::ResourceExport, resource_import::ResourceImport};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

use e2e::{
    fixture::{AREA, World, shared},
    seen::{imported, records, right},
    waiting::{always, eventually},
    watched::Watched,
};

#[e2e::test]
fn r23_r31_what_users_delete_or_edit_is_put_back_and_the_address_stays() {
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
                    (&seen.vip, &seen.ports, &seen.clusters, &seen.endpoints, &seen.not_ready)
                        == (
                            &before.vip,
                            &before.ports,
                            &before.clusters,
                            &before.endpoints,
                            &before.not_ready,
                        )
                })
            })
            .await
        };
        let ours = ListParams::default().labels("multicluster.kubernetes.io/service-name=web");
        let slice = async || west.api::<EndpointSlice>(&ns).list(&ours).await.unwrap().items[0].name_any();

        west.delete::<Service>(&ns, "antrea-mc-web").await;
        back("the Service, with its address").await;
        west.delete::<EndpointSlice>(&ns, &slice().await).await;
        back("the slice").await;
        west.delete::<ServiceImport>(&ns, "web").await;
        let again = back("the ServiceImport").await;
        assert_ne!(again.import_uid, before.import_uid);

        let edit = json!({"endpoints": [{"addresses": ["10.6.6.6"]}], "ports": []});
        west.patch::<EndpointSlice>(&ns, &slice().await, &edit).await;
        back("its endpoints").await;
        let edit = json!({
            "spec": {"ports": [{"name": "evil", "port": 666}]},
            "metadata": {"labels": {"theirs": "stays"}},
        });
        west.patch::<ServiceImport>(&ns, "web", &edit).await;
        west.patch::<Service>(&ns, "antrea-mc-web", &edit).await;
        back("their ports").await;
        let import = west.api::<ServiceImport>(&ns).get("web").await.unwrap();
        let service = west.api::<Service>(&ns).get("antrea-mc-web").await.unwrap();
        assert_eq!(
            (&import.labels()["theirs"], &service.labels()["theirs"]),
            (&"stays".into(), &"stays".into())
        );
        world.release(&ns).await;
    });
}

/// Waits until the Common Area holds these records, and no others, of Service `web`.
async fn are_back(world: &World, ns: &str, there: &[String]) {
    eventually("the records are back", || async {
        let records = records(world, ns, "web").await;
        if records == there { Ok(()) } else { Err(format!("{records:?}")) }
    })
    .await;
}

/// Deletes a record, by its kind.
async fn delete(world: &World, record: &str) {
    let leader = world.leader();
    if leader.api::<ResourceImport>(AREA).get_opt(record).await.unwrap().is_some() {
        leader.delete::<ResourceImport>(AREA, record).await;
    } else {
        leader.delete::<ResourceExport>(AREA, record).await;
    }
}

/// Garbles the labels of a record of `east`, then all that it says, and waits until each is as it was.
async fn garble(world: &World, record: &str) {
    let (leader, exports) = (world.leader(), world.leader().api::<ResourceExport>(AREA));
    let said = exports.get(record).await.unwrap().spec;
    let labels = json!({"labels": {"sourceClusterID": "nobody"}});
    leader.patch::<ResourceExport>(AREA, record, &json!({"metadata": labels})).await;
    eventually("it is labelled as ours again", || async {
        let record = exports.get(record).await.map_err(|error| error.to_string())?;
        let id = record.labels().get("sourceClusterID").cloned();
        if id.as_deref() == Some("east") { Ok(()) } else { Err(format!("{id:?}")) }
    })
    .await;
    let nothing = json!({"spec": {"service": null, "endpointSlice": null, "name": "other"}});
    leader.patch::<ResourceExport>(AREA, record, &nothing).await;
    eventually("it says the same again", || async {
        let says = exports.get(record).await.map_err(|error| error.to_string())?.spec;
        if says == said { Ok(()) } else { Err(format!("{says:?}")) }
    })
    .await;
}

#[e2e::test]
fn records_an_administrator_deletes_or_garbles_come_back_and_no_import_goes() {
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
        let watches = (
            Watched::<ServiceImport>::of(west, &ns).await,
            Watched::<Service>::of(west, &ns).await,
            Watched::<EndpointSlice>::of(west, &ns).await,
        );
        let stays = async |what: &str| {
            always(what, || async {
                right(imported(west, &ns, "web").await, |seen| *seen == before).map(drop)
            })
            .await;
        };
        // All together: nobody has another record to go by.
        for record in &there {
            delete(world, record).await;
        }
        stays("the import stays while they are away").await;
        are_back(world, &ns, &there).await;
        // And one by one.
        for record in &there {
            delete(world, record).await;
            are_back(world, &ns, &there).await;
            if leader.api::<ResourceExport>(AREA).get_opt(record).await.unwrap().is_some() {
                garble(world, record).await;
            }
        }
        are_back(world, &ns, &there).await;
        stays("the import is as it was").await;
        watches.0.nothing_deleted("the ServiceImport");
        watches.1.nothing_deleted("the Service");
        watches.2.nothing_deleted("the slice");
        watches.2.each(|slice| assert_eq!(slice.endpoints.iter().flatten().count(), 1, "emptied: {slice:?}"));
        world.release(&ns).await;
    });
}
