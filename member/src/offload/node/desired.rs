//! What a virtual node has to be: pure.

use api::{
    label as general,
    offload::{
        label, names,
        offer::OffloadOfferSpec,
        quantity::{self, Resources},
    },
    view::Lenient,
};
use kube::{ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::labels::{Labels, labels, of_others, to_remember};
use crate::offload::view::{VirtualNode, VirtualNodeSpec, VirtualNodeStatus};

/// Whether what is offered can be a Node.
pub(super) fn is_valid(offered: &OffloadOfferSpec) -> bool {
    quantity::check(&offered.resources).is_ok()
}

/// The Node of a cluster, where there is perhaps one.
pub(super) fn node(
    cluster: &str,
    offered: &OffloadOfferSpec,
    have: Option<&VirtualNode>,
    takes_pods: bool,
) -> VirtualNode {
    let none = ObjectMeta::default();
    let before = have.map_or(&none, |have| &have.metadata);
    let (had, noted) = (before.labels.clone().unwrap_or_default(), before.annotations.as_ref());
    let noted = noted.and_then(|annotations| annotations.get(general::EXPORTED_METADATA));
    let (labels, note) = labels(cluster, &offered.node_labels, &had, noted.map(String::as_str));
    let metadata = ObjectMeta {
        name: Some(names::virtual_node(cluster)),
        labels: Some(labels),
        annotations: Some([(general::EXPORTED_METADATA.to_owned(), note)].into()),
        ..ObjectMeta::default()
    };
    let spec = tainted(have.map(|have| have.spec.clone()).unwrap_or_default(), takes_pods);
    VirtualNode { metadata, spec, status: Default::default() }
}

/// The same where somebody deleted the Node that was there `before`: with what others had set on it.
pub(super) fn node_after(
    cluster: &str,
    offered: &OffloadOfferSpec,
    before: &VirtualNode,
    takes_pods: bool,
) -> VirtualNode {
    let before = anew(before);
    let mut node = node(cluster, offered, Some(&before), takes_pods);
    let noted = before.annotations().get(general::EXPORTED_METADATA).map(String::as_str);
    for (label, value) in of_others(before.labels(), noted) {
        node.labels_mut().entry(label).or_insert(value);
    }
    node
}

/// Labels of the Node that are not ours, and that it has to have again if it is deleted while we do not look.
pub(in crate::offload) fn labels_of_others(node: &VirtualNode) -> Labels {
    let noted = node.annotations().get(general::EXPORTED_METADATA).map(String::as_str);
    to_remember(node.labels(), noted)
}

/// A Node with these labels, of which nothing else is known.
pub(super) fn remembered(labels: &Labels) -> VirtualNode {
    let metadata = ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() };
    VirtualNode { metadata, spec: VirtualNodeSpec::default(), status: Default::default() }
}

/// The Node as it is, but it takes no new Pods.
pub(super) fn without_new_pods(have: &VirtualNode) -> VirtualNode {
    VirtualNode { spec: tainted(have.spec.clone(), false), ..have.clone() }
}

/// Taints that Kubernetes sets, and takes off.
const OF_KUBERNETES: &str = "node.kubernetes.io/";

/// A Node that was deleted, with what others had set on it; but it takes no new Pods.
pub(super) fn anew(before: &VirtualNode) -> VirtualNode {
    let metadata = ObjectMeta {
        name: before.metadata.name.clone(),
        labels: before.metadata.labels.clone(),
        annotations: before.metadata.annotations.clone(),
        ..ObjectMeta::default()
    };
    let mut spec = before.spec.clone();
    spec.taints.retain(|taint| !taint["key"].as_str().is_some_and(|key| key.starts_with(OF_KUBERNETES)));
    VirtualNode { metadata, spec: tainted(spec, false), status: Default::default() }
}

/// A Node that was just made anew, with what was known of it `before`, as far as its status is to say that again.
pub(super) fn with_status(
    made: VirtualNode,
    have: Option<&VirtualNode>,
    before: Option<&VirtualNode>,
) -> VirtualNode {
    let (None, Some(Ok(status))) = (have, before.map(|before| before.status.0.as_ref())) else { return made };
    // Nothing is allocatable yet: that is to be written.
    let status = VirtualNodeStatus { allocatable: Resources::default(), ..status.clone() };
    VirtualNode { status: Lenient(Ok(status)), ..made }
}

/// The spec with our taints; those of others stay where they are.
fn tainted(mut spec: VirtualNodeSpec, takes_pods: bool) -> VirtualNodeSpec {
    let taints = &mut spec.taints;
    let is = |taint: &Value, key: &str| taint["key"] == key;
    let allowed_only =
        json!({"key": label::NOT_ALLOWED, "value": general::TRUE, "effect": label::NO_EXECUTE});
    let no_new_pods =
        json!({"key": label::NO_NEW_PODS, "value": general::TRUE, "effect": label::NO_SCHEDULE});
    if takes_pods {
        taints.retain(|taint| !is(taint, label::NO_NEW_PODS));
    } else if !taints.iter().any(|taint| is(taint, label::NO_NEW_PODS)) {
        taints.push(no_new_pods);
    }
    let says = |taint: &Value| ["value", "effect"].iter().all(|field| taint[*field] == allowed_only[*field]);
    if !taints.iter().any(|taint| is(taint, label::NOT_ALLOWED) && says(taint)) {
        taints.retain(|taint| !is(taint, label::NOT_ALLOWED));
        taints.push(allowed_only);
    }
    spec
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::offload::node) fn offered() -> OffloadOfferSpec {
        let spec = json!({
            "host": "east", "home": "west", "resources": {"cpu": "2000m", "memory": "1024Mi"},
            "nodeLabels": {"liqo.io/region": "us"}, "publicKey": "",
        });
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn taints_of_others_stay_and_a_second_pass_changes_nothing() {
        let mut node = node("east", &offered(), None, false);
        let keys = |node: &VirtualNode| -> Vec<String> {
            node.spec.taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(keys(&node), [label::NO_NEW_PODS, label::NOT_ALLOWED]);
        node.spec.taints.insert(0, json!({"key": "theirs", "effect": "NoSchedule", "timeAdded": "odd"}));
        let heard_again = super::node("east", &offered(), Some(&node), true);
        assert_eq!(keys(&heard_again), ["theirs", label::NOT_ALLOWED]);
        let again = super::node("east", &offered(), Some(&heard_again), true);
        assert_eq!(again, heard_again);
        assert_eq!(heard_again.labels()["liqo.io/region"], "us");
        assert_eq!(keys(&without_new_pods(&again)), ["theirs", label::NOT_ALLOWED, label::NO_NEW_PODS]);
    }

    #[test]
    fn a_deleted_node_comes_back_with_what_others_had_set() {
        let mut node = node("east", &offered(), None, true);
        node.labels_mut().insert("tier".into(), "gold".into());
        for key in ["theirs", "node.kubernetes.io/unreachable"] {
            node.spec.taints.push(json!({"key": key, "effect": "NoExecute"}));
        }
        node.metadata.uid = Some("u".into());
        node.spec.unschedulable = Some(true);
        let again = anew(&node);
        assert_eq!(again.spec.unschedulable, Some(true), "it is cordoned");
        let keys = |node: &VirtualNode| -> Vec<String> {
            node.spec.taints.iter().map(|taint| taint["key"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(again.labels()["tier"], "gold");
        assert_eq!(
            (keys(&again), again.metadata.uid.clone()),
            (vec![label::NOT_ALLOWED.into(), "theirs".into(), label::NO_NEW_PODS.into()], None)
        );
        let offered_again = node_after("east", &offered(), &node, true);
        assert_eq!((offered_again.labels(), keys(&offered_again).len()), (node.labels(), 2));
        let other = OffloadOfferSpec { node_labels: [].into(), ..offered() };
        let moved = node_after("east", &other, &node, true);
        assert_eq!(
            (moved.labels().get("tier").map(String::as_str), moved.labels().get("liqo.io/region")),
            (Some("gold"), None)
        );
    }

    #[test]
    fn a_node_that_was_deleted_while_nobody_looked_comes_back_with_labels_of_others() {
        let mut node = node("east", &offered(), None, true);
        assert_eq!(labels_of_others(&node), Labels::new());
        node.labels_mut().insert("tier".into(), "gold".into());
        node.labels_mut().insert("liqo.io/region".into(), "eu".into());
        let others = labels_of_others(&node);
        assert_eq!(json!(others), json!({"tier": "gold", "liqo.io/region": "eu"}));
        let again = node_after("east", &offered(), &remembered(&others), true);
        assert_eq!(again.labels(), node.labels());
        assert_eq!(labels_of_others(&again), others, "and so the next time");
        assert_eq!(again.spec.taints.len(), 1);
    }
}
