//! Pods that are where their Namespace's strategy puts no new ones: pure. They are older than the strategy, or the webhook did not place them.

use std::collections::{BTreeMap, HashMap};

use api::{
    offload::{
        namespace::{NamespaceOffloading, NamespaceOffloadingSpec, PodOffloadingStrategy},
        review::{is_placed, review, review_untravelling},
        selector::{Candidate, selects},
        travel::content,
    },
    view::Lenient,
};
use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::view::NodeView;

/// A Pod: where it runs.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = Pod)]
pub(super) struct PodView {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Value,
    #[serde(default)]
    pub(super) status: Lenient<PodStatusView>,
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

/// A NamespaceOffloading: who wrote its fields when.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = NamespaceOffloading)]
pub(super) struct WrittenView {
    metadata: ObjectMeta,
}

impl WrittenView {
    /// Namespace, and when its spec was written last, as far as the API server knows.
    pub(super) fn spec_written(&self) -> Option<(String, Timestamp)> {
        let of_spec =
            self.metadata.managed_fields.iter().flatten().filter(|entry| {
                entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some())
            });
        let times = of_spec.filter_map(|entry| entry.time.as_ref()).chain(&self.metadata.creation_timestamp);
        Some((self.namespace()?, times.map(|time| time.0).max()?))
    }
}

/// When the specs of NamespaceOffloadings were written last, by Namespace.
pub(super) type SpecsWritten = HashMap<String, Timestamp>;

/// Names of Pods that would be elsewhere, were they created now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Misplaced {
    /// They are older than what the NamespaceOffloading says.
    pub(super) older: Vec<String>,
    /// They are younger, and the webhook was not asked about them.
    pub(super) unplaced: Vec<String>,
}

/// The Pods of a Namespace that are not where its NamespaceOffloading, which has this `spec` since `written`, puts new ones.
pub(super) fn misplaced(
    spec: &NamespaceOffloadingSpec,
    written: Option<Timestamp>,
    namespace: &str,
    pods: &[PodView],
    nodes: &BTreeMap<&str, &NodeView>,
) -> Misplaced {
    let here =
        pods.iter().filter(|pod| pod.metadata.namespace.as_deref() == Some(namespace) && pod.is_active());
    let mut misplaced = Misplaced::default();
    for pod in here.filter(|pod| is_misplaced(spec, pod, nodes)) {
        let is_younger = written
            .is_some_and(|written| pod.creation_timestamp().is_some_and(|created| created.0 > written));
        let names = match is_younger && is_unplaced(spec, pod) {
            true => &mut misplaced.unplaced,
            false => &mut misplaced.older,
        };
        names.push(pod.name_any());
    }
    misplaced
}

impl PodView {
    /// As it was before it was bound.
    fn unbound(&self) -> Value {
        let mut spec = self.spec.clone();
        spec.as_object_mut().map(|spec| spec.remove("nodeName"));
        json!({"metadata": self.metadata, "spec": spec})
    }

    /// What the webhook would change of it. Nothing where it would not let it in.
    fn changes(&self, spec: &NamespaceOffloadingSpec) -> Option<Vec<Value>> {
        let unbound = self.unbound();
        let changes = match content(&unbound) {
            Ok(_) => review(&unbound, spec),
            Err(_) => review_untravelling(&unbound, spec),
        };
        changes.ok()
    }
}

/// Whether the webhook has not looked at the Pod: it lets all that it looks at onto virtual nodes.
fn is_unplaced(spec: &NamespaceOffloadingSpec, pod: &PodView) -> bool {
    let is_toleration =
        |change: &Value| change["path"].as_str().is_some_and(|path| path.starts_with("/spec/tolerations"));
    pod.changes(spec).is_some_and(|changes| changes.iter().any(is_toleration))
}

fn is_misplaced(spec: &NamespaceOffloadingSpec, pod: &PodView, nodes: &BTreeMap<&str, &NodeView>) -> bool {
    let Some(node) = pod.spec.get("nodeName").and_then(Value::as_str) else {
        // The webhook would change it, or not let it in.
        return pod.spec.is_object() && pod.changes(spec).is_none_or(|changes| !changes.is_empty());
    };
    let there = nodes.get(node);
    let unbound = pod.unbound();
    // The strategy has no say in where it runs, and had none.
    if is_placed(&unbound, &unbound["spec"]) {
        return false;
    }
    let none = BTreeMap::new();
    let is_selected = there.is_some_and(|there| {
        let labels = there.metadata.labels.as_ref().unwrap_or(&none);
        selects(spec.terms(), Candidate { name: node, labels })
    });
    match spec.pod_offloading_strategy {
        PodOffloadingStrategy::Local => there.is_some(),
        PodOffloadingStrategy::Remote => !is_selected,
        PodOffloadingStrategy::LocalAndRemote => {
            there.is_some() && (!is_selected || content(&unbound).is_err())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: Option<&str>, class: Option<&str>) -> PodView {
        let mut spec = json!({"containers": []});
        for (field, value) in [("nodeName", node), ("runtimeClassName", class)] {
            if let Some(value) = value {
                spec[field] = json!(value);
            }
        }
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
                let kept = json!({"key": "liqo.io/type", "operator": "In", "values": ["virtual-node"]});
                pod.spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"nodeSelectorTerms": [{"matchExpressions": [kept]}]}}});
                pod.spec["tolerations"] =
                    json!([{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}]);
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
            let found = misplaced(&spec, None, "shop", &pods, &nodes);
            assert_eq!(found.older, want, "{strategy} {selector}");
            assert_eq!(found.unplaced, Vec::<String>::new());
            assert_eq!(misplaced(&spec, None, "other", &pods, &nodes), Misplaced::default());
        }
    }

    #[test]
    fn a_pod_that_cannot_travel_is_at_home_where_the_strategy_lets_it() {
        let node: NodeView = serde_json::from_value(json!({"metadata": {"name": "freeport-east"}})).unwrap();
        let nodes = BTreeMap::from([("freeport-east", &node)]);
        let config = |pod: PodView| {
            with(pod, |pod| pod.spec["volumes"] = json!([{"name": "web", "configMap": {"name": "web"}}]))
        };
        let kept = with(config(pod("kept", None, None)), |pod| {
            let home = json!({"key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"]});
            pod.spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [home]}]}}});
        });
        let pods = [
            config(pod("here", Some("worker"), None)),
            config(pod("there", Some("freeport-east"), None)),
            kept,
        ];
        let found = misplaced(&NamespaceOffloadingSpec::default(), None, "shop", &pods, &nodes);
        assert_eq!(found.older, ["there"]);
    }

    #[test]
    fn a_pod_that_the_webhook_did_not_see_is_not_older_than_the_strategy() {
        let time = |minute: u8| format!("2026-01-01T00:{minute:02}:00Z");
        let written: WrittenView = serde_json::from_value(json!({"metadata": {
            "namespace": "shop", "creationTimestamp": time(1),
            "managedFields": [
                {"manager": "freeport-member", "time": time(9), "fieldsV1": {"f:metadata": {"f:finalizers": {}}}},
                {"manager": "kubectl", "time": time(5), "fieldsV1": {"f:spec": {"f:podOffloadingStrategy": {}}}},
            ],
        }})).unwrap();
        let (namespace, written) = written.spec_written().unwrap();
        assert_eq!((namespace.as_str(), written.to_string()), ("shop", time(5)));
        let at = |minute: u8, pod: PodView| {
            with(pod, |pod| {
                pod.metadata.creation_timestamp = serde_json::from_value(json!(time(minute))).unwrap();
            })
        };
        let tolerates = json!([{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}]);
        let pods = [
            at(4, pod("old", Some("worker"), None)),
            at(6, pod("slipped", Some("worker"), None)),
            at(6, with(pod("reviewed", Some("worker"), None), |pod| pod.spec["tolerations"] = tolerates)),
            at(6, pod("waiting", None, None)),
        ];
        let remote = serde_json::from_value(json!({"podOffloadingStrategy": "Remote"})).unwrap();
        let found = misplaced(&remote, Some(written), "shop", &pods, &BTreeMap::new());
        assert_eq!(found.older, ["old", "reviewed"], "one strategy after the other placed it");
        assert_eq!(found.unplaced, ["slipped", "waiting"]);
        let local = serde_json::from_value(json!({"podOffloadingStrategy": "Local"})).unwrap();
        assert_eq!(misplaced(&local, Some(written), "shop", &pods, &BTreeMap::new()), Misplaced::default());
    }
}
