//! Issue 38, 4: each write that members send for offloading is refused by a policy of its API server. Each is reported where users look,
//! other Namespaces are not affected, and when the policies are gone everything is as users want it, without a restart.

mod leaving;
mod pairs;
mod said;

use api::offload::{
    label::ENABLED,
    map::DELETION_REFUSED,
    namespace::{NamespaceOffloading, PODS_ACCEPTED},
};
use e2e::{
    fixture::World,
    forbidden::{NOT_THIS_ONE, forbid_daemons, permit},
    waiting::eventually,
    walk::{Refused, offloading::OF_NAMESPACES as REFUSED, reported::counted},
};
use futures::future::join_all;
use k8s_openapi::api::{
    core::v1::{Namespace, Pod},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use self::said::{nothing_refused, of_namespace, of_peer, of_pods};
use super::{
    pods::world::{bind, is, kubelet_says, twin_pod, twin_pod_gone},
    world::{OFFLOADING, agreed, gone, offload, peer, phase},
};

const POLICY: &str = "no-writes";

/// Name of the Namespace to which this happens.
fn name(refused: &Refused) -> String {
    format!("no-{}-{}-{}", refused.at, refused.resource, refused.operation)
}

/// Refuses an operation on a resource where the name says so: see [`REFUSED`].
fn refuses(cluster: &str) -> String {
    let says = format!(
        "'no-{cluster}-' + request.resource.resource + variables.subresource + '-' + request.operation.lowerAscii()"
    );
    format!("(variables.name + ' ' + variables.within).contains({says})")
}

/// Whether the Namespace is offloaded before the policies are in force.
fn is_before(name: &str) -> bool {
    name.ends_with("-delete")
        || ["no-east-namespaces-update", "no-east-rolebindings-update", "no-east-pods-update"].contains(&name)
        || name == "no-leader-shadowpods-update"
}

/// Whether it is about a Pod.
fn has_pod(name: &str) -> bool {
    name.contains("pods")
}

/// Offloads the Namespace as users do.
async fn ask(world: &World, name: &str) {
    if name.contains("-namespaceoffloadings-create") || name.contains("-namespaceoffloadings-delete") {
        return label(world, name, Some("true")).await;
    }
    // Only of a Namespace whose Pods are placed the member writes a label.
    let strategy = if name == "no-west-namespaces-update" { "LocalAndRemote" } else { "Local" };
    offload(world, name, json!({"podOffloadingStrategy": strategy})).await;
}

async fn label(world: &World, name: &str, value: Option<&str>) {
    let namespaces = Api::<Namespace>::all(world.cluster("west").client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {ENABLED: value}}}));
    namespaces.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[e2e::test(real)]
fn each_write_for_a_namespace_that_is_refused_is_reported_and_done_when_it_is_accepted() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let names: Vec<_> = REFUSED.iter().map(name).collect();
        join_all(names.iter().map(|name| world.namespace(name, &["west"]))).await;
        for name in names.iter().filter(|name| is_before(name)) {
            ask(world, name).await;
        }
        for name in names.iter().filter(|name| is_before(name)) {
            phase(world, name, "Ready").await;
            if has_pod(name) {
                bind(west, name, "web").await;
                twin_pod(world, &format!("{name}-west"), "web", None).await;
            }
        }
        for cluster in [world.leader(), west, east] {
            forbid_daemons(cluster, "default", POLICY, &refuses(&cluster.name)).await;
        }

        for name in names.iter().filter(|name| !is_before(name)) {
            ask(world, name).await;
            if has_pod(name) {
                bind(west, name, "web").await;
            }
        }
        change(world).await;
        for name in names.iter().filter(|name| name.ends_with("-delete")) {
            match name.as_str() {
                "no-west-namespaceoffloadings-delete" => label(world, name, None).await,
                name if has_pod(name) => west.delete::<Pod>(name, "web").await,
                name => west.delete::<NamespaceOffloading>(name, "offloading").await,
            }
        }
        counted(world, REFUSED).await;
        reported(world).await;
        let ns = world.namespace("accepted", &["west"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        bind(west, &ns, "web").await;
        twin_pod(world, &format!("{ns}-west"), "web", None).await;

        for cluster in [world.leader(), west, east] {
            permit(cluster, POLICY).await;
        }
        nothing_refused(world).await;
        done(world).await;
        for name in names.iter().chain([&ns]) {
            label(world, name, None).await;
            world.release(name).await;
        }
    });
}

/// Changes that daemons follow or mend.
async fn change(world: &World) {
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    peer(east, "west", json!({"incoming": {"podSecurity": "privileged"}})).await;
    let stranger =
        json!({"subjects": [{"kind": "ServiceAccount", "name": "stranger", "namespace": "default"}]});
    let _: RoleBinding = east.patch("no-east-rolebindings-update-west", "freeport-offload", &stranger).await;
    for name in ["no-east-pods-update", "no-leader-shadowpods-update"] {
        let _: Pod = west.patch(name, "web", &json!({"metadata": {"labels": {"tier": "gold"}}})).await;
    }
    twin_pod(world, "no-west-podsstatus-update-west", "web", None).await;
    kubelet_says(east, "no-west-podsstatus-update-west", "web", json!({"phase": "Running"})).await;
}

/// Waits until users read of it where they look.
async fn reported(world: &World) {
    let names =
        ["no-west-namespaces-update", "no-west-namespaceoffloadings-update", "no-west-podsstatus-update"];
    for name in names.into_iter().chain(["no-west-pods-delete"]) {
        let said = eventually(&format!("{name} says it"), || of_namespace(world, name)).await;
        assert!(said.contains(name) && said.contains(NOT_THIS_ONE), "{said}");
    }
    let said = eventually("the Pod without a record is named", || {
        of_pods(world, "no-leader-shadowpods-create", PODS_ACCEPTED)
    })
    .await;
    assert!(said.contains("Pod web is refused") && said.contains(NOT_THIS_ONE), "{said}");
    for (name, part) in [
        ("no-east-namespaces-create", "Refused"),
        ("no-east-rolebindings-create", "Refused"),
        ("no-east-namespaces-delete", DELETION_REFUSED),
    ] {
        eventually(&format!("{name} has the words of east"), || said::of_host(world, name, part)).await;
    }
    // Three writes are named, and the others are counted.
    for (cluster, other, parts) in [
        ("east", "west", ["create Namespace no-east-namespaces-create-west", " more: "]),
        ("west", "east", ["create ShadowPod", "change ShadowPod"]),
    ] {
        let said = eventually(&format!("OffloadPeer {other} of {cluster} says it"), || {
            of_peer(world, cluster, other)
        })
        .await;
        assert!(parts.iter().chain([&NOT_THIS_ONE]).all(|part| said.contains(part)), "{parts:?}: {said}");
    }
    said::by_commands(world, "no-east-namespaces-delete").await;
}

/// Waits until everything is as it was asked for.
async fn done(world: &World) {
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    for name in REFUSED.iter().map(name) {
        let twin = format!("{name}-west");
        match name.as_str() {
            "no-east-namespaces-delete" | "no-west-namespaceoffloadings-delete" => {
                gone(world, "east", &twin).await;
                continue;
            }
            name if has_pod(name) && name.ends_with("-delete") => {
                twin_pod_gone(world, &twin, "web").await;
                eventually(&format!("Pod {name}/web is gone"), || async {
                    let pod = west.api::<Pod>(name).get_opt("web").await.unwrap();
                    pod.map_or(Ok(()), |pod| Err(format!("{:?}", pod.status)))
                })
                .await;
            }
            name if has_pod(name) => {
                twin_pod(world, &twin, "web", None).await;
                eventually(&format!("Pod {name}/web says what east says"), || said::accepted(world, name))
                    .await;
            }
            _ => {}
        }
        phase(world, &name, "Ready").await;
    }
    is(world, "no-west-podsstatus-update", "web", "Running", "").await;
    for name in ["no-east-pods-update", "no-leader-shadowpods-update"] {
        eventually(&format!("the Pod of {name} has its label"), || async {
            let pod = east.api::<Pod>(&format!("{name}-west")).get("web").await.unwrap();
            if pod.labels().contains_key("tier") { Ok(()) } else { Err(format!("{:?}", pod.labels())) }
        })
        .await;
    }
}
