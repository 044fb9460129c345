//! Consent: watches OffloadPeers, and what follows from them; writes our OffloadOffers into the Common Area, deletes those that nobody
//! wants any more, and says on each OffloadPeer whether all that it asks for works. Safe to run twice: offers are a function of
//! OffloadPeers, and only differences are sent.

use std::time::{Duration, Instant};

use api::{
    condition::{Status, Verdict, already_said, conditions},
    membership::Wire,
    offload::{
        label, names,
        offer::OffloadOfferSpec,
        peer::{Incoming, OffloadPeer, OffloadPeerStatus, READY},
        quantity,
        view::OffloadPeerView,
    },
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kit::{
    queue::Outcome,
    watch::{Trouble, Watches},
    write::{Error, Writer},
};
use kube::{Client, Resource};
use presence::standing::Standing;

use super::{
    index::{Asked, ClusterEntry, NAMESPACE, NODE, PEER, STATUS},
    knowledge::Knowledge,
    view::OwnOffer,
    withdrawn,
};
use crate::identity::Identity;

/// How soon what no event tells is looked at again: watches that fail, and whether the Common Area is heard.
const RESYNC: Duration = Duration::from_secs(10);

/// Reason of [`READY`], Unknown: something is still to be written or seen.
const PENDING: &str = "Pending";

/// The offer that follows from this consent.
fn offer(us: &Identity, home: &str, incoming: &Incoming) -> OwnOffer {
    let may_claim = |(key, _): &(String, String)| !label::is_reserved(key);
    let spec = OffloadOfferSpec {
        host: us.cluster.clone(),
        home: home.to_owned(),
        resources: incoming.capacity(),
        node_labels: incoming.node_labels.clone().into_iter().filter(may_claim).collect(),
        // Until Pods travel there is nothing to seal.
        public_key: String::new(),
    };
    let metadata = ObjectMeta {
        name: Some(names::offer(&us.cluster, home)),
        namespace: Some(us.common_area.clone()),
        ..ObjectMeta::default()
    };
    OwnOffer { metadata, spec: Lenient(Ok(Some(spec))) }
}

/// What can be said of an OffloadPeer beside what its entry says.
struct Around<'a> {
    us: &'a str,
    wire: Wire,
    /// Watches that fail, in words.
    blind: Option<String>,
    /// Whether the Common Area has been seen and our ID is ours.
    has_begun: bool,
    standing: Option<Standing>,
}

/// Whether all that the OffloadPeer of `cluster` asks for works, or the first thing that is missing.
fn ready(cluster: &str, entry: &ClusterEntry, peer: &OffloadPeerView, around: Around<'_>) -> Verdict {
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
    let is_member = match around.standing {
        None => false,
        Some(Standing::Silent { .. }) if spec.outgoing.is_some() => {
            return no("HostSilent", format!("cluster {cluster} does not renew its Lease"));
        }
        Some(_) => true,
    };
    if !is_member {
        return no("NotInClusterSet", format!("no member of this ClusterSet has the ID {cluster}"));
    }
    if spec.incoming.is_some() && entry.own_offer.is_none() {
        let message = "the OffloadOffer of this cluster is not written yet";
        return Verdict::new(READY, Status::Unknown, PENDING, message);
    }
    match &spec.outgoing {
        Some(_) => node_ready(cluster, around.us, entry),
        None => Verdict::new(READY, Status::True, "Ready", told(cluster, spec.incoming.is_some(), false)),
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
    let incoming = matches!(entry.incoming(), Asked::Yes(_));
    match &entry.node {
        Some(_) => Verdict::new(READY, Status::True, "Ready", told(cluster, incoming, true)),
        None => Verdict::new(READY, Status::Unknown, PENDING, "the Node is not made yet"),
    }
}

fn told(cluster: &str, incoming: bool, outgoing: bool) -> String {
    let outgoing =
        outgoing.then(|| format!("cluster {cluster} is Node {} here", names::virtual_node(cluster)));
    let incoming = incoming.then(|| format!("Namespaces of cluster {cluster} may come here"));
    let both: Vec<_> = outgoing.into_iter().chain(incoming).collect();
    if both.is_empty() { "nothing is allowed or asked for".to_owned() } else { both.join("; ") }
}

/// What fails, in words that stay the same while the cause does.
fn in_words(troubles: &[Trouble]) -> Option<String> {
    let one = |trouble: &Trouble| {
        let place = if trouble.source.cluster == "leader" { "the leader's cluster" } else { "this cluster" };
        let manifest =
            if trouble.source.cluster == "leader" { "offload-leader.yaml" } else { "offload.yaml" };
        let kind = trouble.source.kind.rsplit(' ').next().unwrap_or(trouble.source.kind);
        format!("cannot watch {kind} in {place}: {} (manifests/{manifest})", trouble.failure)
    };
    let mut all: Vec<_> = troubles.iter().map(one).collect();
    all.dedup();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Consenting {
    pub(super) knowledge: Knowledge,
    pub(super) wire: Wire,
    /// Reads from this cluster.
    pub(super) local: Client,
    pub(super) local_writer: Writer,
    pub(super) leader_writer: Writer,
    /// All watches of offloading.
    pub(super) watches: [Watches; 3],
    /// Whether the Common Area has been seen and our ID is ours.
    pub(super) begun: tokio::sync::watch::Receiver<bool>,
}

impl Consenting {
    /// Brings our offer to one cluster, and the status of its OffloadPeer, up to date.
    pub(super) async fn reconcile(self, cluster: String) -> Result<Outcome, Error> {
        let Some(entry) = self.knowledge.clusters.get(&cluster) else { return Ok(Outcome::Done) };
        if self.may_write(&cluster) && self.find_out_why_gone(&cluster, &entry).await? {
            return Ok(Outcome::Requeue(Duration::ZERO));
        }
        let offered = match self.may_write(&cluster) {
            true => self.put_offer(&cluster, &entry).await,
            false => Ok(()),
        };
        let said = self.say(&cluster).await;
        offered.and(said).map(|()| Outcome::Requeue(RESYNC))
    }

    fn may_write(&self, cluster: &str) -> bool {
        *self.begun.borrow() && self.wire == Wire::Freeport && cluster != self.knowledge.us.cluster
    }

    async fn put_offer(&self, cluster: &str, entry: &ClusterEntry) -> Result<(), Error> {
        let (clusters, have) = (&self.knowledge.clusters, entry.own_offer.as_ref());
        match (entry.incoming(), have) {
            (Asked::Yes(incoming), have) => {
                let want = offer(&self.knowledge.us, cluster, incoming);
                clusters.put_ours(&self.leader_writer, PEER, (have, &want), |_| true).await.map(drop)
            }
            (Asked::No, Some(have)) => clusters.delete(&self.leader_writer, PEER, have, false).await,
            (Asked::No, None) | (Asked::Unknown, _) => Ok(()),
        }
    }

    /// Finds out whether somebody decided that the OffloadPeer is gone, if it is gone and something follows from that.
    async fn find_out_why_gone(&self, cluster: &String, entry: &ClusterEntry) -> Result<bool, Error> {
        let made = entry.node.as_ref().map(Resource::meta).or(entry.own_offer.as_ref().map(Resource::meta));
        let (None, None, Some(made)) = (&entry.peer, entry.peer_withdrawn, made) else { return Ok(false) };
        let decided =
            withdrawn::was_decided::<OffloadPeer>(&self.local, made.creation_timestamp.as_ref()).await?;
        if !decided {
            tracing::warn!(
                cluster,
                "the OffloadPeer was deleted together with its CRD: what follows from it stays"
            );
        }
        self.knowledge.clusters.note(cluster, |entry| {
            entry.peer_withdrawn = entry.peer.is_none().then_some(decided);
        });
        self.knowledge.clusters.enqueue([(cluster.clone(), NODE)].into());
        self.knowledge.enqueue_offloaded(NAMESPACE.and(STATUS));
        Ok(true)
    }

    async fn say(&self, cluster: &String) -> Result<(), Error> {
        let Some(entry) = self.knowledge.clusters.get(cluster) else { return Ok(()) };
        let Some(peer) = &entry.peer else { return Ok(()) };
        let troubles: Vec<_> = self.watches.iter().flat_map(|w| w.troubles(Instant::now())).collect();
        let around = Around {
            us: &self.knowledge.us.cluster,
            wire: self.wire,
            blind: in_words(&troubles),
            has_begun: *self.begun.borrow(),
            standing: self.knowledge.standing(cluster),
        };
        let verdict = ready(cluster, &entry, peer, around);
        let have = peer.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        // Before the Common Area has been seen nothing is known: what was said stands.
        if verdict.reason == PENDING && !*self.begun.borrow() && !have.is_empty() {
            return Ok(());
        }
        let now = Time(Timestamp::now());
        let want = conditions(&[verdict], have, peer.metadata.generation, &now);
        if already_said(have, &want) {
            return Ok(());
        }
        let status = OffloadPeerStatus { conditions: want };
        match self.knowledge.clusters.put_status(&self.local_writer, PEER, peer, &status).await {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use kit::{failure::Failure, watch::Source};
    use serde_json::{Value, json};

    use super::*;

    fn entry(peer: Value) -> ClusterEntry {
        let peer = json!({"metadata": {"name": "east"}, "spec": peer});
        ClusterEntry { peer: serde_json::from_value(peer).unwrap(), ..ClusterEntry::default() }
    }

    fn says(entry: &ClusterEntry, change: impl Fn(&mut Around<'_>)) -> (Status, String) {
        let mut around = Around {
            us: "west",
            wire: Wire::Freeport,
            blind: None,
            has_begun: true,
            standing: Some(Standing::Present),
        };
        change(&mut around);
        let verdict = ready("east", entry, entry.peer.as_ref().unwrap(), around);
        (verdict.status, verdict.reason)
    }

    #[test]
    fn a_peer_says_the_first_thing_that_is_missing() {
        let mut both = entry(json!({"incoming": {}, "outgoing": {}}));
        let no = |reason: &str| (Status::False, reason.to_owned());
        assert_eq!(says(&both, |a| a.wire = Wire::Antrea), no("AntreaLeader"));
        assert_eq!(says(&both, |a| a.blind = Some("x".into())), no("CannotWatch"));
        assert_eq!(says(&both, |a| a.has_begun = false).0, Status::Unknown);
        assert_eq!(says(&both, |a| a.standing = None), no("NotInClusterSet"));
        assert_eq!(says(&both, |a| a.standing = Some(Standing::Silent { since: None })), no("HostSilent"));
        assert_eq!(says(&both, |_| ()).0, Status::Unknown, "our offer is not written");
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        both.own_offer = Some(offer(&us, "east", &Incoming::default()));
        assert_eq!(says(&both, |_| ()), no("NotOffered"));
        let theirs = json!({"metadata": {"name": "1.east.west"}, "spec": {
            "host": "east", "home": "west", "resources": {"cpu": "4"}, "publicKey": "",
        }});
        both.offer = serde_json::from_value(theirs).unwrap();
        assert_eq!(says(&both, |_| ()).0, Status::Unknown, "the node is not made");
        both.node = serde_json::from_value(json!({"metadata": {"name": "freeport-east"}})).unwrap();
        assert_eq!(says(&both, |_| ()).0, Status::True);
        both.node_refused = Some("taken".into());
        assert_eq!(says(&both, |_| ()), no("NodeRefused"));
        let odd = entry(json!({"incoming": 7}));
        assert_eq!(says(&odd, |_| ()), no("InvalidSpec"));
        assert_eq!(odd.incoming(), Asked::Unknown, "nothing was taken back");
        assert_eq!(entry(json!({})).incoming(), Asked::No);
    }

    #[test]
    fn an_offer_claims_no_reserved_labels() {
        let incoming = json!({"nodeLabels": {"liqo.io/region": "us", "kubernetes.io/role": "master"}});
        let us = Identity { cluster: "east".into(), common_area: "area".into() };
        let offer = offer(&us, "west", &serde_json::from_value(incoming).unwrap());
        assert_eq!(offer.metadata.name.as_deref(), Some("1.east.west"));
        let spec = offer.spec.0.unwrap().unwrap();
        assert_eq!(json!(spec.node_labels), json!({"liqo.io/region": "us"}));
        assert_eq!(spec.resources.len(), 4);
    }

    #[test]
    fn what_cannot_be_watched_is_said_with_its_cluster() {
        let trouble = Trouble {
            source: Source { cluster: "leader", kind: "own NamespaceMap" },
            failure: Failure::KindMissing,
        };
        let words = in_words(&[trouble.clone(), trouble]).unwrap();
        assert_eq!(
            words,
            "cannot watch NamespaceMap in the leader's cluster: the kind is not served (404) (manifests/offload-leader.yaml)"
        );
        assert_eq!(in_words(&[]), None);
    }
}
