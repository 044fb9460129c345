//! Consent: watches OffloadPeers, and what follows from them, and reads our maps and NamespaceOffloadings; writes our OffloadOffers into
//! the Common Area, deletes those that nobody wants any more, and says on each OffloadPeer whether all that it asks for works, which
//! labels its Node had, which writes about it API servers refuse, which twins there have lost their NamespaceOffloading, which Namespaces of that
//! cluster get no twin here, and which twins here no NamespaceMap names. Safe to run twice: offers are a function of OffloadPeers, and only differences are sent.

mod lost;
mod unmapped;
mod untwinned;
mod verdict;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::{already_said, conditions},
    membership::Wire,
    offload::{
        label, names,
        offer::OffloadOfferSpec,
        peer::{Incoming, OffloadPeer, OffloadPeerStatus, READY},
        quantity::{Resources, nanos},
        seal::PublicKey,
        view::OffloadPeerView,
    },
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kit::{
    events::Events,
    metrics::{Refusals, Tally},
    queue::Outcome,
    watch::Watches,
    write::{Error, Writer},
};
use kube::{Client, Resource};

use self::{
    lost::lost,
    unmapped::unmapped,
    untwinned::untwinned,
    verdict::{Around, PENDING, in_words, ready},
};
use super::{
    index::{Asked, ClusterEntry, PEER},
    knowledge::Knowledge,
    node::desired::labels_of_others,
    pod::exchange::Exchanges,
    room::RECORDS_MAX,
    view::OwnOffer,
    withdrawn, writes,
};
use crate::{home::Lost, identity::Identity};

/// How soon what no event tells is looked at again: watches that fail, and whether the Common Area is heard.
const RESYNC: Duration = Duration::from_secs(10);

/// The resource of which each Pod takes one.
const PODS: &str = "pods";

/// The offer that follows from this consent.
fn offer(us: &Identity, home: &str, incoming: &Incoming, key: &PublicKey) -> OwnOffer {
    // `Ready` names the others.
    let may_claim = |(key, _): &(String, String)| !label::is_reserved(key);
    let spec = OffloadOfferSpec {
        host: us.cluster.clone(),
        home: home.to_owned(),
        resources: room_for(incoming.capacity()),
        node_labels: incoming.node_labels.clone().into_iter().filter(may_claim).collect(),
        public_key: key.to_string(),
    };
    let metadata = ObjectMeta {
        name: Some(names::offer(&us.cluster, home)),
        namespace: Some(us.common_area.clone()),
        ..ObjectMeta::default()
    };
    OwnOffer { metadata, spec: Lenient(Ok(Some(spec))) }
}

/// The same with no more Pods than run here of one home: a scheduler would bind them, and they would wait.
fn room_for(mut resources: Resources) -> Resources {
    let most = RECORDS_MAX.to_string();
    if let Some(pods) = resources.get_mut(PODS).filter(|pods| nanos(&pods.0) > nanos(&most)) {
        pods.0 = most;
    }
    resources
}

/// Whether they are more Pods than run here of one home.
fn is_cut(resources: &Resources) -> bool {
    room_for(resources.clone()) != *resources
}

const NONE: BTreeMap<String, String> = BTreeMap::new();

/// Labels of the Node that others have set. Those of a Node that is gone stay said while it is asked for: it may be ours to make anew.
fn node_labels(entry: &ClusterEntry) -> BTreeMap<String, String> {
    match &entry.node {
        Some(node) if node.is_ours() => labels_of_others(node),
        _ if matches!(entry.outgoing(), Asked::No) => NONE,
        _ => entry.node_labels().cloned().unwrap_or_default(),
    }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Consenting {
    pub(super) knowledge: Knowledge,
    pub(super) wire: Wire,
    /// Reads from this cluster.
    pub(super) local: Client,
    /// What a restore of this cluster has lost.
    pub(super) lost: Option<Lost>,
    pub(super) local_writer: Writer,
    pub(super) leader_writer: Writer,
    /// All watches of offloading, but those of exchanges.
    pub(super) watches: [Watches; 4],
    pub(super) exchanges: Exchanges,
    pub(super) left_out: Tally,
    /// Writes of this member that API servers refuse.
    pub(super) refusals: Refusals,
    pub(super) events: Events,
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
        let left_out = self.knowledge.room.left_out(&cluster);
        let said = self.say(&cluster, left_out > 0).await;
        self.left_out.count(&cluster, [([cluster.as_str()], i64::try_from(left_out).unwrap_or(i64::MAX))]);
        offered.and(said).map(|()| Outcome::Requeue(RESYNC))
    }

    fn may_write(&self, cluster: &str) -> bool {
        *self.begun.borrow() && self.wire == Wire::Freeport && cluster != self.knowledge.us.cluster
    }

    async fn put_offer(&self, cluster: &str, entry: &ClusterEntry) -> Result<(), Error> {
        let (clusters, have) = (&self.knowledge.clusters, entry.own_offer.as_ref());
        match (entry.incoming(), have) {
            (Asked::Yes(incoming), have) => {
                // As soon as it is known, this is done again.
                let Some(key) = self.knowledge.key() else { return Ok(()) };
                let want = offer(&self.knowledge.us, cluster, incoming, &key.public());
                clusters.put_ours(&self.leader_writer, PEER, (have, &want), |_| true).await.map(drop)
            }
            (Asked::No, Some(have)) => clusters.delete(&self.leader_writer, PEER, have, false).await,
            (Asked::No, None) | (Asked::Unknown, _) => Ok(()),
        }
    }

    /// Finds out whether somebody decided that the OffloadPeer is gone, if it is gone and something follows from that.
    async fn find_out_why_gone(&self, cluster: &String, entry: &ClusterEntry) -> Result<bool, Error> {
        let Some(made) = entry.made_for_missing_peer() else { return Ok(false) };
        // One that was seen says itself how old it is; of another, what was made from it is not older.
        let made_at = entry.peer_made.as_ref().or(made.creation_timestamp.as_ref());
        let is_lost = made_at.is_some_and(|at| self.lost.is_some_and(|lost| lost.has(at.0)));
        let decided = !is_lost && withdrawn::was_decided::<OffloadPeer>(&self.local, made_at).await?;
        if !decided {
            tracing::warn!(
                cluster,
                "the OffloadPeer went with its CRD, or this cluster was restored from an older backup: what follows from it stays"
            );
        }
        self.knowledge.peer_is_gone(cluster, decided);
        Ok(true)
    }

    async fn say(&self, cluster: &String, leaves_out: bool) -> Result<(), Error> {
        let Some(entry) = self.knowledge.clusters.get(cluster) else { return Ok(()) };
        let Some(peer) = &entry.peer else { return Ok(()) };
        let now = Instant::now();
        let troubles = self.watches.iter().flat_map(|watches| watches.troubles(now));
        let troubles: Vec<_> = troubles.chain(self.exchanges.troubles(cluster, now)).collect();
        let around = Around {
            us: &self.knowledge.us.cluster,
            wire: self.wire,
            blind: in_words(&troubles),
            has_begun: *self.begun.borrow(),
            standing: self.knowledge.standing(cluster, now),
            has_no_lease: self.knowledge.missing_for(cluster, now).is_some(),
            key_refused: self.knowledge.key_refused(),
            leaves_out,
        };
        let verdict = ready(cluster, &entry, peer, around);
        let before = peer.status.0.as_ref().ok();
        let have = before.map(|status| status.conditions.as_slice()).unwrap_or_default();
        // Before the Common Area has been seen nothing is known: what was said stands.
        let has_begun = *self.begun.borrow();
        if verdict.reason == PENDING && !has_begun && !have.is_empty() {
            return Ok(());
        }
        let lost_before = before.map(|status| status.lost_offloadings.clone()).unwrap_or_default();
        let untwinned_before = before.map(|status| status.refused_namespaces.clone()).unwrap_or_default();
        // Without the map nothing is known of what that cluster wants.
        let refused_namespaces = match entry.said_here() {
            Some(said) => untwinned(said),
            None if has_begun => BTreeMap::new(),
            None => untwinned_before.clone(),
        };
        let lost_offloadings = match entry.wanted() {
            Some(spec) if has_begun => lost(&self.knowledge, &entry, spec),
            None if has_begun && matches!(entry.outgoing(), Asked::No) => NONE,
            // Without the map the host tells nothing of twins that are there.
            Some(_) | None => lost_before.clone(),
        };
        let unmapped_before = before.map(|status| status.unmapped_twins.clone()).unwrap_or_default();
        let unmapped_twins = unmapped(&self.knowledge, cluster, &entry).filter(|_| has_begun);
        let now = Time(Timestamp::now());
        let refused = writes::about_peer(&self.knowledge, &self.refusals, cluster);
        let is_over = refused.is_none() && have.iter().any(|said| said.type_ == WRITES_ACCEPTED);
        let verdicts: Vec<_> = [verdict].into_iter().chain(refused).collect();
        let want = conditions(&verdicts, have, peer.metadata.generation, &now);
        let status = OffloadPeerStatus {
            conditions: want,
            node_labels: node_labels(&entry),
            lost_offloadings,
            refused_namespaces,
            unmapped_twins: unmapped_twins.unwrap_or_else(|| unmapped_before.clone()),
        };
        let status = self.local_writer.known::<OffloadPeerView, _>(&status)?;
        if already_said(have, &status.conditions)
            && !is_over
            && entry.node_labels().unwrap_or(&NONE) == &status.node_labels
            && lost_before == status.lost_offloadings
            && untwinned_before == status.refused_namespaces
            && unmapped_before == status.unmapped_twins
        {
            return Ok(());
        }
        match self.knowledge.clusters.put_status(&self.local_writer, PEER, peer, &status).await {
            Ok(_) => {
                let conditions = (have, status.conditions.as_slice());
                self.events.turned(peer.object_ref(&()), "Consent", READY, conditions);
                self.events.turned(peer.object_ref(&()), "Write", WRITES_ACCEPTED, conditions);
            }
            Err(Error::Gone) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api::offload::seal::{KEY_LENGTH, PrivateKey};
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_of_a_node_are_remembered_while_it_is_asked_for() {
        let peer = |spec: serde_json::Value, labels: serde_json::Value| {
            let peer = json!({"metadata": {"name": "east"}, "spec": spec, "status": {"nodeLabels": labels}});
            serde_json::from_value(peer).unwrap()
        };
        let labels = json!({"app.kubernetes.io/managed-by": "freeport", "tier": "gold"});
        let node = json!({"metadata": {"name": "freeport-east", "labels": labels}});
        let (used, none) = (json!({"outgoing": {}}), json!({}));
        let mut entry = ClusterEntry {
            peer: peer(used.clone(), none.clone()),
            node: serde_json::from_value(node).unwrap(),
            ..ClusterEntry::default()
        };
        let gold = || BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        assert_eq!(node_labels(&entry), gold());
        entry.peer = peer(used, json!({"tier": "gold"}));
        entry.node = None;
        assert_eq!(node_labels(&entry), gold(), "somebody deleted it");
        entry.peer = peer(none, json!({"tier": "gold"}));
        assert_eq!(node_labels(&entry), NONE, "nobody asks for it any more");
    }

    #[test]
    fn an_offer_claims_no_reserved_labels() {
        let incoming = json!({"nodeLabels": {"liqo.io/region": "us", "kubernetes.io/role": "master"}});
        let us = Identity { cluster: "east".into(), common_area: "area".into() };
        let key = PrivateKey::read(&[1; KEY_LENGTH]).unwrap().public();
        let offer = offer(&us, "west", &serde_json::from_value(incoming).unwrap(), &key);
        assert_eq!(offer.metadata.name.as_deref(), Some("1.east.west"));
        let spec = offer.spec.0.unwrap().unwrap();
        assert_eq!(json!(spec.node_labels), json!({"liqo.io/region": "us"}));
        assert_eq!(spec.resources.len(), 4);
        assert_eq!(spec.resources[PODS].0, "110");
        assert_eq!(spec.public_key.parse(), Ok(key));
    }

    #[test]
    fn an_offer_promises_no_more_pods_than_run_here() {
        let offered = |pods: &str| {
            let asked = json!({"resources": {PODS: pods}});
            room_for(serde_json::from_value::<Incoming>(asked).unwrap().capacity())[PODS].0.clone()
        };
        assert_eq!(offered("2k"), "500");
        assert_eq!((&offered("500")[..], &offered("20")[..], &offered("0")[..]), ("500", "20", "0"));
    }
}
