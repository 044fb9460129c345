//! What offloading lacks, in either cluster, is said on the OffloadPeers; Services go on.

use api::{
    ServiceName,
    offload::{namespace::NamespaceOffloading, peer::OffloadPeer},
};
use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{AREA, World},
    seen::imported,
    waiting::eventually,
};
use futures::future::join_all;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::{Api, api::PostParams};
use serde_json::json;

use super::{
    super::antrea_leader::{both_records_are_as_demanded, change_back, change_over},
    world::{OFFLOADING, agreed, gone, offload, peer_says, phase},
};

const PAIR: [(&str, &str); 2] = [("west", "east"), ("east", "west")];

/// Waits until the OffloadPeer says that something cannot be watched: a text of the message.
async fn lacks(world: &World, (cluster, other): (&str, &str), what: &str) {
    let peers = Api::<OffloadPeer>::all(world.cluster(cluster).client.clone());
    eventually(&format!("OffloadPeer {other} of {cluster} says {what:?}"), || async {
        let conditions = peers.get(other).await.unwrap().status.unwrap_or_default().conditions;
        let says = conditions.iter().any(|c| c.reason == "CannotWatch" && c.message.contains(what));
        let log = || world.log_tail(&format!("freeport-member-{cluster}"));
        if says { Ok(()) } else { Err(format!("{conditions:?}; {}", log())) }
    })
    .await;
}

/// Each of both imports what the other exports from now on.
async fn services_go_on(world: &World, namespace: &str, service: &str) {
    for (number, (from, to)) in PAIR.into_iter().enumerate() {
        let name = format!("{service}-{from}");
        world.cluster(from).exported(namespace, &name, &[&format!("10.{number}.0.1")]).await;
        let seen = || imported(world.cluster(to), namespace, &name);
        eventually(&format!("{to} imports {name}"), seen).await;
    }
}

fn without(rules: &Option<Vec<PolicyRule>>, resource: &str) -> Option<Vec<PolicyRule>> {
    let mut rules = rules.clone().unwrap();
    let had = rules.len();
    rules.retain(|rule| !rule.resources.iter().flatten().any(|of| of == resource));
    assert!(rules.len() < had, "no rule about {resource}");
    Some(rules)
}

/// Takes a right of west's at the leader, and one of east's at home, until both have noticed; they were started anew.
async fn lose_rights(world: &World) -> (Role, ClusterRole) {
    let roles = world.leader().api::<Role>(AREA);
    let role = roles.get("freeport-member-west").await.unwrap();
    let less = Role { rules: without(&role.rules, "namespacemaps"), ..role.clone() };
    roles.replace("freeport-member-west", &PostParams::default(), &less).await.unwrap();
    let cluster_roles = cluster_roles(world.cluster("east"));
    let cluster_role = cluster_roles.get("freeport-member-offload").await.unwrap();
    let less = ClusterRole { rules: without(&cluster_role.rules, "rolebindings"), ..cluster_role.clone() };
    cluster_roles.replace("freeport-member-offload", &PostParams::default(), &less).await.unwrap();
    for daemon in ["freeport-member-west", "freeport-member-east"] {
        // A watch that is open stays open.
        world.end(daemon, End::Stop).await;
        world.launch(daemon).await;
    }
    (role, cluster_role)
}

async fn give_back_rights(world: &World, (mut role, mut cluster_role): (Role, ClusterRole)) {
    role.metadata.resource_version = None;
    cluster_role.metadata.resource_version = None;
    let roles = world.leader().api::<Role>(AREA);
    roles.replace("freeport-member-west", &PostParams::default(), &role).await.unwrap();
    let cluster_roles = cluster_roles(world.cluster("east"));
    cluster_roles.replace("freeport-member-offload", &PostParams::default(), &cluster_role).await.unwrap();
}

fn cluster_roles(cluster: &Cluster) -> Api<ClusterRole> {
    Api::all(cluster.client.clone())
}

#[e2e::test(real)]
fn without_kinds_or_rights_the_peers_say_so_and_services_go_on() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let ns = world.namespace("missing", &["west", "east"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;

        let had = world.leader().take_crd("namespacemaps.offloading.liqo.io").await;
        let what = "cannot watch NamespaceMap in the leader's cluster";
        join_all(PAIR.map(|pair| lacks(world, pair, what))).await;
        services_go_on(world, &ns, "kindless").await;
        world.leader().put_back_crd(had).await;
        join_all(PAIR.map(|(cluster, other)| peer_says(world, cluster, other, "Ready"))).await;

        let had = lose_rights(world).await;
        lacks(world, PAIR[0], what).await;
        lacks(world, PAIR[1], "cannot watch RoleBinding in this cluster").await;
        services_go_on(world, &ns, "rightless").await;
        give_back_rights(world, had).await;
        join_all(PAIR.map(|(cluster, other)| peer_says(world, cluster, other, "Ready"))).await;
        phase(world, &ns, "Ready").await;
        world.cluster("west").delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "missing-west").await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_status_that_an_older_crd_did_not_keep_is_written_again_when_the_crd_is_put_right() {
    const CRD: &str = "namespaceoffloadings.offloading.liqo.io";
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let west = world.cluster("west");
        let whole = west.crd_versions(CRD).await;
        let mut older = whole.clone();
        for version in older.as_array_mut().unwrap() {
            let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
            status.as_object_mut().unwrap().remove("remoteNamespacesConditions").unwrap();
        }
        west.install_crd_versions(CRD, &older).await;
        world.member_says("west", ("True", "CRDOutdated")).await;

        let ns = world.namespace("older-crd", &["west"]).await;
        offload(world, &ns, json!({})).await;
        let said = phase(world, &ns, "Ready").await;
        assert!(said.remote_namespaces_conditions.is_empty(), "{said:?}");
        west.install_crd_versions(CRD, &whole).await;
        eventually("what was left out is said", || async {
            let said = phase(world, &ns, "Ready").await;
            match said.remote_namespaces_conditions.contains_key("east") {
                true => Ok(()),
                false => Err(format!("{said:?}; {}", world.log_tail("freeport-member-west"))),
            }
        })
        .await;
        world.cluster("west").delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &format!("{ns}-west")).await;
        world.release(&ns).await;
    });
}

#[e2e::test(real)]
fn under_a_leader_of_antreas_the_peer_says_so_and_services_go_on() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let east = world.cluster("east");
        let ns = world.namespace("under-antrea", &["east"]).await;
        let (leader, set) = change_over(world).await;
        peer_says(world, "east", "west", "AntreaLeader").await;
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        both_records_are_as_demanded(world, &ServiceName::new(ns.as_str(), "web")).await;
        change_back(world, leader, set).await;
        agreed(world).await;
        world.release(&ns).await;
    });
}
