//! Issue 38, 4: each write about a whole cluster or Common Area is refused by its API server. Each is reported, and when it is accepted it is
//! done, without a restart.

use api::{
    about::ClusterProperty,
    announce::MemberClusterAnnounce,
    cluster_set::{ClusterSet, WRITES_ACCEPTED},
    membership::NAME as NOTE,
    name,
    report::ClusterReport,
    resource_export::ResourceExport,
};
use e2e::{
    cluster_set::status,
    fixture::{AREA, SET, SYSTEM, World, alone},
    forbidden::{NOT_THIS_ONE, forbid_all, permit_all},
    ground::is_simulated,
    seen::{imported, not_imported},
    waiting::eventually,
    walk::{
        Refused,
        membership::{LEAVING, MEMBER, WHILE_MEMBER},
        reported::{counted, left, noted},
    },
};
use k8s_openapi::api::{core::v1::ConfigMap, flowcontrol::v1::PriorityLevelConfiguration};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::cli::program::status as status_of;

const PROPERTY: &str = "cluster.clusterset.k8s.io";

/// The message of `WritesAccepted` of the daemon's ClusterSet, if that has this status.
async fn writes(world: &World, refused: &Refused, is: &str) -> Result<String, String> {
    let (cluster, namespace) = match refused.by.starts_with("freeport-leader") {
        true => (world.leader(), AREA),
        false => (world.cluster("west"), SYSTEM),
    };
    let conditions = status(cluster, namespace).await?.conditions;
    let said = conditions.into_iter().find(|said| said.type_.as_deref() == Some(WRITES_ACCEPTED));
    let said = said.ok_or("not reported")?;
    match said.status.as_deref() == Some(is) {
        true => Ok(said.message.unwrap_or_default()),
        false => Err(format!("{said:?}")),
    }
}

/// Has the daemon send this write.
async fn provoke(world: &World, ns: &str, refused: &Refused) {
    let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
    let (deleted, changes) = (DeleteParams::default(), PatchParams::default());
    let properties = Api::<ClusterProperty>::all(west.client.clone());
    let announces = leader.api::<MemberClusterAnnounce>(AREA);
    let reports = leader.api::<ClusterReport>(AREA);
    match (refused.resource, refused.operation) {
        ("configmaps", "create") => west.delete::<ConfigMap>(SYSTEM, NOTE).await,
        ("configmaps", "update") => {
            // The address of the import is noted.
            east.exported(ns, "noted", &["10.1.0.9"]).await;
            eventually("west imports it", || imported(west, ns, "noted")).await;
            east.unexport(ns, "noted").await;
            eventually("west has no import of it", || not_imported(west, ns, "noted")).await;
        }
        ("clusterproperties", "create") => drop(properties.delete(PROPERTY, &deleted).await.unwrap()),
        ("clusterproperties", _) => {
            let other = Patch::Merge(json!({"spec": {"value": "other"}}));
            properties.patch(PROPERTY, &changes, &other).await.unwrap();
        }
        ("clustersetsstatus", _) => {
            let namespace = if refused.at == "west" { SYSTEM } else { AREA };
            let sets = world.cluster(refused.at).api::<ClusterSet>(namespace);
            let none = Patch::Merge(json!({"status": {"conditions": []}}));
            sets.patch_status(SET, &changes, &none).await.unwrap();
        }
        ("memberclusterannounces", "create") => {
            drop(announces.delete(&name::announce("west"), &deleted).await.unwrap());
        }
        ("memberclusterannounces", _) => {
            let other = Patch::Merge(json!({"leaderClusterID": "other"}));
            announces.patch(&name::announce("west"), &changes, &other).await.unwrap();
        }
        ("clusterreports", _) => drop(reports.delete("west", &deleted).await.unwrap()),
        ("clusterreportsstatus", _) => {
            let other = Patch::Merge(json!({"status": {"version": "other"}}));
            reports.patch_status("west", &changes, &other).await.unwrap();
        }
        ("resourceexportsstatus", _) => {
            // Its name is not the one that its content demands.
            let spec = json!({"clusterID": "east", "namespace": ns, "name": "web", "kind": "Service"});
            let _: ResourceExport =
                leader.create(AREA, json!({"metadata": {"name": "odd"}, "spec": spec})).await;
        }
        ("prioritylevelconfigurations", _) => {
            let levels = Api::<PriorityLevelConfiguration>::all(leader.client.clone());
            let none = Patch::Merge(json!({"spec": {"limited": {"nominalConcurrencyShares": 0}}}));
            levels.patch(name::MEMBERS_LEVEL, &changes, &none).await.unwrap();
        }
        other => panic!("nobody knows how {other:?} comes about"),
    }
}

#[e2e::test]
fn each_write_of_a_member_or_leader_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    alone(async |world| {
        let ns = &world.namespace("refused-once", &["east", "west"]).await;
        for refused in WHILE_MEMBER {
            let write = refused.counted_as();
            forbid_all(world, refused).await;
            provoke(world, ns, refused).await;
            counted(world, &[*refused]).await;
            // A status that is refused cannot report itself.
            if refused.resource != "clustersetsstatus" {
                eventually(&format!("WritesAccepted names {write}"), || async {
                    let said = writes(world, refused, "False").await?;
                    let names = [refused.kind, NOT_THIS_ONE].iter().all(|part| said.contains(part));
                    if names { Ok(()) } else { Err(said) }
                })
                .await;
                if !is_simulated() {
                    let context = if refused.by == MEMBER { "west" } else { "leader" };
                    status_of(world, context).await.reported(1, &["WritesAccepted is False", NOT_THIS_ONE]);
                }
            }
            permit_all(world, refused).await;
            eventually(&format!("WritesAccepted is True after {write}"), || writes(world, refused, "True"))
                .await;
        }
        world.leader().delete::<ResourceExport>(AREA, "odd").await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn each_deletion_that_is_refused_to_a_member_that_leaves_is_noted_and_done_when_it_is_accepted() {
    alone(async |world| {
        let ns = &world.namespace("refused-leaving", &["east", "west"]).await;
        let west = world.cluster("west");
        west.exported(ns, "own", &["10.3.0.1"]).await;
        for refused in LEAVING {
            eventually("east imports", || imported(world.cluster("east"), ns, "own")).await;
            eventually("west reports", || async {
                let report = world.leader().api::<ClusterReport>(AREA).get_opt("west").await;
                report.map_err(|error| error.to_string())?.map(drop).ok_or_else(|| "not yet".to_owned())
            })
            .await;
            forbid_all(world, refused).await;
            let set: ClusterSet = west.take(SYSTEM, SET).await;
            counted(world, &[*refused]).await;
            noted(west, refused).await;
            permit_all(world, refused).await;
            left(west).await;
            west.put_back(set).await;
            world.member_says("west", ("True", "Connected")).await;
        }
        world.release(ns).await;
    });
}
