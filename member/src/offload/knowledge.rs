//! Everything that this member knows about offloading, and who has to reconcile when it changes.

mod hosting;
mod key;
mod own_maps;
mod standing;
mod withdrawing;
mod writing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    label as general,
    offload::{map::ENTRIES_MAX, phase::Host, seal::PrivateKey, view::NamespaceOffloadingView},
};
use kit::{
    index::{Part, Readers, Shared},
    objects::Change,
    queue::Queue,
    store::Store,
};
use kube::ResourceExt;
use presence::{leases::Leases, standing::Standing};
use tokio::sync::watch;

use self::{standing::ByLease, writing::Writing};
pub(crate) use self::{standing::WITHOUT_LEASE, withdrawing::is_overdue};
use super::{
    index::{ClusterEntry, MAP, NAMESPACE, NamespaceEntry, SHADOW, STATUS, ShadowEntry},
    refused::Refused,
    room::Room,
    selection::{Invalid, Key, key, name},
    view::Namespace,
};
use crate::identity::Identity;

/// How often a Pod of another cluster is looked at, at the most: each look may be a write in the Common Area.
pub(crate) const POD_PACE: Duration = Duration::from_millis(50);

const NOW: Duration = Duration::ZERO;
/// How often one map is written, at the most: each write is about all that waits, and is read with the whole map.
const MAP_PACE: Duration = Duration::from_millis(50);

/// Other clusters by their IDs.
pub(crate) type Clusters = BTreeMap<String, Arc<ClusterEntry>>;

/// Everything this member knows, and the queues of its controllers. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Knowledge {
    /// Who we are.
    pub(crate) us: Identity,
    /// By cluster ID.
    pub(crate) clusters: Store<String, ClusterEntry>,
    /// By name.
    pub(crate) namespaces: Store<String, NamespaceEntry>,
    /// Pods of others that run here, by `<Namespace>/<name>`.
    pub(crate) shadows: Store<String, ShadowEntry>,
    /// Which records of other clusters have room here.
    pub(crate) room: Room,
    /// Pods of this cluster that are refused at virtual nodes.
    pub(crate) refused: Refused,
    /// Keys that are on their way into our maps.
    pub(crate) writing: Writing,
    /// Namespace of this daemon.
    system: String,
    /// None without a session.
    leases: Option<Shared<Leases>>,
    /// How it stood with each cluster by its Lease when any was last heard.
    standings: Shared<BTreeMap<String, ByLease>>,
    /// When one of our maps, or its host, said something else last.
    moved: Shared<Option<Instant>>,
    /// Namespaces of whose twins something else was said, by host, until their Pods are looked at again.
    touched: Shared<BTreeMap<String, BTreeSet<String>>>,
    /// What opens Pods for us, and makes what we seal; none until it is read.
    key: watch::Sender<Option<PrivateKey>>,
    /// Why there is none, if somebody has to mend that.
    key_refused: Shared<Option<String>>,
}

impl Knowledge {
    /// Nothing yet. `system` is the Namespace of this daemon; `leases` are there in a session.
    pub(crate) fn new(us: Identity, system: String, leases: Option<Shared<Leases>>) -> Self {
        let queues = |paces: &'static [Duration]| paces.iter().map(|pace| Queue::new(*pace));
        Self {
            us,
            // In the order of `PEER`, `NODE`, `MAP`, `EXCHANGE`, `OWN_MAP`, `LEASE` and `TWINS`, and of `NAMESPACE` and `STATUS`.
            clusters: Store::new(queues(&[NOW, NOW, MAP_PACE, NOW, MAP_PACE, NOW, NOW])),
            namespaces: Store::new(queues(&[NOW, NOW])),
            shadows: Store::new([Queue::new(POD_PACE)]),
            room: Room::default(),
            refused: Refused::default(),
            writing: Writing::default(),
            system,
            leases,
            standings: Shared::default(),
            moved: Shared::default(),
            touched: Shared::default(),
            key: watch::Sender::new(None),
            key_refused: Shared::default(),
        }
    }

    /// All other clusters of which something is known.
    pub(crate) fn all_clusters(&self) -> Clusters {
        let keys = self.clusters.keys().into_iter().filter(|cluster| *cluster != self.us.cluster);
        keys.filter_map(|cluster| self.clusters.get(&cluster).map(|entry| (cluster, entry))).collect()
    }

    /// A Namespace of this cluster, if it is there.
    pub(crate) fn namespace(&self, name: &str) -> Option<Namespace> {
        self.namespaces.get(&name.to_owned())?.namespace.clone()
    }

    /// Namespaces among which `name` is, if it is of the system: see [`check_twin`](api::offload::twin::check_twin).
    pub(crate) fn system_with(&self, name: &str) -> BTreeSet<String> {
        let is_area = |namespace: &Namespace| namespace.label(general::COMMON_AREA) == Some(general::TRUE);
        let area = self.namespace(name).filter(is_area).map(|_| name.to_owned());
        area.into_iter().chain([self.system.clone()]).collect()
    }

    /// Namespace of this daemon.
    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// Homes of whose Pods here something is left to say.
    pub(crate) fn waiting_homes(&self) -> Vec<String> {
        let busy = self.shadows.busy(SHADOW).into_iter().filter_map(|place| self.shadows.get(&place));
        let homes = |entry: Arc<ShadowEntry>| -> Vec<_> {
            entry.asked().map(|(_, spec)| spec.origin.clone()).collect()
        };
        busy.flat_map(homes).collect()
    }

    /// Name of the twins of a Namespace, if it may have any.
    pub(crate) fn twins_name(
        &self,
        namespace: &str,
        offloading: &NamespaceOffloadingView,
    ) -> Result<String, Invalid> {
        name(offloading, namespace, &self.us.cluster, &self.system_with(namespace))
    }

    /// What there is to say about a Namespace, for each host. `asks`: its NamespaceOffloading and the name of its twins, if that decides
    /// who shall have one; our maps may not say so yet.
    pub(crate) fn hosts<'a>(
        &self,
        clusters: &'a Clusters,
        namespace: &str,
        asks: Option<(&NamespaceOffloadingView, &'a str)>,
        now: Instant,
    ) -> BTreeMap<String, Host<'a>> {
        let is_host = |entry: &&Arc<ClusterEntry>| entry.own_map.is_some() || entry.node.is_some();
        // One that has left has deleted its twins, and makes none; of one that is only silent nothing is known.
        let hosts = clusters.iter().filter(|(id, entry)| is_host(entry) && !self.has_left(id, entry, now));
        let known = self.namespaces.get(&namespace.to_owned()).unwrap_or_default();
        let host = |(cluster, entry): (&String, &'a Arc<ClusterEntry>)| {
            let listed = || entry.wanted()?.desired_mapping.get(namespace).map(String::as_str);
            let asked = asks.map(|(offloading, name)| (key(offloading, entry), name));
            let desired = match asked {
                Some((Key::Want, name)) => Some(name),
                Some((Key::Drop, _)) => None,
                Some((Key::Keep, _)) | None => listed(),
            };
            // Of what a host says counts only what it was asked for.
            let was_asked = desired.is_some() || listed().is_some() || known.has_asked(cluster);
            let host = Host {
                desired,
                entry: entry
                    .said()
                    .filter(|_| was_asked)
                    .and_then(|said| said.current_mapping.get(namespace)),
                is_silent: matches!(self.standing(cluster, now), None | Some(Standing::Silent { .. })),
                has_no_room: desired.is_some()
                    && listed().is_none()
                    && entry.wanted().is_some_and(|map| map.desired_mapping.len() >= ENTRIES_MAX),
            };
            (cluster.clone(), host)
        };
        hosts.map(host).collect()
    }

    /// Takes in a change of what is known of clusters. Namespaces are asked again if other clusters may be selected now.
    pub(crate) fn change<P: Part<String, ClusterEntry>>(&self, change: Change<P>) {
        let before = self.selectable();
        self.clusters.change(change);
        if before != self.selectable() {
            self.enqueue_offloaded(NAMESPACE.and(STATUS));
        }
    }

    /// Takes in a change of Namespaces. Those who want them as twins are asked again, but not where they wrote it themselves.
    pub(crate) fn change_namespaces(&self, change: Change<Namespace>) {
        let touched = match &change {
            Change::Apply(namespace) | Change::Remove(namespace) => Some(namespace.name_any()),
            Change::Reset(_) => None,
        };
        let before = touched.as_deref().and_then(|name| self.namespace(name));
        let home = |namespace: &Namespace| namespace.home().map(|(home, _)| home.to_owned());
        let homes: BTreeSet<String> = match &change {
            Change::Apply(namespace) | Change::Remove(namespace) => {
                [before.as_ref(), Some(namespace)].into_iter().flatten().filter_map(home).collect()
            }
            Change::Reset(_) => self.clusters.keys().into_iter().collect(),
        };
        let is_gone = matches!(change, Change::Remove(_));
        let waiting = match &touched {
            Some(name) if before.is_none() || is_gone => self.homes_waiting(name),
            _ => Vec::new(),
        };
        let homes = homes.into_iter().chain(waiting).collect::<BTreeSet<_>>();
        self.namespaces.change(change);
        self.enqueue_hosted(touched.as_deref());
        if let Some(name) = &touched
            && before == self.namespace(name)
        {
            return;
        }
        let known = homes.into_iter().filter(|home| self.clusters.get(home).is_some());
        self.clusters.enqueue(known.map(|home| (home, MAP)).collect());
    }

    /// Asks all controllers to look at all that is known.
    pub(crate) fn enqueue_everything(&self) {
        self.clusters.enqueue_all(Readers::ALL);
        self.namespaces.enqueue_all(Readers::ALL);
        self.shadows.enqueue_all(Readers::ALL);
    }

    /// Asks these controllers to look at all Namespaces with a NamespaceOffloading.
    pub(crate) fn enqueue_offloaded(&self, readers: Readers) {
        let is_offloaded = |name: &String| self.namespaces.get(name).is_some_and(|e| e.offloading.is_some());
        let offloaded = self.namespaces.keys().into_iter().filter(is_offloaded);
        self.namespaces.enqueue(offloaded.map(|name| (name, readers)).collect());
    }

    /// What decides which clusters can be selected.
    fn selectable(&self) -> impl PartialEq + use<> {
        let of = |(cluster, entry): (String, Arc<ClusterEntry>)| {
            let node = entry.node.as_ref().map(|node| (node.labels().clone(), is_going(node)));
            (cluster, entry.outgoing(), node)
        };
        self.all_clusters().into_iter().map(of).collect::<Vec<_>>()
    }
}

fn is_going<K: kube::Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_of_the_system_are_known_by_their_label() {
        let us = Identity { cluster: "west".into(), common_area: "area".into() };
        let known = Knowledge::new(us, "freeport".into(), None);
        let labels = json!({"multicluster.freeport.dev/common-area": "true"});
        let area = json!({"metadata": {"name": "area", "labels": labels}});
        known.change_namespaces(Change::Apply(serde_json::from_value(area).unwrap()));
        assert_eq!(known.system_with("shop"), ["freeport".to_owned()].into());
        assert_eq!(known.system_with("area"), ["area".to_owned(), "freeport".to_owned()].into());
    }
}
