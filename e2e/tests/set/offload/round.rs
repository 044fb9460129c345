//! Once around: consent, virtual node, offloading, twin, status, and back.

use api::offload::{
    map::NamespaceMap,
    namespace::{NamespaceOffloading, READY},
};
use e2e::{fixture::AREA, waiting::eventually};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Node},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::world::{OFFLOADING, agreed, gone, offload, phase};

#[e2e::test]
fn a_namespace_gets_its_twin_in_a_selected_cluster_and_loses_it_again() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        agreed(world).await;
        let nodes = Api::<Node>::all(west.client.clone());
        let node = eventually("the node is ready", || async {
            let node = nodes.get("freeport-east").await.map_err(|error| error.to_string())?;
            let status = node.status.clone().unwrap_or_default();
            let is_ready =
                |c: &k8s_openapi::api::core::v1::NodeCondition| c.type_ == "Ready" && c.status == "True";
            if status.conditions.iter().flatten().any(is_ready) {
                Ok(node)
            } else {
                Err(format!("{status:?}"))
            }
        })
        .await;
        for (key, value) in [
            ("liqo.io/type", "virtual-node"),
            ("liqo.io/remote-cluster-id", "east"),
            ("liqo.io/region", "us"),
            ("kubernetes.io/hostname", "freeport-east"),
        ] {
            assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "{key}");
        }
        let taints = node.spec.unwrap().taints.unwrap();
        let not_allowed =
            taints.iter().find(|taint| taint.key == "virtual-node.liqo.io/not-allowed").unwrap();
        assert_eq!((not_allowed.value.as_deref(), not_allowed.effect.as_str()), (Some("true"), "NoExecute"));
        assert_eq!(node.status.unwrap().capacity.unwrap()["pods"].0, "110");
        let lease = eventually("its Lease is there", || async {
            let leases = west.api::<Lease>("kube-node-lease");
            leases.get("freeport-east").await.map_err(|error| error.to_string())
        })
        .await;
        assert_eq!(lease.owner_references()[0].name, "freeport-east");

        let ns = world.namespace("shop", &["west"]).await;
        let expression = json!({"key": "liqo.io/region", "operator": "In", "values": ["us"]});
        let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        offload(world, &ns, json!({"podOffloadingStrategy": "Remote", "clusterSelector": selector})).await;
        let status = phase(world, &ns, "Ready").await;
        assert_eq!(status.remote_namespace_name.as_deref(), Some("shop-west"));
        let conditions = &status.remote_namespaces_conditions["east"];
        let words: Vec<_> = conditions.iter().map(|c| (c.type_.as_str(), c.reason.as_str())).collect();
        assert_eq!(words, [("OffloadingRequired", "ClusterSelected"), (READY, "NamespaceCreated")]);
        let twin = Api::<Namespace>::all(east.client.clone()).get("shop-west").await.unwrap();
        assert_eq!(twin.labels()["pod-security.kubernetes.io/enforce"], "baseline");
        assert_eq!(twin.annotations()["liqo.io/original-name"], "shop");
        let home = Api::<Namespace>::all(west.client.clone());
        assert_eq!(home.get(&ns).await.unwrap().labels()["liqo.io/scheduling-enabled"], "true");

        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        let offloadings = west.api::<NamespaceOffloading>(&ns);
        eventually("offloading ends", || async {
            match offloadings.get_opt("offloading").await.unwrap() {
                None => Ok(()),
                Some(there) => Err(format!("{:?} {:?}", there.metadata.finalizers, there.status)),
            }
        })
        .await;
        gone(world, "east", "shop-west").await;
        assert!(!home.get(&ns).await.unwrap().labels().contains_key("liqo.io/scheduling-enabled"));
        eventually("the map knows nothing of it", || async {
            let map = world.leader().api::<NamespaceMap>(AREA).get("1.west.east").await.unwrap();
            let current = map.status.unwrap_or_default().current_mapping;
            let is_gone = !map.spec.desired_mapping.contains_key("shop") && current.is_empty();
            if is_gone { Ok(()) } else { Err(format!("{:?} {current:?}", map.spec)) }
        })
        .await;
        world.release(&ns).await;
    });
}

#[e2e::test]
fn a_deleted_namespace_takes_its_twin_along_and_only_other_strategies_than_local_have_the_label() {
    OFFLOADING.alone(async |world| {
        let west = world.cluster("west");
        agreed(world).await;
        let ns = world.namespace("short-lived", &["west"]).await;
        offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
        phase(world, &ns, "Ready").await;
        let home = Api::<Namespace>::all(west.client.clone());
        let is_labelled =
            async || home.get(&ns).await.unwrap().labels().contains_key("liqo.io/scheduling-enabled");
        assert!(!is_labelled().await, "the webhook is not asked about what stays here");
        let offloadings = west.api::<NamespaceOffloading>(&ns);
        for (strategy, wanted) in [("Remote", true), ("Local", false)] {
            let patch = Patch::Merge(json!({"spec": {"podOffloadingStrategy": strategy}}));
            offloadings.patch("offloading", &PatchParams::default(), &patch).await.unwrap();
            eventually(&format!("the label follows {strategy}"), || async {
                if is_labelled().await == wanted {
                    Ok(())
                } else {
                    Err(world.log_tail("freeport-member-west"))
                }
            })
            .await;
        }

        home.delete(&ns, &Default::default()).await.unwrap();
        gone(world, "east", "short-lived-west").await;
        gone(world, "west", &ns).await;
        let map = world.leader().api::<NamespaceMap>(AREA).get("1.west.east").await.unwrap();
        assert!(!map.spec.desired_mapping.contains_key(&ns), "{:?}", map.spec);
        let said = map.status.unwrap_or_default().current_mapping;
        assert!(!said.contains_key(&ns), "{said:?}");
    });
}
