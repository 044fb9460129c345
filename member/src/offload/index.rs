//! What is known of each other cluster, and of each Namespace of this one: entries, and how each watched kind lies in them.

mod namespace;
mod shadow;

use std::collections::BTreeMap;

use api::{
    name::check_cluster_id,
    offload::{
        consent::Refusal,
        map::{NamespaceMapSpec, NamespaceMapStatus},
        names,
        offer::OffloadOfferSpec,
        peer::Incoming,
        view::OffloadPeerView,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::index::{Entry, Part, Readers};
use kube::{Resource, ResourceExt, core::ObjectMeta};

pub(crate) use self::{
    namespace::NamespaceEntry,
    shadow::{SHADOW, ShadowEntry},
};
use super::view::{OwnMap, OwnOffer, PeerMap, PeerOffer, VirtualNode};

/// Controllers of clusters, by the numbers of their queues.
pub(crate) const PEER: Readers = Readers::one(0);
pub(crate) const NODE: Readers = Readers::one(1);
pub(crate) const MAP: Readers = Readers::one(2);
pub(crate) const EXCHANGE: Readers = Readers::one(3);
pub(crate) const OWN_MAP: Readers = Readers::one(4);
pub(crate) const LEASE: Readers = Readers::one(5);
pub(crate) const TWINS: Readers = Readers::one(6);

/// Controllers of Namespaces, by the numbers of their queues.
pub(crate) const NAMESPACE: Readers = Readers::one(0);
pub(crate) const STATUS: Readers = Readers::one(1);

/// What an administrator asked for. What merely vanished, or does not decode, was not taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked<T> {
    Yes(T),
    No,
    Unknown,
}

/// Everything known of another cluster.
#[derive(Clone, Default)]
pub(crate) struct ClusterEntry {
    pub(crate) peer: Option<OffloadPeerView>,
    /// When the OffloadPeer was made that was seen last.
    pub(crate) peer_made: Option<Time>,
    /// Whether somebody decided that the OffloadPeer is gone; none if that was not asked.
    pub(crate) peer_withdrawn: Option<bool>,
    pub(crate) node: Option<VirtualNode>,
    /// The Node of ours that was here before, where somebody deleted it: it is made anew as it was.
    pub(crate) node_before: Option<VirtualNode>,
    /// Why the node cannot be made.
    pub(crate) node_refused: Option<String>,
    /// What it offers us.
    pub(crate) offer: Option<PeerOffer>,
    /// What we offer it.
    pub(crate) own_offer: Option<OwnOffer>,
    /// The twins that we want there.
    pub(crate) own_map: Option<OwnMap>,
    /// The twins that it wants here.
    pub(crate) map: Option<PeerMap>,
}

impl ClusterEntry {
    /// What that cluster may bring here.
    pub(crate) fn incoming(&self) -> Asked<&Incoming> {
        self.asked(|peer| peer.spec.0.as_ref().ok().map(|spec| spec.incoming.as_ref()))
    }

    /// What cluster `home` may bring here, or why nothing.
    pub(crate) fn consent(&self, home: &str) -> Result<&Incoming, Refusal> {
        let home = || home.to_owned();
        match self.incoming() {
            Asked::Yes(incoming) => Ok(incoming),
            Asked::Unknown if self.peer.is_some() || self.peer_made.is_some() => {
                Err(Refusal::ConsentUnknown { home: home() })
            }
            Asked::No | Asked::Unknown => Err(Refusal::NotAccepted { home: home() }),
        }
    }

    /// Whether that cluster shall be a node here.
    pub(crate) fn outgoing(&self) -> Asked<()> {
        self.asked(|peer| peer.spec.0.as_ref().ok().map(|spec| spec.outgoing.as_ref().map(|_| ())))
    }

    /// Labels that others had set on its Node, as its OffloadPeer says.
    pub(crate) fn node_labels(&self) -> Option<&BTreeMap<String, String>> {
        let status = self.peer.as_ref()?.status.0.as_ref().ok()?;
        Some(&status.node_labels).filter(|labels| !labels.is_empty())
    }

    /// Whether its OffloadPeer says that a Namespace has a twin there and no NamespaceOffloading.
    pub(crate) fn has_lost(&self, namespace: &str) -> bool {
        let status = self.peer.as_ref().and_then(|peer| peer.status.0.as_ref().ok());
        status.is_some_and(|status| status.lost_offloadings.contains_key(namespace))
    }

    fn asked<'a, T>(&'a self, of: impl Fn(&'a OffloadPeerView) -> Option<Option<T>>) -> Asked<T> {
        match self.peer.as_ref().map(of) {
            Some(Some(Some(asked))) => Asked::Yes(asked),
            Some(Some(None)) => Asked::No,
            None if self.peer_withdrawn == Some(true) => Asked::No,
            _ => Asked::Unknown,
        }
    }

    /// What it offers us, as far as it decodes and is named as what it says.
    pub(crate) fn offered(&self) -> Option<&OffloadOfferSpec> {
        let offer = self.offer.as_ref()?;
        offer.spec.0.as_ref().ok()?.as_ref().filter(|spec| spec.name() == offer.name_any())
    }

    /// What it wants here, as far as it decodes and is named as what it says.
    pub(crate) fn asked_here(&self) -> Option<&NamespaceMapSpec> {
        let map = self.map.as_ref()?;
        map.spec.0.as_ref().ok()?.as_ref().filter(|spec| spec.name() == map.name_any())
    }

    /// What we say of the twins that it wants here.
    pub(crate) fn said_here(&self) -> Option<&NamespaceMapStatus> {
        self.map.as_ref()?.status.0.as_ref().ok()
    }

    /// What we want there, as far as it decodes.
    pub(crate) fn wanted(&self) -> Option<&NamespaceMapSpec> {
        self.own_map.as_ref()?.spec.0.as_ref().ok()?.as_ref()
    }

    /// What it says of our twins there.
    pub(crate) fn said(&self) -> Option<&NamespaceMapStatus> {
        self.own_map.as_ref()?.status.0.as_ref().ok()
    }

    /// The name of the twin of a Namespace there, as our map or the host says.
    pub(crate) fn twin_of(&self, namespace: &str) -> Option<&str> {
        let desired = || self.wanted()?.desired_mapping.get(namespace).map(String::as_str);
        let said = || Some(self.said()?.current_mapping.get(namespace)?.remote_namespace.as_str());
        desired().or_else(said)
    }

    /// Whether it has said in our map that it leaves, and offers nothing since. What merely vanished says nothing.
    pub(crate) fn has_left(&self) -> bool {
        self.offered().is_none() && self.said().is_some_and(|said| said.observed_generation == Some(i64::MAX))
    }

    /// Of what was made for an OffloadPeer that is gone, where it is not known why it is.
    pub(crate) fn made_for_missing_peer(&self) -> Option<&ObjectMeta> {
        if self.peer.is_some() || self.peer_withdrawn.is_some() {
            return None;
        }
        let node = self.node.as_ref().map(Resource::meta);
        node.or(self.own_offer.as_ref().map(Resource::meta)).or(self.own_map.as_ref().map(Resource::meta))
    }

    /// Whether something of ours is there, or may be. What it says of Namespaces for which nobody `has_asked` counts for nothing.
    pub(crate) fn has_twins(&self, has_asked: impl Fn(&String) -> bool) -> bool {
        let withdrawn = self.wanted().into_iter().flat_map(|spec| spec.withdrawn.keys());
        let said = self.said().into_iter().flat_map(|status| status.current_mapping.keys());
        self.wanted().is_some_and(|spec| !spec.desired_mapping.is_empty())
            || withdrawn.chain(said).any(has_asked)
    }

    /// Whether the host can say something that changes what our map says: of twins that are withdrawn, and of those that are not desired.
    fn awaits_host(&self) -> bool {
        let Some(spec) = self.wanted() else { return false };
        let mut said = self.said().into_iter().flat_map(|status| status.current_mapping.keys());
        !spec.withdrawn.is_empty() || said.any(|namespace| !spec.desired_mapping.contains_key(namespace))
    }
}

impl Entry for ClusterEntry {
    fn is_empty(&self) -> bool {
        self.peer.is_none()
            && self.node.is_none()
            && self.offer.is_none()
            && self.own_offer.is_none()
            && self.own_map.is_none()
            && self.map.is_none()
    }
}

/// Puts `new` into `place`; whether that says something else, other than a new version of the same.
pub(super) fn replace<T: Resource + PartialEq>(place: &mut Option<T>, new: T) -> bool {
    let version = new.resource_version();
    let is_same = place.as_mut().is_some_and(|old| {
        old.meta_mut().resource_version = version;
        *old == new
    });
    *place = Some(new);
    !is_same
}

impl Part<String, ClusterEntry> for OffloadPeerView {
    fn key(&self) -> Option<String> {
        Some(self.name_any()).filter(|id| check_cluster_id(id).is_ok())
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        (entry.peer_withdrawn, entry.peer_made) = (None, self.metadata.creation_timestamp.clone());
        Readers::ALL.when(replace(&mut entry.peer, self))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        entry.peer = None;
        Readers::ALL
    }
}

impl Part<String, ClusterEntry> for VirtualNode {
    fn key(&self) -> Option<String> {
        names::of_virtual_node(&self.name_any()).map(str::to_owned)
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        entry.node_before = None;
        NODE.and(PEER).and(EXCHANGE).and(OWN_MAP).and(LEASE).when(replace(&mut entry.node, self))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        let is_unwanted = matches!(entry.outgoing(), Asked::No);
        entry.node_before = entry.node.take().filter(|node| node.is_ours() && !is_unwanted);
        NODE.and(PEER).and(EXCHANGE).and(OWN_MAP)
    }
}

impl Part<String, ClusterEntry> for PeerOffer {
    fn key(&self) -> Option<String> {
        names::of_offer(&self.name_any()).map(|(host, _)| host.to_owned())
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        NODE.and(PEER).and(EXCHANGE).when(replace(&mut entry.offer, self))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        entry.offer = None;
        NODE.and(PEER).and(EXCHANGE)
    }
}

impl Part<String, ClusterEntry> for OwnOffer {
    fn key(&self) -> Option<String> {
        names::of_offer(&self.name_any()).map(|(_, home)| home.to_owned())
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        PEER.when(replace(&mut entry.own_offer, self))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        entry.own_offer = None;
        PEER
    }
}

impl Part<String, ClusterEntry> for OwnMap {
    fn key(&self) -> Option<String> {
        names::of_namespace_map(&self.name_any()).map(|(_, host)| host.to_owned())
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        let before = entry.own_map.as_ref();
        let is_other = before.is_none_or(|map| map.spec != self.spec);
        // Of which twins it says something else, `knowledge` finds out.
        let concerns_all = before.is_none_or(|map| map.reads() != self.reads());
        let readers = NODE.when(replace(&mut entry.own_map, self));
        let concerns_us = is_other || readers.has(NODE) && entry.awaits_host();
        readers.and(EXCHANGE.when(concerns_all)).and(OWN_MAP.when(concerns_us))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        entry.own_map = None;
        NODE.and(EXCHANGE).and(OWN_MAP)
    }
}

impl Part<String, ClusterEntry> for PeerMap {
    fn key(&self) -> Option<String> {
        names::of_namespace_map(&self.name_any()).map(|(home, _)| home.to_owned())
    }

    fn put(self, entry: &mut ClusterEntry) -> Readers {
        MAP.when(replace(&mut entry.map, self))
    }

    fn take(entry: &mut ClusterEntry, _: &str) -> Readers {
        entry.map = None;
        MAP
    }
}
