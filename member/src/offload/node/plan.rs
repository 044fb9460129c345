//! What becomes of the Node of a cluster: pure.

use super::desired::is_valid;
use crate::offload::index::{Asked, ClusterEntry};

/// What becomes of the Node of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It has to be there, made of the offer.
    Put,
    /// It stays as it is.
    Keep,
    /// It goes when no Pod of ours is left there.
    Wait,
    /// It was deleted, and has to be there as it was.
    Restore,
    /// It goes.
    Delete,
    /// There is none, and none is asked for.
    Nothing,
}

/// What a Node is held against.
pub(super) struct Around<H> {
    /// The Common Area has been seen, so that what is not there was not merely not listed.
    pub(super) is_seen: bool,
    /// What the host offers is not that of a backup.
    pub(super) is_current: bool,
    /// Pods of ours run there, or it is not known that they have ended.
    pub(super) has_pods: bool,
    /// Whether a Namespace ever asked for a twin there.
    pub(super) has_asked: H,
}

/// What becomes of the Node.
pub(super) fn plan(entry: &ClusterEntry, around: Around<impl Fn(&String) -> bool>) -> Plan {
    let is_offered = around.is_current && entry.offered().is_some_and(is_valid);
    match (entry.outgoing(), &entry.node) {
        (Asked::Yes(()), _) if is_offered => Plan::Put,
        // Somebody copied a Node of this member: it stays.
        (Asked::No, Some(node)) if !node.is_made_here() => Plan::Nothing,
        (Asked::No, Some(_)) if around.is_seen && !entry.has_twins(around.has_asked) => {
            if around.has_pods {
                Plan::Wait
            } else {
                Plan::Delete
            }
        }
        (_, Some(_)) => Plan::Keep,
        (Asked::Yes(()) | Asked::Unknown, None) if entry.node_before.is_some() => Plan::Restore,
        (_, None) => Plan::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(peer: &Value, offer: bool, node: bool) -> ClusterEntry {
        let read = |object: Value| serde_json::from_value(object).unwrap();
        let spec = json!({"host": "east", "home": "west", "resources": {"cpu": "4"}, "publicKey": ""});
        let offered = json!({"metadata": {"name": "1.east.west"}, "spec": spec});
        ClusterEntry {
            peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": peer})).unwrap(),
            offer: offer.then(|| serde_json::from_value(offered).unwrap()),
            node: node.then(|| read(json!({"metadata": {"name": "freeport-east", "managedFields": [{"manager": "freeport-member"}]}}))),
            ..ClusterEntry::default()
        }
    }

    #[test]
    fn only_a_decision_takes_a_node_away() {
        let with = |has_pods, is_seen, is_current| Around {
            is_seen,
            is_current,
            has_pods,
            has_asked: |_: &String| true,
        };
        let plan = |entry: &ClusterEntry, is_seen, is_current| plan(entry, with(false, is_seen, is_current));
        let used = json!({"outgoing": {}});
        assert_eq!(plan(&entry(&used, true, false), true, true), Plan::Put);
        assert_eq!(plan(&entry(&used, false, false), true, true), Plan::Nothing, "nothing is offered");
        assert_eq!(plan(&entry(&used, true, true), true, false), Plan::Keep, "it may be of a backup");
        assert_eq!(
            plan(&entry(&used, false, true), true, true),
            Plan::Keep,
            "the offer vanished, or was withdrawn"
        );
        assert_eq!(
            plan(&entry(&json!({"outgoing": 7}), true, true), true, true),
            Plan::Keep,
            "it does not decode"
        );
        let mut deleted = entry(&used, false, true);
        deleted.node_before = deleted.node.take();
        assert_eq!(plan(&deleted, true, true), Plan::Restore, "nothing is offered, and somebody deleted it");
        deleted.peer = entry(&json!({}), false, false).peer;
        assert_eq!(plan(&deleted, true, true), Plan::Nothing, "it is not asked for");
        let mut gone = entry(&json!({}), true, true);
        assert_eq!(plan(&gone, true, true), Plan::Delete);
        assert_eq!(plan(&gone, false, true), Plan::Keep, "the Common Area was not seen");
        let copy = serde_json::from_value(json!({"metadata": {"name": "freeport-copy"}})).unwrap();
        let made = gone.node.replace(copy);
        assert_eq!(plan(&gone, true, true), Plan::Nothing, "somebody else made it");
        gone.node = made;
        gone.peer = None;
        assert_eq!(plan(&gone, true, true), Plan::Keep, "it is not known why the OffloadPeer is gone");
        gone.peer_withdrawn = Some(false);
        assert_eq!(plan(&gone, true, true), Plan::Keep, "with its CRD");
        gone.peer_withdrawn = Some(true);
        assert_eq!(plan(&gone, true, true), Plan::Delete);
        assert_eq!(super::plan(&gone, with(true, true, true)), Plan::Wait, "Pods have to end first");
        assert_eq!(super::plan(&gone, with(true, false, true)), Plan::Keep);
        let map = json!({"metadata": {"name": "1.west.east"}, "spec": {
            "origin": "west", "destination": "east", "desiredMapping": {"shop": "shop-west"},
        }});
        gone.own_map = serde_json::from_value(map).unwrap();
        assert_eq!(plan(&gone, true, true), Plan::Keep, "a twin is left there");
        let said = json!({"metadata": {"name": "1.west.east"}, "status": {"currentMapping": {"shop": {}}}});
        gone.own_map = serde_json::from_value(said).unwrap();
        assert_eq!(plan(&gone, true, true), Plan::Keep, "a twin goes there");
        let around =
            Around { is_seen: true, is_current: true, has_pods: false, has_asked: |_: &String| false };
        assert_eq!(super::plan(&gone, around), Plan::Delete, "nobody asked for what it says");
    }
}
