//! Pods that the test binds at home, and what the host's kubelet would say of them.

use api::offload::shadow_pod::ShadowPod;
use e2e::{
    cluster::Cluster,
    fixture::{AREA, World},
    waiting::eventually,
};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::super::world::{agreed, offload, phase};

/// A Namespace of `west` that has its twin in `east`, and the name of that. Its new Pods are not placed: no webhook runs.
pub(in super::super) async fn offloaded(world: &World, name: &str) -> (String, String) {
    agreed(world).await;
    let ns = world.namespace(name, &["west"]).await;
    offload(world, &ns, json!({"podOffloadingStrategy": "Local"})).await;
    phase(world, &ns, "Ready").await;
    let twin = format!("{ns}-west");
    (ns, twin)
}

/// A Pod that is bound to the virtual node.
pub(in super::super) async fn bind(cluster: &Cluster, namespace: &str, name: &str) -> Pod {
    bind_with(cluster, namespace, name, json!({})).await
}

/// [`bind`] with more in its spec.
pub(in super::super) async fn bind_with(cluster: &Cluster, namespace: &str, name: &str, more: Value) -> Pod {
    eventually(&format!("{namespace} takes Pods"), || async {
        let account = cluster.api::<ServiceAccount>(namespace).get_opt("default").await.unwrap();
        account.map(drop).ok_or_else(|| "no ServiceAccount".to_owned())
    })
    .await;
    let word = json!({"name": "WORD", "value": "a word for the host alone"});
    let mut spec = json!({
        "nodeName": "freeport-east",
        "containers": [{"name": "main", "image": "localhost/agnhost", "env": [word]}],
        "tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}],
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let pod = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    cluster.create(namespace, pod).await
}

/// The Pod at the host, once it is there and is not the one with this uid.
pub(in super::super) async fn twin_pod(
    world: &World,
    twin: &str,
    name: &str,
    other_than: Option<String>,
) -> Pod {
    eventually(&format!("{twin}/{name} is there"), || async {
        let found = world.cluster("east").api::<Pod>(twin).get_opt(name).await.unwrap();
        let found = found.filter(|pod| pod.metadata.deletion_timestamp.is_none() && pod.uid() != other_than);
        found.ok_or_else(|| logs(world))
    })
    .await
}

/// Waits until the Pod is gone from the host.
pub(in super::super) async fn twin_pod_gone(world: &World, twin: &str, name: &str) {
    eventually(&format!("{twin}/{name} is gone"), || async {
        let found = world.cluster("east").api::<Pod>(twin).get_opt(name).await.unwrap();
        found.map_or(Ok(()), |pod| Err(format!("{:?}\n{}", pod.metadata, logs(world))))
    })
    .await;
}

/// Waits until the ShadowPod is gone.
pub(super) async fn no_record(world: &World, name: &str) {
    eventually(&format!("{name} is gone"), || async {
        let found = world.leader().api::<ShadowPod>(AREA).get_opt(name).await.unwrap();
        found.map_or(Ok(()), |record| Err(format!("{:?} {:?}", record.spec.deletion, record.status)))
    })
    .await;
}

/// The host's kubelet says this of a Pod.
pub(in super::super) async fn kubelet_says(host: &Cluster, twin: &str, name: &str, status: Value) {
    let status = Patch::Merge(json!({"status": status}));
    host.api::<Pod>(twin).patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// Waits until the Pod at home is in this phase, for this reason; empty for none.
pub(in super::super) async fn is(
    world: &World,
    namespace: &str,
    name: &str,
    phase: &str,
    reason: &str,
) -> Pod {
    eventually(&format!("{namespace}/{name} is {phase} {reason}"), || async {
        let pod = world.cluster("west").api::<Pod>(namespace).get(name).await.unwrap();
        let status = pod.status.clone().unwrap_or_default();
        let says = (status.phase.as_deref(), status.reason.as_deref().unwrap_or_default());
        match says == (Some(phase), reason) {
            true => Ok(pod),
            false => Err(format!("{status:?}\n{}", logs(world))),
        }
    })
    .await
}

fn logs(world: &World) -> String {
    ["west", "east"].map(|id| world.log_tail(&format!("freeport-member-{id}"))).join("\n---\n")
}
