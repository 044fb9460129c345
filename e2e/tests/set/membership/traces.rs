//! What tells that `east` belongs to the ClusterSet: in its own cluster and in the leader's.

use std::collections::BTreeMap;

use api::{
    announce::MemberClusterAnnounce, mcs::ServiceExport, membership, name, report::ClusterReport,
    resource_export::ResourceExport,
};
use e2e::{
    fixture::{AREA, SYSTEM, World},
    seen::{Imported, imported, not_imported, right},
    waiting::eventually,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{ResourceExt, api::ListParams};

pub(crate) const EAST: &str = "freeport-member-east";
/// The Secret of `east` that holds its credential at the leader.
pub(crate) const SECRET: &str = "freeport-leader-demo";
pub(crate) const CONNECTED: (&str, &str) = ("True", "Connected");

/// Service `web` in a Namespace of the test's own, exported by the leader's cluster and by `east`, and imported there.
pub(crate) async fn exchanged(world: &World, namespace: &str) -> Imported {
    world.namespace(namespace, &["leader", "east"]).await;
    for (cluster, address) in [("leader", "10.1.0.1"), ("east", "10.2.0.1")] {
        world.cluster(cluster).exported(namespace, "web", &[address]).await;
    }
    imported_from_both(world, namespace).await
}

pub(crate) async fn imported_from_both(world: &World, namespace: &str) -> Imported {
    eventually("east imports from both", || async {
        let seen = imported(world.cluster("east"), namespace, "web").await;
        let complete = right(seen, |seen| seen.endpoints.len() == 2 && seen.clusters.len() == 2);
        complete.map_err(|other| format!("{other}; its log:\n{}", world.log_tail(EAST)))
    })
    .await
}

/// Waits until nothing of the set is imported by `east`.
pub(crate) async fn imports_are_gone(world: &World, namespace: &str) {
    eventually("east imports nothing", || not_imported(world.cluster("east"), namespace, "web")).await;
}

/// Waits until the leader has nothing of `east`, and `east` nothing of the set.
pub(crate) async fn left(world: &World, namespace: &str) {
    eventually("east has left", || async {
        let (there, noted) = (at_leader(world).await, noted(world).await);
        let here = not_imported(world.cluster("east"), namespace, "web").await;
        let here = here.and(says_nothing(world, namespace).await);
        if there.is_empty() && noted.is_none() && here.is_ok() {
            return Ok(());
        }
        let log = world.log_tail(EAST);
        Err(format!("at the leader {there:?}, here {here:?}, noted {noted:?}; its log:\n{log}"))
    })
    .await;
}

/// Nothing is said any more about the ServiceExport of `east`.
async fn says_nothing(world: &World, namespace: &str) -> Result<(), String> {
    let export = world.cluster("east").api::<ServiceExport>(namespace).get("web").await.unwrap();
    let said = export.status.map(|status| status.conditions).unwrap_or_default();
    if said.is_empty() { Ok(()) } else { Err(format!("the ServiceExport says {said:?}")) }
}

/// What `east` has noted of its membership.
pub(crate) async fn noted(world: &World) -> Option<BTreeMap<String, String>> {
    let notes = world.cluster("east").api::<ConfigMap>(SYSTEM);
    notes.get_opt(membership::NAME).await.unwrap().map(|note| note.data.unwrap_or_default())
}

/// Names of what the leader has of `east`.
pub(crate) async fn at_leader(world: &World) -> Vec<String> {
    let leader = world.leader();
    let of_east = ListParams::default().labels("sourceClusterID=east");
    let records = leader.api::<ResourceExport>(AREA).list(&of_east).await.unwrap();
    let mut traces: Vec<_> = records.iter().map(ResourceExt::name_any).collect();
    let lease = leader.api::<Lease>(AREA).get_opt(&name::member_lease("east")).await.unwrap();
    traces.extend(lease.map(|lease| lease.name_any()));
    let announces = leader.api::<MemberClusterAnnounce>(AREA);
    let announce = announces.get_opt(&name::announce("east")).await.unwrap();
    traces.extend(announce.map(|announce| announce.name_any()));
    let report = leader.api::<ClusterReport>(AREA).get_opt("east").await.unwrap();
    traces.extend(report.map(|_| "its report".to_owned()));
    traces
}
