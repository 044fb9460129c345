//! The keys of our map for a cluster: pure.

#[cfg(test)]
mod property;

use std::{collections::BTreeMap, sync::Arc};

use api::offload::map::{ENTRIES_MAX, NamespaceMapSpec};

use crate::offload::{
    index::{Asked, ClusterEntry, NamespaceEntry},
    selection::{Key, is_held, key},
};

/// A Namespace with a NamespaceOffloading, or with one that went before.
pub(super) struct Asking {
    pub(super) namespace: String,
    pub(super) entry: Arc<NamespaceEntry>,
    /// Name of its twins, if it may have any.
    pub(super) name: Option<String>,
}

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is desired, with this name for the twin.
    Desire(String),
    /// It is withdrawn: the host is to delete the twins.
    Withdraw,
    /// It is removed: the host has deleted the twins.
    Remove,
}

/// Keys that change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) keys: BTreeMap<String, Change>,
    /// How many there is no room for.
    pub(super) left_out: usize,
}

impl Changes {
    pub(super) fn is_anything(&self) -> bool {
        !self.keys.is_empty() || self.left_out > 0
    }

    /// Whether all that changes is that twins are withdrawn which only the host of this map names.
    pub(super) fn are_claims(&self, cluster: &ClusterEntry) -> bool {
        let is_claim = |(namespace, change): (&String, &Change)| {
            let is_desired = |spec: &NamespaceMapSpec| spec.desired_mapping.contains_key(namespace);
            *change == Change::Withdraw && cluster.wanted().is_some_and(|spec| !is_desired(spec))
        };
        !self.keys.is_empty() && self.keys.iter().all(is_claim)
    }
}

/// What a Namespace asks of a cluster.
enum Becomes<'a> {
    Says(&'a str),
    Goes,
    Stays,
}

impl Asking {
    fn becomes(&self, cluster: &ClusterEntry) -> Becomes<'_> {
        let Some(offloading) = self.entry.asks() else {
            // One that has gone may have left a key that was on its way.
            let has_gone = self.entry.offloading.is_none() && self.entry.withdrawn.is_some();
            return if has_gone || self.entry.is_withdrawn() { Becomes::Goes } else { Becomes::Stays };
        };
        match (&self.name, key(offloading, cluster)) {
            (Some(name), Key::Want) if is_held(offloading) => Becomes::Says(name),
            (Some(_), Key::Drop) => Becomes::Goes,
            (None, _) | (_, Key::Want | Key::Keep) => Becomes::Stays,
        }
    }

    /// Whether the map has to be there for this Namespace: for a twin that it asks for, or for one that the host has to delete.
    pub(super) fn needs_map(&self, id: &str, cluster: &ClusterEntry) -> bool {
        match self.becomes(cluster) {
            Becomes::Says(_) => true,
            Becomes::Goes => self.may_have_twin(id, cluster),
            Becomes::Stays => false,
        }
    }

    /// Whether the host may have a twin of which our map says nothing: the host says so itself, or the map is missing.
    fn may_have_twin(&self, id: &str, cluster: &ClusterEntry) -> bool {
        let had_one = || self.entry.had(id).is_some() || cluster.has_lost(&self.namespace);
        is_said(&self.namespace, cluster) || cluster.wanted().is_none() && had_one()
    }

    /// What its key has to say, where the map says otherwise.
    pub(super) fn change(&self, id: &str, cluster: &ClusterEntry) -> Option<Change> {
        let wanted = cluster.wanted();
        let have = wanted.and_then(|spec| spec.desired_mapping.get(&self.namespace)).map(String::as_str);
        let is_withdrawn = wanted.is_some_and(|spec| spec.withdrawn.contains_key(&self.namespace));
        match self.becomes(cluster) {
            Becomes::Says(name) if have != Some(name) || is_withdrawn => {
                Some(Change::Desire(name.to_owned()))
            }
            Becomes::Goes if have.is_some() => Some(Change::Withdraw),
            Becomes::Goes if !is_withdrawn && self.may_have_twin(id, cluster) => Some(Change::Withdraw),
            // A host of the last version deletes what a new map lacks.
            Becomes::Stays if wanted.is_none() && self.entry.asks().is_some() => {
                self.entry.had(id).map(|twin| Change::Desire(twin.to_owned()))
            }
            Becomes::Says(_) | Becomes::Goes | Becomes::Stays => None,
        }
    }
}

/// Whether the host says something of twins of the Namespace.
fn is_said(namespace: &str, cluster: &ClusterEntry) -> bool {
    cluster.said().is_some_and(|said| said.current_mapping.contains_key(namespace))
}

/// What changes in the map for cluster `id`. A map that is missing is made anew only where a Namespace needs it. If the cluster is not to be
/// used any more, all keys are withdrawn, also those of Namespaces that ask for nothing; unless `is_lost`: then a restore from a backup may
/// have lost that the cluster is to be used.
pub(super) fn changes(asking: &[Asking], id: &str, cluster: &ClusterEntry, is_lost: bool) -> Changes {
    if cluster.wanted().is_none() && !asking.iter().any(|asking| asking.needs_map(id, cluster)) {
        return Changes::default();
    }
    let mut keys: BTreeMap<_, _> = asking
        .iter()
        .filter_map(|asking| Some((asking.namespace.clone(), asking.change(id, cluster)?)))
        .collect();
    if matches!(cluster.outgoing(), Asked::No) && !is_lost {
        let left = left(cluster).map(|namespace| (namespace.clone(), Change::Withdraw));
        keys.extend(left);
        keys.values_mut().for_each(|change| *change = Change::Withdraw);
    }
    for namespace in ended(cluster) {
        keys.entry(namespace.clone()).or_insert(Change::Remove);
    }
    within(ENTRIES_MAX, keys, asking, id, cluster)
}

/// Namespaces that the map desires, and those of which the host has twins that nobody withdrew.
fn left(cluster: &ClusterEntry) -> impl Iterator<Item = &String> {
    let is_withdrawn = |name: &String| cluster.wanted().is_some_and(|spec| spec.withdraws(name));
    let desired = cluster.wanted().into_iter().flat_map(|spec| spec.desired_mapping.keys());
    let said = cluster.said().into_iter().flat_map(|said| said.current_mapping.keys());
    desired.chain(said.filter(move |name| !is_withdrawn(name)))
}

/// Namespaces whose withdrawal the host has carried out.
fn ended(cluster: &ClusterEntry) -> impl Iterator<Item = &String> {
    let withdrawn = cluster.wanted().into_iter().flat_map(|spec| spec.withdrawn.keys());
    withdrawn.filter(|name| has_ended(cluster, name))
}

/// Whether the host has carried out the withdrawal of the Namespace.
pub(super) fn has_ended(cluster: &ClusterEntry, namespace: &str) -> bool {
    let withdrawn = cluster.wanted().and_then(|spec| spec.withdrawn.get(namespace));
    let now = cluster.own_map.as_ref().and_then(|map| map.metadata.generation).unwrap_or(i64::MAX);
    withdrawn.zip(cluster.said()).is_some_and(|(at, said)| said.has_ended(namespace, *at, now))
}

/// Leaves out new keys for which the map has no room until others are removed. Withdrawals come first, then Namespaces that had a twin there.
fn within(
    most: usize,
    mut keys: BTreeMap<String, Change>,
    asking: &[Asking],
    id: &str,
    cluster: &ClusterEntry,
) -> Changes {
    let is_there = |name: &String| {
        cluster
            .wanted()
            .is_some_and(|spec| spec.desired_mapping.contains_key(name) || spec.withdrawn.contains_key(name))
    };
    let there = cluster.wanted().map_or(0, NamespaceMapSpec::count);
    let removed = keys.values().filter(|change| **change == Change::Remove).count();
    let room = most.saturating_sub(there.saturating_sub(removed));
    let new = keys.keys().filter(|name| !is_there(name)).count();
    let left_out = new.saturating_sub(room);
    if left_out > 0 {
        let had: BTreeMap<_, _> =
            asking.iter().map(|asking| (&asking.namespace, asking.entry.had(id).is_some())).collect();
        let rank = |name: &String, change: &Change| match change {
            Change::Withdraw => 0,
            Change::Desire(_) | Change::Remove if had.get(name) == Some(&true) => 1,
            Change::Desire(_) | Change::Remove => 2,
        };
        let mut new: Vec<_> = keys
            .iter()
            .filter(|(name, _)| !is_there(name))
            .map(|(name, change)| (rank(name, change), name.clone()))
            .collect();
        new.sort();
        for (_, name) in new.into_iter().skip(room) {
            keys.remove(&name);
        }
    }
    Changes { keys, left_out }
}

#[cfg(test)]
mod tests;
