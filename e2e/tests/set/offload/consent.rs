//! What a host allows, and what it leaves alone.

use api::offload::namespace::{NamespaceOffloading, READY};
use e2e::{
    fixture::World,
    forbidden::{forbid, permit},
    seen::event,
    waiting::eventually,
};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{
    commands::run,
    world::{OFFLOADING, agreed, gone, offload, peer, peer_says, phase},
};

#[e2e::test]
fn without_consent_there_is_no_new_twin_and_those_that_are_there_stay() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let before = world.namespace("before", &["west"]).await;
        offload(world, &before, json!({})).await;
        phase(world, &before, "Ready").await;
        let twins = Api::<Namespace>::all(east.client.clone());
        let twin = twins.get("before-west").await.unwrap();

        peer(east, "west", json!({"incoming": null})).await;
        peer_says(world, "west", "east", "NotOffered").await;
        let ns = world.namespace("refused", &["west"]).await;
        offload(world, &ns, json!({})).await;
        let status = phase(world, &ns, "AllFailed").await;
        let ready = status.remote_namespaces_conditions["east"].iter().find(|c| c.type_ == READY).unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "CreationLoopBackOff"));
        assert!(ready.message.contains("NotAccepted: "), "{}", ready.message);
        assert!(ready.message.contains("freeport offload accept west"), "{}", ready.message);
        assert_eq!(twins.get_opt("refused-west").await.unwrap().map(|_| ()), None);
        let stays = twins.get("before-west").await.unwrap();
        assert_eq!((stays.uid(), stays.metadata.deletion_timestamp), (twin.uid(), None));
        eventually("the node takes no new Pods", || async {
            let node = Api::<Node>::all(west.client.clone()).get("freeport-east").await.unwrap();
            let taints = node.spec.unwrap().taints.unwrap_or_default();
            match taints.iter().any(|taint| taint.key == "multicluster.freeport.dev/no-new-pods") {
                true => Ok(()),
                false => Err(format!("{taints:?}")),
            }
        })
        .await;

        agreed(world).await;
        phase(world, &ns, "Ready").await;
        for ns in [&before, &ns] {
            west.delete::<NamespaceOffloading>(ns, "offloading").await;
            gone(world, "east", &format!("{ns}-west")).await;
            world.release(ns).await;
        }
    });
}

#[e2e::test]
fn a_consent_that_is_narrowed_or_cannot_be_read_leaves_twins_and_lets_no_new_one_in() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("narrow", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let twins = Api::<Namespace>::all(east.client.clone());
        let twin = twins.get("narrow-west").await.unwrap();
        let stays = async |what: &str| {
            let now = twins.get("narrow-west").await.unwrap();
            assert_eq!((now.uid(), now.metadata.deletion_timestamp), (twin.uid(), None), "{what}");
        };
        let more = world.namespace("narrow-more", &["west"]).await;
        let refused = async |what: &str| {
            let says = format!("{what} lets no new twin in");
            eventually(&says, || async {
                let status = phase(world, &more, "AllFailed").await;
                let said = format!("{:?}", status.remote_namespaces_conditions["east"]);
                if said.contains(&format!("{what}: ")) { Ok(()) } else { Err(said) }
            })
            .await;
            assert!(twins.get_opt("narrow-more-west").await.unwrap().is_none());
            stays(what).await;
        };

        peer(east, "west", json!({"incoming": {"maxNamespaces": 1, "podSecurity": "restricted"}})).await;
        offload(world, &more, json!({})).await;
        refused("TooManyNamespaces").await;
        eventually("the twin has the level of the consent", || async {
            let labels = twins.get("narrow-west").await.unwrap().metadata.labels.unwrap_or_default();
            let level = labels.get("pod-security.kubernetes.io/enforce").map(String::as_str);
            if level == Some("restricted") { Ok(()) } else { Err(format!("{labels:?}")) }
        })
        .await;
        phase(world, &ns, "Ready").await;

        let had = east.take_crd("offloadpeers.multicluster.freeport.dev").await;
        refused("ConsentUnknown").await;
        east.put_back_crd(had).await;
        peer(east, "west", json!({"incoming": {"maxNamespaces": 100, "podSecurity": "baseline"}})).await;
        agreed(world).await;
        phase(world, &more, "Ready").await;
        stays("it is as it was").await;
        for ns in [&ns, &more] {
            west.delete::<NamespaceOffloading>(ns, "offloading").await;
            gone(world, "east", &format!("{ns}-west")).await;
            world.release(ns).await;
        }
    });
}

/// Nobody keeps the twin of one that cannot have any, and its owner is told.
#[e2e::test]
fn the_label_on_a_namespace_that_cannot_be_offloaded_is_a_warning() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        let namespaces = Api::<Namespace>::all(west.client.clone());
        let label =
            |value: Option<&str>| Patch::Merge(json!({"metadata": {"labels": {"liqo.io/enabled": value}}}));
        namespaces.patch("kube-public", &PatchParams::default(), &label(Some("true"))).await.unwrap();
        eventually("its owner is told", || event(west, "default", "kube-public", "NotOffloadable")).await;
        assert!(
            west.api::<NamespaceOffloading>("kube-public").get_opt("offloading").await.unwrap().is_none()
        );
        namespaces.patch("kube-public", &PatchParams::default(), &label(None)).await.unwrap();
    });
}

/// Whether a cluster lists the Namespace that gets no twin.
async fn lists_refused(world: &World, cluster: &str) -> Result<(), String> {
    let listed = run(world, &format!("freeport offload maps --context {cluster}")).await;
    let is_row = |line: &str| {
        line.split_whitespace().take(4).eq(["west", "east", "taken", "taken-west"])
            && line.contains("Refused: ")
            && line.contains("NotOurs: Namespace taken-west exists")
    };
    if listed.lines().any(is_row) { Ok(()) } else { Err(listed) }
}

#[e2e::test(real)]
fn a_namespace_that_is_not_ours_is_never_touched() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("taken", &["west"]).await;
        let foreign = world.namespace("taken-west", &["east"]).await;
        let there = Api::<Namespace>::all(east.client.clone());
        let before = there.get(&foreign).await.unwrap();
        offload(world, &ns, json!({})).await;
        let status = phase(world, &ns, "AllFailed").await;
        let said = format!("{:?}", status.remote_namespaces_conditions["east"]);
        assert!(said.contains("NotOurs: Namespace taken-west exists"), "{said}");
        for cluster in ["west", "east"] {
            eventually(&format!("{cluster} lists it"), || lists_refused(world, cluster)).await;
        }

        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let offloadings = west.api::<NamespaceOffloading>(&ns);
        eventually("offloading ends", || async {
            let there = offloadings.get_opt("offloading").await.unwrap();
            there.map_or(Ok(()), |there| Err(format!("{:?}", there.status)))
        })
        .await;
        let after = there.get(&foreign).await.unwrap();
        assert_eq!(before.meta().resource_version, after.meta().resource_version);
        world.release(&ns).await;
        world.release(&foreign).await;
    });
}

/// Somebody deletes a twin, and its host may not make it again for a while: no event says when it may.
#[e2e::test(real)]
fn a_twin_that_could_not_be_made_is_made_when_nothing_is_in_its_way_any_more() {
    const POLICY: &str = "no-twin-again";
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let ns = world.namespace("again", &["west"]).await;
        offload(world, &ns, json!({})).await;
        phase(world, &ns, "Ready").await;
        let twins = Api::<Namespace>::all(east.client.clone());
        let before = twins.get("again-west").await.unwrap();
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["namespaces"]});
        let spec = json!({
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.metadata.name != 'again-west'", "message": "not again"}],
        });
        forbid(east, POLICY, spec).await;
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let again: Namespace = serde_json::from_value(json!({"metadata": {"name": "again-west"}})).unwrap();
        eventually("the policy holds", || async {
            match twins.create(&dry, &again).await {
                Err(kube::Error::Api(status)) if status.message.contains("not again") => Ok(()),
                answer => Err(format!("{answer:?}")),
            }
        })
        .await;
        twins.delete("again-west", &DeleteParams::default()).await.unwrap();
        let status = phase(world, &ns, "AllFailed").await;
        let said = format!("{:?}", status.remote_namespaces_conditions["east"]);
        assert!(said.contains("not again"), "{said}");

        permit(east, POLICY).await;
        phase(world, &ns, "Ready").await;
        let after = twins.get("again-west").await.unwrap();
        assert_ne!(after.uid(), before.uid());
        assert_eq!(after.annotations()["liqo.io/original-name"], "again");
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", "again-west").await;
        world.release(&ns).await;
    });
}
