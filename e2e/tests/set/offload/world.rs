//! ClusterSet `demo` of a home, `west`, a host, `east`, and the `leader`, with daemons that offload.
//!
//! CRDs and rights are given here as long as `freeport init` and `join` have no `--offload`.

use api::{
    crd::offload as crds,
    offload::{
        namespace::{NamespaceOffloading, NamespaceOffloadingStatus},
        peer::OffloadPeer,
    },
};
use cli::objects::access;
use e2e::{
    cluster::Cluster,
    fixture::{AREA, SET, SYSTEM},
    shared::Shared,
    waiting::eventually,
    world::World,
};
use fleet::cluster_set::{self, Composition};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicyBinding,
    core::v1::Namespace,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

pub(super) static OFFLOADING: Shared<World> = Shared::new(|| Box::pin(up()));

const RIGHTS: &str = "e2e-offload";

async fn up() -> World {
    let mut world = World::bring_up("e2e-offload", &["leader", "west", "east"]).await;
    let mut daemons = world.set_up(&Composition::of_all(&world.fleet, SET)).await;
    for cluster in world.clusters() {
        install(cluster, crds::member()).await;
        grant(cluster).await;
    }
    install(world.leader(), crds::leader()).await;
    for member in ["leader", "west", "east"] {
        grant_records(world.leader(), member).await;
    }
    for daemon in daemons.iter_mut().filter(|daemon| daemon.is_member) {
        daemon.spec.env.insert("FREEPORT_OFFLOAD".to_owned(), "true".to_owned());
    }
    for daemon in &daemons {
        daemon.ensure(&world.fleet).await.unwrap();
    }
    cluster_set::ready(&world.fleet, SET, &daemons).await.unwrap();
    world.daemons = daemons;
    world
}

async fn install(
    cluster: &Cluster,
    crds: Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>,
) {
    for crd in crds {
        cluster.crds().create(&PostParams::default(), &crd).await.unwrap();
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

async fn grant(cluster: &Cluster) {
    let rules = json!([
        rule("", &["namespaces", "nodes"], OWN),
        rule("", &["nodes/status"], &["patch"]),
        rule("", &["serviceaccounts"], &["get"]),
        rule("coordination.k8s.io", &["leases"], &["create", "patch"]),
        rule("offloading.liqo.io", &["namespaceoffloadings"], OWN),
        rule("multicluster.freeport.dev", &["offloadpeers"], &["get", "list", "watch"]),
        rule("offloading.liqo.io", &["namespaceoffloadings/status"], &["patch"]),
        rule("multicluster.freeport.dev", &["offloadpeers/status"], &["patch"]),
        rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get"]),
    ]);
    let name = json!({"name": RIGHTS});
    let _: ClusterRole = cluster.create_cluster_wide(json!({"metadata": name, "rules": rules})).await;
    let subject = json!({"kind": "ServiceAccount", "name": "freeport-member", "namespace": SYSTEM});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": RIGHTS});
    let binding = json!({"metadata": name, "subjects": [subject], "roleRef": role});
    let _: ClusterRoleBinding = cluster.create_cluster_wide(binding).await;
    // It knows no Leases of virtual nodes yet.
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(cluster.client.clone());
    bindings.delete("freeport-member-own", &DeleteParams::default()).await.unwrap();
}

async fn grant_records(leader: &Cluster, member: &str) {
    let account = access::account(member);
    let name = json!({"name": format!("{RIGHTS}-{member}")});
    let rules = json!([
        rule("offloading.liqo.io", &["namespacemaps"], OWN),
        rule("offloading.liqo.io", &["namespacemaps/status"], &["patch"]),
        rule("multicluster.freeport.dev", &["offloadoffers"], OWN),
    ]);
    let _: Role = leader.create(AREA, json!({"metadata": name, "rules": rules})).await;
    let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": AREA});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name["name"]});
    let binding = json!({"metadata": name, "subjects": [subject], "roleRef": role});
    let _: RoleBinding = leader.create(AREA, binding).await;
}

/// What the administrator of a cluster says about another one, and changes of what was said.
pub(super) async fn peer(cluster: &Cluster, other: &str, spec: Value) {
    let peers = Api::<OffloadPeer>::all(cluster.client.clone());
    if peers.get_opt(other).await.unwrap().is_some() {
        let patch = Patch::Merge(json!({"spec": spec}));
        peers.patch(other, &PatchParams::default(), &patch).await.unwrap();
    } else {
        let peer = serde_json::from_value(json!({"metadata": {"name": other}, "spec": spec})).unwrap();
        peers.create(&PostParams::default(), &peer).await.unwrap();
    }
}

/// Waits until the OffloadPeer says this.
pub(super) async fn peer_says(world: &World, cluster: &str, other: &str, reason: &str) {
    let peers = Api::<OffloadPeer>::all(world.cluster(cluster).client.clone());
    eventually(&format!("OffloadPeer {other} of {cluster} says {reason}"), || async {
        let peer = peers.get(other).await.unwrap();
        let conditions = peer.status.map(|status| status.conditions).unwrap_or_default();
        match conditions.iter().any(|condition| condition.reason == reason) {
            true => Ok(()),
            false => {
                let log = world.log_tail(&format!("freeport-member-{cluster}"));
                Err(format!("{conditions:?}; its log:\n{log}"))
            }
        }
    })
    .await;
}

/// East may be used by west, and is.
pub(super) async fn agreed(world: &World) {
    peer(world.cluster("east"), "west", json!({"incoming": {"nodeLabels": {"liqo.io/region": "us"}}})).await;
    peer(world.cluster("west"), "east", json!({"outgoing": {}})).await;
    peer_says(world, "west", "east", "Ready").await;
    peer_says(world, "east", "west", "Ready").await;
}

/// Offloads a Namespace of `west`.
pub(super) async fn offload(world: &World, namespace: &str, spec: Value) {
    let object = json!({"metadata": {"name": "offloading"}, "spec": spec});
    let _: NamespaceOffloading = world.cluster("west").create(namespace, object).await;
}

/// Waits until the NamespaceOffloading of `west` is in this phase; its status.
pub(super) async fn phase(world: &World, namespace: &str, phase: &str) -> NamespaceOffloadingStatus {
    let offloadings = world.cluster("west").api::<NamespaceOffloading>(namespace);
    eventually(&format!("{namespace} is {phase}"), || async {
        let status = offloadings.get("offloading").await.unwrap().status.unwrap_or_default();
        match status.offloading_phase.as_deref() == Some(phase) {
            true => Ok(status),
            false => {
                let logs = ["west", "east"].map(|id| world.log_tail(&format!("freeport-member-{id}")));
                Err(format!("{status:?}; logs:\n{}", logs.join("\n---\n")))
            }
        }
    })
    .await
}

/// Waits until the Namespace is gone from a cluster.
pub(super) async fn gone(world: &World, cluster: &str, namespace: &str) {
    let namespaces = Api::<Namespace>::all(world.cluster(cluster).client.clone());
    eventually(&format!("{namespace} is gone from {cluster}"), || async {
        match namespaces.get_opt(namespace).await.unwrap() {
            None => Ok(()),
            Some(there) => Err(format!("{:?} {:?}", there.name_any(), there.status)),
        }
    })
    .await;
}
