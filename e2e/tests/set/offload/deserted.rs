//! A host that leaves while Pods run there: they come back to their owners.

use api::{
    cluster_set::ClusterSet,
    offload::{
        label::NO_NEW_PODS, namespace::NamespaceOffloading, pod_status::ABORTED, shadow_pod::ShadowPod,
    },
};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, SET, SYSTEM, World},
    waiting::eventually,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    pods::{
        running,
        world::{is, kubelet_says, offloaded, twin_pod},
    },
    world::{OFFLOADING, agreed, gone, peer_says, phase},
};

const CONNECTED: (&str, &str) = ("True", "Connected");
const NODE: &str = "freeport-east";

/// The Pod of the Namespace that has no Node yet.
async fn unbound(cluster: &Cluster, namespace: &str) -> String {
    eventually("the Deployment makes a Pod", || async {
        let pods = cluster.api::<Pod>(namespace).list(&ListParams::default()).await.unwrap();
        let unbound = pods.iter().find(|pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none()));
        unbound.map(ResourceExt::name_any).ok_or_else(|| format!("{:?}", pods.items))
    })
    .await
}

/// What a scheduler does.
async fn bind_to(cluster: &Cluster, namespace: &str, pod: &str, node: &str) {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let pods = cluster.api::<Pod>(namespace);
    let _: Value = pods.create_subresource("binding", pod, &PostParams::default(), &binding).await.unwrap();
}

/// Binds a Pod of the Namespace to the host, where it runs at this address.
async fn runs_there(world: &World, (ns, twin): (&str, &str), address: &str) -> (String, Pod) {
    let (west, east) = (world.cluster("west"), world.cluster("east"));
    let name = unbound(west, ns).await;
    bind_to(west, ns, &name, NODE).await;
    twin_pod(world, twin, &name, None).await;
    kubelet_says(east, twin, &name, running(address)).await;
    let pod = is(world, ns, &name, "Running", "").await;
    (name, pod)
}

async fn no_record(world: &World, pod: &str) {
    eventually("no record of the Pod is left", || async {
        let left = world.leader().api::<ShadowPod>(AREA).list(&ListParams::default()).await.unwrap();
        let left: Vec<_> = left.iter().filter(|record| record.spec.pod == pod).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

#[e2e::test]
fn a_host_that_leaves_gives_its_pods_back_to_their_owners() {
    OFFLOADING.alone(async |world| {
        let (west, east) = (world.cluster("west"), world.cluster("east"));
        let (ns, twin) = offloaded(world, "deserted").await;
        let container = json!({"name": "main", "image": "localhost/agnhost"});
        let tolerations = json!([{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}]);
        let labels = json!({"app": "web"});
        let deployment = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "tolerations": tolerations},
            },
        }});
        let _: Deployment = west.create(&ns, deployment).await;
        let (name, pod) = runs_there(world, (&ns, &twin), "10.99.0.7").await;
        let (other, _) = runs_there(world, (&ns, &twin), "10.99.0.8").await;

        let set: ClusterSet = east.take(SYSTEM, SET).await;
        gone(world, "east", &twin).await;
        peer_says(world, "west", "east", "NotInClusterSet").await;
        let failed = is(world, &ns, &name, "Failed", ABORTED).await;
        assert_eq!(failed.uid(), pod.uid());
        assert_ne!(unbound(west, &ns).await, name, "its owner made another one");
        let conditions = failed.status.unwrap().conditions.unwrap_or_default();
        let ready: Vec<_> = conditions.iter().filter(|condition| condition.type_ == "Ready").collect();
        assert!(
            ready.iter().all(|ready| ready.status == "False"),
            "what has ended takes no traffic: {ready:?}"
        );
        let nodes = Api::<Node>::all(west.client.clone());
        eventually("the Node says that its host has left", || async {
            let status = nodes.get(NODE).await.map_err(|error| error.to_string())?.status.unwrap_or_default();
            let ready = status.conditions.unwrap_or_default().into_iter().find(|it| it.type_ == "Ready");
            let reason = ready.and_then(|ready| ready.reason);
            if reason.as_deref() == Some("HostLeft") { Ok(()) } else { Err(format!("{reason:?}")) }
        })
        .await;
        let node = nodes.get(NODE).await.unwrap();
        let taints = node.spec.unwrap().taints.unwrap_or_default();
        assert!(taints.iter().any(|taint| taint.key == NO_NEW_PODS), "which goes elsewhere: {taints:?}");

        let status = phase(world, &ns, "NoClusterSelected").await;
        let said = status.remote_namespaces_conditions;
        assert!(!said.contains_key("east"), "nothing is to come of a host that has left: {said:?}");

        is(world, &ns, &other, "Failed", ABORTED).await;
        west.delete::<Pod>(&ns, &other).await;
        no_record(world, &other).await;

        east.put_back(set).await;
        world.member_says("east", CONNECTED).await;
        agreed(world).await;
        phase(world, &ns, "Ready").await;
        let still = west.api::<Pod>(&ns).get(&name).await.unwrap();
        assert_eq!(still.status.unwrap().reason.as_deref(), Some(ABORTED), "it does not run again");
        assert!(east.api::<Pod>(&twin).get_opt(&name).await.unwrap().is_none());
        west.delete::<Pod>(&ns, &name).await;
        no_record(world, &name).await;
        west.delete::<NamespaceOffloading>(&ns, "offloading").await;
        gone(world, "east", &twin).await;
        world.release(&ns).await;
    });
}
