//! What serves in twins is replaced at home before the twins end: new Pods of the Namespace run at home from then on, and the Pods of
//! ReplicaSets that are ready at virtual Nodes are evicted, one after the other, each when the one before it has a replacement that is ready.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use api::{
    label::TRUE,
    offload::{
        label::{SCHEDULING_ENABLED, TYPE, VIRTUAL_NODE},
        namespace::{NAME, NamespaceOffloading, PodOffloadingStrategy},
        view::NamespaceOffloadingView,
    },
    view::{Meta, Named},
};
use k8s_openapi::{
    api::{
        apps::v1::ReplicaSet,
        core::v1::{Namespace, Node, Pod},
        policy::v1::Eviction,
    },
    apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, OwnerReference, Preconditions},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    Error,
    cluster::{Cluster, known},
    eraser::Say,
    install::MANAGER,
    rollout,
};

/// A Pod that serves at a virtual Node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Serving {
    name: String,
    uid: String,
    /// Name of its ReplicaSet.
    owner: String,
}

/// Has what serves in twins of the Namespace replaced at home. Waits `limit` for each Pod.
pub(super) async fn replace(
    cluster: &Cluster,
    offloading: &NamespaceOffloadingView,
    limit: Duration,
    say: Say<'_>,
) -> Result<(), Error> {
    let namespace = offloading.namespace().unwrap_or_default();
    if find(cluster, &namespace).await?.is_empty() {
        return Ok(());
    }
    let replacement = Replacement { cluster, namespace: &namespace, limit };
    replacement.stay_home(offloading, say).await?;
    // Others may have come to serve there meanwhile.
    let serving = find(cluster, &namespace).await?;
    for (number, pod) in serving.iter().enumerate() {
        replacement.replace(pod, say).await?;
        say(&format!(
            "{}: {} of {} Pods that serve elsewhere are replaced",
            cluster.name,
            number + 1,
            serving.len()
        ));
    }
    Ok(())
}

/// Pods that serve at virtual Nodes, and that a ReplicaSet replaces.
async fn find(cluster: &Cluster, namespace: &str) -> Result<Vec<Serving>, Error> {
    let virtual_nodes = format!("{TYPE}={VIRTUAL_NODE}");
    let nodes = cluster.all(&Api::<Named<Node>>::all(cluster.client.clone()), &virtual_nodes).await?;
    let nodes: BTreeSet<_> = nodes.iter().map(ResourceExt::name_any).collect();
    let pods = cluster.all(&Api::<Pod>::namespaced(cluster.client.clone(), namespace), "").await?;
    Ok(pods.iter().filter_map(|pod| serving(pod, &nodes)).collect())
}

fn serving(pod: &Pod, virtual_nodes: &BTreeSet<String>) -> Option<Serving> {
    let node = pod.spec.as_ref()?.node_name.as_ref()?;
    let owner = owner(pod)?;
    (is_ready(pod) && virtual_nodes.contains(node)).then_some(Serving {
        name: pod.name_any(),
        uid: pod.uid()?,
        owner: owner.name.clone(),
    })
}

/// How many Pods a ReplicaSet has.
#[derive(Clone, Copy, Debug)]
struct Replicas {
    wanted: i32,
    /// Without those that are being deleted.
    ready: usize,
}

/// Whether a ReplicaSet is as ready as it was `before` a Pod was evicted, or as it is to be `now`: somebody may have scaled it down. Nobody
/// replaces what has no owner any more.
fn is_replaced(before: Option<Replicas>, now: Option<Replicas>) -> bool {
    let (Some(before), Some(now)) = (before, now) else { return true };
    now.ready >= before.ready.min(usize::try_from(now.wanted).unwrap_or_default())
}

/// Whether the Pod is ready and stays.
fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|said| said.type_ == "Ready" && said.status == "True")
        && pod.metadata.deletion_timestamp.is_none()
}

/// How many Pods of the ReplicaSet with this uid are ready and stay.
fn ready_of(pods: &[Pod], uid: &str) -> usize {
    pods.iter().filter(|pod| is_ready(pod) && owner(pod).is_some_and(|owner| owner.uid == uid)).count()
}

/// The ReplicaSet of the Pod.
fn owner(pod: &Pod) -> Option<&OwnerReference> {
    let controls = |owner: &&OwnerReference| owner.controller == Some(true) && owner.kind == "ReplicaSet";
    pod.owner_references().iter().find(controls)
}

/// Replaces the Pods of one Namespace.
struct Replacement<'a> {
    cluster: &'a Cluster,
    namespace: &'a str,
    limit: Duration,
}

impl Replacement<'_> {
    /// Has new Pods run at home: otherwise each replacement would go where the Pod before it was.
    async fn stay_home(&self, offloading: &NamespaceOffloadingView, say: Say<'_>) -> Result<(), Error> {
        let Self { cluster, namespace, .. } = self;
        let strategy = offloading.spec.0.as_ref().ok().map(|spec| spec.pod_offloading_strategy);
        if strategy != Some(PodOffloadingStrategy::Local) {
            let offloadings: Api<NamespaceOffloading> = Api::namespaced(cluster.client.clone(), namespace);
            let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
            let patch =
                Patch::Merge(json!({"spec": {"podOffloadingStrategy": PodOffloadingStrategy::Local}}));
            let doing = format!("change NamespaceOffloading {namespace}/{NAME}");
            cluster.request(doing, offloadings.patch(NAME, &params, &patch)).await?;
            say(&format!(
                "{}: changed NamespaceOffloading {namespace}/{NAME}: podOffloadingStrategy is Local, so that new Pods run at home",
                cluster.name
            ));
        }
        let namespaces: Api<Meta<Namespace>> = Api::all(cluster.client.clone());
        let probe = async || {
            let there = known(namespaces.get(namespace));
            let there = cluster.request(format!("read Namespace {namespace}"), there).await?;
            let is_on =
                |there: &Meta<Namespace>| there.labels().get(SCHEDULING_ENABLED).is_some_and(|on| on == TRUE);
            Ok(match there.is_some_and(|there| is_on(&there)) {
                true => Err(format!("freeport-member has not removed label {SCHEDULING_ENABLED} yet")),
                false => Ok(()),
            })
        };
        self.wait(probe, say).await
    }

    /// Evicts a Pod, and waits until its ReplicaSet has as many Pods that are ready as before, or as it wants by then.
    async fn replace(&self, pod: &Serving, say: Say<'_>) -> Result<(), Error> {
        let begun = Instant::now();
        let Serving { name, owner, .. } = pod;
        let before = self.replicas(owner).await?;
        let evicted = async || self.evict(pod).await;
        self.wait(evicted, say).await?;
        let probe = async || {
            Ok(match is_replaced(before, self.replicas(owner).await?) {
                true => Ok(()),
                false => Err(format!("ReplicaSet {owner} has no Pod yet that is ready in place of {name}")),
            })
        };
        Self { limit: self.limit.saturating_sub(begun.elapsed()), ..*self }.wait(probe, say).await
    }

    /// Evicts the Pod; what keeps it, if something does.
    async fn evict(&self, pod: &Serving) -> Result<Result<(), String>, Error> {
        let Self { cluster, namespace, .. } = self;
        let Serving { name, uid, .. } = pod;
        let only = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let eviction = Eviction {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            delete_options: Some(DeleteOptions { preconditions: Some(only), ..DeleteOptions::default() }),
        };
        let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
        let params = PostParams::default();
        let evict = pods.create_subresource::<_, serde_json::Value>("eviction", name, &params, &eviction);
        match cluster.request(format!("evict Pod {namespace}/{name}"), known(evict)).await {
            Ok(_) => Ok(Ok(())),
            // A PodDisruptionBudget does not allow it yet.
            Err(Error::Request { source, .. }) if is_refused_for_now(&source) => {
                Ok(Err(format!("Pod {name} may not be evicted yet: {source}")))
            }
            Err(error) => Err(error),
        }
    }

    /// The Pods of a ReplicaSet; none if there is no such ReplicaSet. They are counted here: its status may be from before the eviction.
    async fn replicas(&self, name: &str) -> Result<Option<Replicas>, Error> {
        let Self { cluster, namespace, .. } = self;
        let sets: Api<ReplicaSet> = Api::namespaced(cluster.client.clone(), namespace);
        let set = cluster.request(format!("read ReplicaSet {namespace}/{name}"), sets.get_opt(name)).await?;
        let Some(set) = set else { return Ok(None) };
        let pods = cluster.all(&Api::<Pod>::namespaced(cluster.client.clone(), namespace), "").await?;
        let ready = ready_of(&pods, &set.uid().unwrap_or_default());
        Ok(Some(Replicas { wanted: set.spec.replicas.unwrap_or(1), ready }))
    }

    async fn wait(
        &self,
        probe: impl AsyncFn() -> Result<Result<(), String>, Error>,
        say: Say<'_>,
    ) -> Result<(), Error> {
        let Self { cluster, namespace, limit } = self;
        let waiting = |message: &str| say(&format!("{}: waiting for {namespace}: {message}", cluster.name));
        rollout::wait(*limit, probe, waiting).await?.map_err(|message| Error::Timeout {
            cluster: cluster.name.clone(),
            missing: format!(
                "{message}; nothing was deleted, and new Pods of Namespace {namespace} run at home. Run this again to go on, or with --now to end \
                 what serves elsewhere at once"
            ),
            limit: *limit,
        })
    }
}

/// Whether a request may be accepted later (429).
fn is_refused_for_now(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 429)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_ready_elsewhere_and_has_a_replica_set_is_replaced() {
        let nodes = BTreeSet::from(["freeport-east".to_owned()]);
        let example = json!({
            "metadata": {"name": "web-1", "uid": "u", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true},
            ]},
            "spec": {"nodeName": "freeport-east", "containers": []},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let changed = |path: &str, value: Value| {
            let mut pod = example.clone();
            *pod.pointer_mut(path).unwrap() = value;
            serving(&serde_json::from_value(pod).unwrap(), &nodes)
        };
        let web = Serving { name: "web-1".into(), uid: "u".into(), owner: "web".into() };
        assert_eq!(changed("/metadata/name", json!("web-1")), Some(web));
        assert_eq!(changed("/spec/nodeName", json!("node-1")), None, "it is at home");
        assert_eq!(changed("/status/conditions/0/status", json!("False")), None, "it does not serve");
        assert_eq!(changed("/metadata/ownerReferences/0/kind", json!("StatefulSet")), None);
        assert_eq!(changed("/metadata/ownerReferences", json!([])), None, "nobody replaces it");
    }

    #[test]
    fn a_pod_that_was_evicted_is_not_ready_any_more() {
        let pod = |metadata: Value| -> Pod {
            let mut pod = json!({"metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true}]);
            serde_json::from_value(pod).unwrap()
        };
        let evicted = pod(json!({"name": "web-1", "deletionTimestamp": "2026-11-01T12:00:00Z"}));
        let pods = [evicted, pod(json!({"name": "web-2"})), pod(json!({"name": "web-3"}))];
        assert_eq!((ready_of(&pods, "r"), ready_of(&pods, "another")), (2, 0));
    }

    #[test]
    fn who_is_scaled_down_meanwhile_needs_no_replacement() {
        let replicas = |wanted, ready| Some(Replicas { wanted, ready });
        assert!(!is_replaced(replicas(2, 2), replicas(2, 1)));
        assert!(is_replaced(replicas(2, 2), replicas(2, 2)));
        assert!(is_replaced(replicas(2, 2), replicas(1, 1)), "by somebody who scales it");
        assert!(is_replaced(replicas(2, 2), replicas(0, 0)), "by a rollout");
        assert!(is_replaced(replicas(2, 1), replicas(2, 1)), "it was not all ready before");
        assert!(is_replaced(replicas(2, 2), None), "it is gone");
    }
}
