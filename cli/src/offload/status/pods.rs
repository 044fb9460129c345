//! Pods that are where their Namespace's strategy puts no new ones: pure.

use std::collections::BTreeMap;

use api::{
    offload::{
        namespace::{NamespaceOffloadingSpec, PodOffloadingStrategy},
        review::{is_placed, review},
        selector::{Candidate, selects},
    },
    view::{Lenient, annotated},
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Resource, api::ObjectMeta};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::view::Conditions;

/// A Node.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Node)]
pub(super) struct NodeView {
    #[serde(deserialize_with = "annotated")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) status: Lenient<Conditions>,
}

/// A Pod: where it runs.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Pod)]
pub(super) struct PodView {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Lenient<PodSpecView>,
    #[serde(default)]
    pub(super) status: Lenient<PodStatusView>,
}

/// Where a Pod runs, and may.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpecView {
    pub(super) node_name: Option<String>,
    pub(super) runtime_class_name: Option<String>,
    affinity: Value,
    tolerations: Value,
}

/// How far a Pod is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatusView {
    pub(super) phase: Option<String>,
}

impl PodView {
    /// It runs, or will: it has neither ended nor is being deleted.
    fn is_active(&self) -> bool {
        let phase = self.status.0.as_ref().ok().and_then(|status| status.phase.as_deref());
        self.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
    }
}

/// Names of the Pods that would be elsewhere, were they created now.
pub(super) fn older(
    spec: &NamespaceOffloadingSpec,
    namespace: &str,
    pods: &[PodView],
    nodes: &BTreeMap<&str, &NodeView>,
) -> Vec<String> {
    let none = BTreeMap::new();
    let is_misplaced = |pod: &&PodView| {
        let Ok(PodSpecView { node_name, runtime_class_name, affinity, tolerations }) = &pod.spec.0 else {
            return false;
        };
        let unbound =
            json!({"runtimeClassName": runtime_class_name, "affinity": affinity, "tolerations": tolerations});
        let Some(node) = node_name else {
            // The webhook would change it, or not let it in.
            let reviewed = review(&json!({"metadata": pod.metadata, "spec": unbound}), spec);
            return reviewed.map_or(true, |patch| !patch.is_empty());
        };
        let there = nodes.get(node.as_str());
        // The strategy has no say in where it runs, and had none.
        if is_placed(&json!({"metadata": pod.metadata}), &unbound) {
            return false;
        }
        let is_selected = there.is_some_and(|there| {
            let labels = there.metadata.labels.as_ref().unwrap_or(&none);
            selects(spec.terms(), Candidate { name: node, labels })
        });
        match spec.pod_offloading_strategy {
            PodOffloadingStrategy::Local => there.is_some(),
            PodOffloadingStrategy::Remote => !is_selected,
            PodOffloadingStrategy::LocalAndRemote => there.is_some() && !is_selected,
        }
    };
    let here =
        pods.iter().filter(|pod| pod.metadata.namespace.as_deref() == Some(namespace) && pod.is_active());
    here.filter(is_misplaced).filter_map(|pod| pod.metadata.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: Option<&str>, class: Option<&str>) -> PodView {
        let spec = json!({"nodeName": node, "runtimeClassName": class});
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec}))
            .unwrap()
    }

    fn with(mut pod: PodView, change: impl FnOnce(&mut PodView)) -> PodView {
        change(&mut pod);
        pod
    }

    #[test]
    fn a_pod_is_older_if_it_would_be_elsewhere_now() {
        let node: NodeView = serde_json::from_value(json!({
            "metadata": {"name": "freeport-east", "labels": {"region": "a"}},
        }))
        .unwrap();
        let nodes = BTreeMap::from([("freeport-east", &node)]);
        let pods = [
            pod("here", Some("worker"), None),
            pod("there", Some("freeport-east"), None),
            pod("waiting", None, None),
            with(pod("reviewed", None, None), |pod| {
                let spec = pod.spec.0.as_mut().unwrap();
                let kept = json!({"key": "liqo.io/type", "operator": "In", "values": ["virtual-node"]});
                spec.affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"nodeSelectorTerms": [{"matchExpressions": [kept]}]}}});
                spec.tolerations = json!([{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}]);
            }),
            pod("chosen", Some("freeport-east"), Some("liqo")),
            with(pod("everywhere", Some("worker"), None), |pod| {
                let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log", "uid": "u", "controller": true}]);
                pod.metadata.owner_references = serde_json::from_value(owner).unwrap();
            }),
            with(pod("done", Some("worker"), None), |pod| {
                pod.status = serde_json::from_value(json!({"phase": "Succeeded"})).unwrap();
            }),
            with(pod("going", Some("worker"), None), |pod| {
                pod.metadata.deletion_timestamp =
                    serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
            }),
        ];
        let select = |region: &str| json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "region", "operator": "In", "values": [region]}]}]});
        for (strategy, selector, want) in [
            ("Local", Value::Null, &["there"][..]),
            ("Remote", Value::Null, &["here", "waiting"]),
            ("Remote", select("b"), &["here", "there", "waiting", "reviewed"]),
            ("LocalAndRemote", Value::Null, &["waiting"]),
            ("LocalAndRemote", select("a"), &["waiting", "reviewed"]),
            ("LocalAndRemote", select("b"), &["there", "waiting", "reviewed"]),
        ] {
            let spec = json!({"podOffloadingStrategy": strategy, "clusterSelector": selector});
            let spec = serde_json::from_value(spec).unwrap();
            assert_eq!(older(&spec, "shop", &pods, &nodes), want, "{strategy} {selector}");
            assert!(older(&spec, "other", &pods, &nodes).is_empty());
        }
    }
}
