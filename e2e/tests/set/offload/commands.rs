//! What the commands of offloading say and wait for where daemons run, and where they do not.

use api::{cluster_set::ClusterSet, offload::namespace::NamespaceOffloading};
use e2e::{
    daemon::End,
    fixture::{SET, SYSTEM, World},
    shell::shell,
    waiting::eventually,
};
use fleet::program;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::Api;
use serde_json::json;

use super::world::{OFFLOADING, agreed, gone, offload, phase};

const HOME: &str = "freeport-member-west";
const CONNECTED: (&str, &str) = ("True", "Connected");

/// Runs a line of commands; what it says on both outputs.
pub(super) async fn run(world: &World, commands: &str) -> String {
    let freeport = program::path("cli", "freeport").await.unwrap();
    shell(&world.real().fleet, &[freeport], &format!("{{ {commands}\n}} 2>&1")).await
}

/// Waits until a line that is refused says this.
pub(super) async fn says(world: &World, command: &str, part: &str) {
    eventually(&format!("{command} says: {part}"), || async {
        let said = run(world, &format!("! {command}")).await;
        if said.contains(part) { Ok(()) } else { Err(said) }
    })
    .await;
}

#[e2e::test(real)]
fn what_takes_twins_along_asks_first_and_is_waited_for() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let ns = world.namespace("by-command", &["west"]).await;
        let twin = format!("{ns}-west");
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;

        let accept = "freeport offload accept west --context east --label liqo.io/region=eu";
        let said = run(world, &format!("! {accept}")).await;
        for part in [&format!("twins of cluster west are here: {twin}"), "nothing was changed", "--yes"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = run(world, &format!("{accept} --yes")).await;
        assert!(said.contains("changed OffloadPeer west: incoming"), "{said}");

        let remove = "freeport offload use east --context west --remove";
        let said = run(world, &format!("! {remove}")).await;
        assert!(said.contains(&format!("Namespace {twin} goes in east")) && said.contains("--yes"), "{said}");
        run(world, &format!("{remove} --yes")).await;
        // Not a moment later.
        let node = Api::<Node>::all(world.cluster("west").client.clone()).get_opt("freeport-east").await;
        assert!(node.unwrap().is_none(), "the Node is gone when the command is done");
        let twins = Api::<Namespace>::all(world.cluster("east").client.clone());
        assert!(twins.get_opt(&twin).await.unwrap().is_none(), "and so is the twin");

        agreed(world).await;
        phase(world, &ns, "Ready").await;
        world.cluster("west").delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        world.release(&ns).await;
    });
}

#[e2e::test(real)]
fn commands_say_why_nobody_acts() {
    OFFLOADING.alone(async |world| {
        agreed(world).await;
        let west = world.cluster("west");
        let ns = world.namespace("nobody-acts", &["west"]).await;
        let command = format!("freeport offload namespace {ns} --context west --timeout 1");
        world.end(HOME, End::Stop).await;
        let silent = "freeport-member of this cluster does not run";
        says(world, &command, silent).await;
        says(world, "freeport offload status --context west", silent).await;
        world.launch(HOME).await;
        world.member_says("west", CONNECTED).await;
        phase(world, &ns, "Ready").await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &format!("{ns}-west")).await;
        // Else the next command would change one that is going.
        eventually("its finalizer is gone", || async {
            match west.api::<NamespaceOffloading>(&ns).get_opt("offloading").await.unwrap() {
                None => Ok(()),
                Some(there) => Err(format!("{:?}", there.metadata)),
            }
        })
        .await;

        let set: ClusterSet = west.take(SYSTEM, SET).await;
        let left = "this cluster is in no ClusterSet: it has left";
        says(world, &command, left).await;
        says(world, "freeport offload status --context west", left).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        west.put_back(set).await;
        world.member_says("west", CONNECTED).await;
        agreed(world).await;
        world.release(&ns).await;
    });
}
