//! In which clusters a Namespace has a twin, and which of them a change would take it from: pure.

use api::{
    offload::{
        label::REMOTE_CLUSTER_ID,
        map::CREATION_LOOP_BACK_OFF,
        namespace::{NamespaceOffloadingSpec, NamespaceOffloadingStatus, READY},
        selector::{Candidate, selects},
    },
    view::Meta,
};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::condition;

/// Clusters that have something of the Namespace.
pub(super) fn clusters(status: &NamespaceOffloadingStatus) -> Vec<&str> {
    let of = &status.remote_namespaces_conditions;
    let has = of.iter().filter(|(_, conditions)| condition(conditions, READY).is_some());
    has.map(|(id, _)| id.as_str()).collect()
}

/// Reasons of a host that refuses a twin and has none of this Namespace. One that says another may have one all the same, of another name or
/// not whole.
const HAS_NONE: [&str; 6] =
    ["NotAccepted", "ConsentUnknown", "NameNotAllowed", "NameReserved", "NotOurs", "TooManyNamespaces"];

/// Clusters with a twin: those that refuse one are not among them.
pub(crate) fn with_twin(status: &NamespaceOffloadingStatus) -> Vec<&str> {
    clusters(status).into_iter().filter(|id| refusal(status, id).is_none()).collect()
}

/// Clusters that refuse the twin and may have one all the same, with their words.
pub(super) fn perhaps_with_twin(status: &NamespaceOffloadingStatus) -> Vec<(&str, &str)> {
    let refusals = clusters(status).into_iter().filter_map(|id| Some((id, refusal(status, id)?)));
    // The name of the twin comes before the reason.
    let has_none = |words: &str| words.split(": ").take(2).any(|word| HAS_NONE.contains(&word));
    refusals.filter(|(_, words)| !has_none(words)).collect()
}

/// What a cluster says that refuses a twin.
fn refusal<'a>(status: &'a NamespaceOffloadingStatus, id: &str) -> Option<&'a str> {
    let conditions = status.remote_namespaces_conditions.get(id)?;
    let ready = condition(conditions, READY).filter(|ready| ready.reason == CREATION_LOOP_BACK_OFF)?;
    Some(&ready.message)
}

/// Those of clusters with a twin that lose it when the NamespaceOffloading gets this spec: their Nodes are not selected by it. A cluster
/// whose Node is not there loses nothing: what it is like is not known.
pub(super) fn unselected<'a>(
    clusters: Vec<&'a str>,
    spec: &NamespaceOffloadingSpec,
    nodes: &[Meta<Node>],
) -> Vec<&'a str> {
    let is_of =
        |node: &&Meta<Node>, id: &str| node.labels().get(REMOTE_CLUSTER_ID).is_some_and(|of| of == id);
    let is_lost = |id: &&str| {
        nodes.iter().find(|node| is_of(node, id)).is_some_and(|node| {
            !selects(spec.terms(), Candidate { name: &node.name_any(), labels: node.labels() })
        })
    };
    clusters.into_iter().filter(is_lost).collect()
}

/// What goes in these clusters, in words.
pub(super) fn goes(status: &NamespaceOffloadingStatus, clusters: &[&str]) -> String {
    let twin = status.remote_namespace_name.as_deref().unwrap_or("its twin");
    format!("Namespace {twin} goes in {}, with all that is in it", clusters.join(", "))
}

#[cfg(test)]
mod tests {
    use api::offload::{consent::Refusal, twin::TwinError};
    use serde_json::json;

    use super::*;

    #[test]
    fn who_refuses_a_twin_may_have_one_of_another_name() {
        let said = |message: &str| {
            json!([{
                "type": "Ready", "status": "False", "reason": "CreationLoopBackOff", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }])
        };
        let changed = "b2-west: NameChanged: b2 has twin b2 here";
        let status = json!({"remoteNamespacesConditions": {
            "east": said(changed), "south": said("b2-west: NotAccepted: no"), "north": said("NotOurs: no"),
        }});
        let status: NamespaceOffloadingStatus = serde_json::from_value(status).unwrap();
        assert_eq!(with_twin(&status), [""; 0]);
        assert_eq!(perhaps_with_twin(&status), [("east", changed)]);
        let of = |refusal: Refusal| HAS_NONE.contains(&refusal.reason());
        let (home, twin) = (|| "west".to_owned(), || "b2".to_owned());
        assert!(of(Refusal::NotAccepted { home: home() }) && of(Refusal::ConsentUnknown { home: home() }));
        assert!(of(Refusal::NameNotAllowed { home: home(), twin: twin() }));
        assert!(of(Refusal::TooMany { home: home(), most: 1 }));
        assert!(HAS_NONE.contains(&TwinError::Reserved(twin()).reason()));
    }

    #[test]
    fn a_cluster_that_is_not_selected_any_more_loses_its_twin() {
        let said = |reason: &str| {
            json!([{
                "type": "Ready", "status": "True", "reason": reason, "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z",
            }])
        };
        let status = json!({
            "remoteNamespaceName": "shop-west",
            "remoteNamespacesConditions": {
                "east": said("NamespaceCreated"), "north": said("CreationLoopBackOff"), "south": said("NamespaceCreated"),
                "gone": said("NamespaceCreated"),
            },
        });
        let status: NamespaceOffloadingStatus = serde_json::from_value(status).unwrap();
        let node = |id: &str, region: &str| -> Meta<Node> {
            let labels = json!({"liqo.io/remote-cluster-id": id, "region": region});
            serde_json::from_value(json!({"metadata": {"name": format!("freeport-{id}"), "labels": labels}}))
                .unwrap()
        };
        let nodes = [node("east", "a"), node("north", "b"), node("south", "b")];
        let lost_by = |spec| unselected(clusters(&status), &serde_json::from_value(spec).unwrap(), &nodes);
        let region = json!([{"matchExpressions": [{"key": "region", "operator": "In", "values": ["a"]}]}]);
        assert_eq!(lost_by(json!({"clusterSelector": {"nodeSelectorTerms": region}})), ["north", "south"]);
        assert_eq!(lost_by(json!({})), [""; 0]);
        assert_eq!(goes(&status, &["south"]), "Namespace shop-west goes in south, with all that is in it");
    }
}
