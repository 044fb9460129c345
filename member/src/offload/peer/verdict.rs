//! What an OffloadPeer says of itself: pure.

use std::collections::BTreeMap;

use api::{
    condition::{Status, Verdict},
    membership::Wire,
    offload::{
        names,
        peer::{Incoming, OffloadPeerSpec, READY},
        quantity,
        view::OffloadPeerView,
    },
    view::shortened,
};
use kit::watch::Trouble;
use presence::standing::Standing;

use super::is_cut;
use crate::offload::{
    index::{Asked, ClusterEntry},
    node::may_claim,
    room::RECORDS_MAX,
};

/// Reason of [`READY`], Unknown: something is still to be written or seen.
pub(super) const PENDING: &str = "Pending";

/// Bytes of the names of labels that a host claims.
const CLAIMS_MAX: usize = 300;

/// What can be said of an OffloadPeer beside what its entry says.
pub(super) struct Around<'a> {
    pub(super) us: &'a str,
    pub(super) wire: Wire,
    /// Watches that fail, in words.
    pub(super) blind: Option<String>,
    /// Whether the Common Area has been seen and our ID is ours.
    pub(super) has_begun: bool,
    pub(super) standing: Option<Standing>,
    /// Whether it has no Lease, as far as the Common Area is heard.
    pub(super) has_no_lease: bool,
    /// Why there is no key for what homes seal, if somebody has to mend that.
    pub(super) key_refused: Option<String>,
    /// Whether it has written more ShadowPods for us than there is room for.
    pub(super) leaves_out: bool,
}

/// Whether all that the OffloadPeer of `cluster` asks for works, or the first thing that is missing.
pub(super) fn ready(
    cluster: &str,
    entry: &ClusterEntry,
    peer: &OffloadPeerView,
    around: Around<'_>,
) -> Verdict {
    let no = |reason: &str, message: String| Verdict::new(READY, Status::False, reason, message);
    let spec = match &peer.spec.0 {
        Ok(spec) => spec,
        Err(error) => return no("InvalidSpec", format!("the spec cannot be read: {error}")),
    };
    if around.wire == Wire::Antrea {
        let message =
            "the leader of this ClusterSet runs Antrea's controllers, which know nothing of offloading";
        return no("AntreaLeader", message.to_owned());
    }
    if cluster == around.us {
        return no("OwnCluster", "this is the ID of this cluster itself".to_owned());
    }
    if let Some(blind) = around.blind {
        return no("CannotWatch", blind);
    }
    if !around.has_begun {
        let message = "the Common Area has not been seen yet";
        return Verdict::new(READY, Status::Unknown, PENDING, message);
    }
    // Where Leases merely vanish members are waited for; one that leaves takes its offer along.
    let has_left = spec.outgoing.is_some() && around.has_no_lease && entry.offered().is_none();
    match around.standing {
        None => return no("NotInClusterSet", not_a_member(cluster, spec)),
        Some(_) if has_left => return no("NotInClusterSet", not_a_member(cluster, spec)),
        Some(Standing::Silent { .. }) if spec.outgoing.is_some() => {
            return no("HostSilent", format!("cluster {cluster} does not renew its Lease"));
        }
        Some(_) => {}
    }
    if let Some(refused) = around.key_refused.filter(|_| spec.incoming.is_some()) {
        return no("KeyUnusable", refused);
    }
    if spec.incoming.is_some() && entry.own_offer.is_none() {
        let message = "the OffloadOffer of this cluster is not written yet";
        return Verdict::new(READY, Status::Unknown, PENDING, message);
    }
    let verdict = match &spec.outgoing {
        Some(_) => node_ready(cluster, around.us, entry),
        None => Verdict::new(READY, Status::True, "Ready", told(cluster, spec.incoming.as_ref(), false)),
    };
    // How many there are is in a metric: the message stays the same while there are any.
    let too_many = around.leaves_out.then(|| {
        format!("; cluster {cluster} asks for more than {RECORDS_MAX} Pods here: the newest wait until others have gone")
    });
    Verdict { message: verdict.message + &too_many.unwrap_or_default(), ..verdict }
}

/// What is so of a cluster that does not belong to the set, and what to do.
fn not_a_member(cluster: &str, spec: &OffloadPeerSpec) -> String {
    let unused = spec.outgoing.as_ref().map(|_| format!("freeport offload use {cluster} --remove --yes"));
    let refused = spec.incoming.as_ref().map(|_| format!("freeport offload accept {cluster} --remove"));
    let take_back: Vec<_> = unused.into_iter().chain(refused).collect();
    let so = format!("no member of this ClusterSet has the ID {cluster}: it has not joined, or has left");
    match take_back.is_empty() {
        true => so,
        false => format!("{so}; unless it joins, undo this with: {}", take_back.join("; ")),
    }
}

/// Whether the cluster is a node here.
fn node_ready(cluster: &str, us: &str, entry: &ClusterEntry) -> Verdict {
    let no = |reason: &str, message: String| Verdict::new(READY, Status::False, reason, message);
    if let Some(refused) = &entry.node_refused {
        return no("NodeRefused", refused.clone());
    }
    let Some(offered) = entry.offered() else {
        let message = format!(
            "cluster {cluster} offers nothing to this one; its administrator does so with: freeport offload accept {us}"
        );
        return no("NotOffered", message);
    };
    if let Err(error) = quantity::check(&offered.resources) {
        return no("OfferInvalid", format!("what cluster {cluster} offers cannot be a node: {error}"));
    }
    let incoming = match entry.incoming() {
        Asked::Yes(incoming) => Some(incoming),
        _ => None,
    };
    match &entry.node {
        Some(_) => {
            let claims = left_out(&offered.node_labels);
            let claims = claims.map(|keys| {
                format!("; labels that no host may set, or no Node can have, are left out: {keys}")
            });
            let message = told(cluster, incoming, true) + &claims.unwrap_or_default();
            Verdict::new(READY, Status::True, "Ready", message)
        }
        None => Verdict::new(READY, Status::Unknown, PENDING, "the Node is not made yet"),
    }
}

/// Keys of the labels that the Node does not get, in words.
fn left_out(labels: &BTreeMap<String, String>) -> Option<String> {
    let left_out = labels.iter().filter(|(key, value)| !may_claim(key, value));
    let keys: Vec<_> = left_out.map(|(key, _)| key.as_str()).collect();
    (!keys.is_empty()).then(|| shortened(keys.join(", "), CLAIMS_MAX))
}

fn told(cluster: &str, incoming: Option<&Incoming>, outgoing: bool) -> String {
    let outgoing =
        outgoing.then(|| format!("cluster {cluster} is Node {} here", names::virtual_node(cluster)));
    let left_out = incoming.and_then(|incoming| left_out(&incoming.node_labels));
    let comes = incoming.map(|_| format!("Namespaces of cluster {cluster} may come here"));
    let cut = incoming.filter(|incoming| is_cut(&incoming.capacity()));
    let cut = cut.map(|_| {
        format!("of the Pods that spec.incoming.resources allows it is offered {RECORDS_MAX}: no more of one cluster run here")
    });
    let left_out = left_out.map(|keys| {
        format!("labels of spec.incoming.nodeLabels that no host may set, or no Node can have, are left out: {keys}")
    });
    let both: Vec<_> = outgoing.into_iter().chain(comes).chain(cut).chain(left_out).collect();
    if both.is_empty() { "nothing is allowed or asked for".to_owned() } else { both.join("; ") }
}

/// What fails, in words that stay the same while the cause does.
pub(super) fn in_words(troubles: &[Trouble]) -> Option<String> {
    let one = |trouble: &Trouble| {
        let place = if trouble.source.cluster == "leader" { "the leader's cluster" } else { "this cluster" };
        let manifest =
            if trouble.source.cluster == "leader" { "offload-leader.yaml" } else { "offload.yaml" };
        let kind = trouble.source.kind.rsplit(' ').next().unwrap_or(trouble.source.kind);
        format!("cannot watch {kind} in {place}: {} (manifests/{manifest})", trouble.failure)
    };
    let mut all: Vec<_> = troubles.iter().map(one).collect();
    // What is ours and what is others' is watched apart.
    all.sort();
    all.dedup();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use kit::{failure::Failure, watch::Source};
    use serde_json::{Value, json};

    use super::*;

    fn entry(peer: &Value) -> ClusterEntry {
        let peer = json!({"metadata": {"name": "east"}, "spec": peer});
        ClusterEntry { peer: serde_json::from_value(peer).unwrap(), ..ClusterEntry::default() }
    }

    fn says(entry: &ClusterEntry, change: impl Fn(&mut Around<'_>)) -> (Status, String) {
        let verdict = verdict(entry, change);
        (verdict.status, verdict.reason)
    }

    fn told_of(entry: &ClusterEntry) -> String {
        verdict(entry, |_| ()).message
    }

    fn verdict(entry: &ClusterEntry, change: impl Fn(&mut Around<'_>)) -> Verdict {
        let mut around = Around {
            us: "west",
            wire: Wire::Freeport,
            blind: None,
            has_begun: true,
            standing: Some(Standing::Present),
            has_no_lease: false,
            key_refused: None,
            leaves_out: false,
        };
        change(&mut around);
        ready("east", entry, entry.peer.as_ref().unwrap(), around)
    }

    #[test]
    fn a_peer_says_the_first_thing_that_is_missing() {
        let mut both = entry(&json!({"incoming": {}, "outgoing": {}}));
        let no = |reason: &str| (Status::False, reason.to_owned());
        assert_eq!(says(&both, |a| a.wire = Wire::Antrea), no("AntreaLeader"));
        assert_eq!(says(&both, |a| a.blind = Some("x".into())), no("CannotWatch"));
        assert_eq!(says(&both, |a| a.has_begun = false).0, Status::Unknown);
        assert_eq!(says(&both, |a| a.standing = None), no("NotInClusterSet"));
        assert_eq!(says(&both, |a| a.standing = Some(Standing::Silent { since: None })), no("HostSilent"));
        assert_eq!(says(&both, |a| a.key_refused = Some("x".into())), no("KeyUnusable"));
        assert_eq!(says(&both, |_| ()).0, Status::Unknown, "our offer is not written");
        both.own_offer = serde_json::from_value(json!({"metadata": {"name": "1.west.east"}})).unwrap();
        assert_eq!(says(&both, |_| ()), no("NotOffered"));
        let left = verdict(&both, |a| (a.standing, a.has_no_lease) = (Some(Standing::Unheard), true));
        assert_eq!(left.reason, "NotInClusterSet");
        assert!(left.message.contains("freeport offload use east --remove --yes; freeport offload accept"));
        let theirs = json!({"metadata": {"name": "1.east.west"}, "spec": {
            "host": "east", "home": "west", "resources": {"cpu": "4"}, "publicKey": "",
        }});
        both.offer = serde_json::from_value(theirs).unwrap();
        assert_eq!(says(&both, |_| ()).0, Status::Unknown, "the node is not made");
        assert_eq!(says(&both, |a| a.has_no_lease = true).0, Status::Unknown, "its Lease merely vanished");
        both.node = serde_json::from_value(json!({"metadata": {"name": "freeport-east"}})).unwrap();
        assert_eq!(says(&both, |_| ()).0, Status::True);
        let claiming = json!({"metadata": {"name": "1.east.west"}, "spec": {
            "host": "east", "home": "west", "resources": {"cpu": "4"}, "publicKey": "",
            "nodeLabels": {"liqo.io/type": "trusted", "region": "us"},
        }});
        let honest = both.offer.take();
        both.offer = serde_json::from_value(claiming).unwrap();
        let said = told_of(&both);
        assert!(said.contains("left out: liqo.io/type") && !said.contains("region"), "{said}");
        both.offer = honest;
        assert!(!told_of(&both).contains("left out"));
        let flooded = verdict(&both, |a| a.leaves_out = true);
        assert_eq!(flooded.status, Status::True);
        assert!(flooded.message.contains("east asks for more than 500 Pods"), "{}", flooded.message);
        both.node_refused = Some("taken".into());
        assert_eq!(says(&both, |_| ()), no("NodeRefused"));
        let odd = entry(&json!({"incoming": 7}));
        assert_eq!(says(&odd, |_| ()), no("InvalidSpec"));
        assert_eq!(odd.incoming(), Asked::Unknown, "nothing was taken back");
        assert_eq!(entry(&json!({})).incoming(), Asked::No);
    }

    #[test]
    fn labels_that_no_host_may_claim_are_named() {
        let labels =
            json!({"nodeLabels": {"liqo.io/region": "us", "kubernetes.io/os": "plan9", "odd": "us west"}});
        let incoming: Incoming = serde_json::from_value(labels).unwrap();
        let said = told("east", Some(&incoming), true);
        assert!(said.starts_with(
            "cluster east is Node freeport-east here; Namespaces of cluster east may come here; "
        ));
        assert!(said.ends_with("are left out: kubernetes.io/os, odd"), "{said}");
        assert!(told("east", None, false).starts_with("nothing is"));
        let many: Incoming = serde_json::from_value(json!({"resources": {"pods": "2k"}})).unwrap();
        assert!(
            told("east", Some(&many), false).ends_with("it is offered 500: no more of one cluster run here")
        );
        assert!(!told("east", Some(&Incoming::default()), false).contains("it is offered"));
    }

    #[test]
    fn what_cannot_be_watched_is_said_with_its_cluster() {
        let trouble = Trouble {
            source: Source { cluster: "leader", kind: "own NamespaceMap" },
            failure: Failure::KindMissing,
        };
        let of = |kind| Trouble { source: Source { cluster: "leader", kind }, ..trouble.clone() };
        let words = in_words(&[of("NamespaceMap"), of("OffloadOffer"), of("own NamespaceMap")]).unwrap();
        assert_eq!(words.matches("NamespaceMap").count(), 1, "{words}");
        let words = in_words(&[trouble]).unwrap();
        assert_eq!(
            words,
            "cannot watch NamespaceMap in the leader's cluster: the kind is not served (404) (manifests/offload-leader.yaml)"
        );
        assert_eq!(in_words(&[]), None);
    }
}
