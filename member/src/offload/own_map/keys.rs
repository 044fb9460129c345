//! The keys of our map for a cluster: pure.

#[cfg(test)]
mod property;

use std::{collections::BTreeMap, sync::Arc};

use api::offload::map::ENTRIES_MAX;

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

/// Keys to be written, with the name of the twin, and keys to be taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) keys: BTreeMap<String, Option<String>>,
    /// How many there is no room for.
    pub(super) left_out: usize,
}

impl Changes {
    pub(super) fn is_anything(&self) -> bool {
        !self.keys.is_empty() || self.left_out > 0
    }
}

/// What becomes of the key of a Namespace.
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

    /// Whether a twin is to be there.
    pub(super) fn is_wanted(&self, cluster: &ClusterEntry) -> bool {
        matches!(self.becomes(cluster), Becomes::Says(_))
    }

    /// Whether the cluster has to see that nothing is wanted any more.
    pub(super) fn is_awaited(&self, id: &str) -> bool {
        self.entry.awaits(id).is_some()
    }

    /// Whether a twin that it had there goes, since the cluster is not selected or not used any more.
    fn leaves_a_twin(&self, id: &str, cluster: &ClusterEntry) -> bool {
        self.entry.had(id).is_some() && matches!(self.becomes(cluster), Becomes::Goes)
    }

    /// What its key has to say, or that it has to go, where a map says otherwise.
    pub(super) fn change(
        &self,
        desired: &BTreeMap<String, String>,
        cluster: &ClusterEntry,
    ) -> Option<Option<&str>> {
        let have = desired.get(&self.namespace).map(String::as_str);
        match self.becomes(cluster) {
            Becomes::Says(name) if have != Some(name) => Some(Some(name)),
            Becomes::Goes if have.is_some() => Some(None),
            Becomes::Says(_) | Becomes::Goes | Becomes::Stays => None,
        }
    }
}

/// What changes in a map that is there. In one for a cluster that is not to be used any more nothing stays: also not what nobody asks for
/// any more, which merely vanished. `is_lost`: that it was to be used may have been lost with all that asked for something there.
pub(super) fn changes(
    desired: &BTreeMap<String, String>,
    asking: &[Asking],
    cluster: &ClusterEntry,
    is_lost: bool,
) -> Changes {
    let mut changes = Changes::default();
    if matches!(cluster.outgoing(), Asked::No) && !is_lost {
        changes.keys = desired.keys().map(|namespace| (namespace.clone(), None)).collect();
        return changes;
    }
    for asking in asking {
        if let Some(change) = asking.change(desired, cluster) {
            changes.keys.insert(asking.namespace.clone(), change.map(str::to_owned));
        }
    }
    let goes = changes.keys.values().filter(|change| change.is_none()).count();
    let comes =
        |namespace: &String, change: &Option<String>| change.is_some() && !desired.contains_key(namespace);
    let mut room = ENTRIES_MAX.saturating_sub(desired.len() - goes);
    let before = changes.keys.len();
    changes.keys.retain(|namespace, change| {
        let has_room = !comes(namespace, change) || room > 0;
        room -= usize::from(has_room && comes(namespace, change));
        has_room
    });
    changes.left_out = before - changes.keys.len();
    changes
}

/// All keys of a map of which nothing is left, if there has to be one: for a twin that is wanted, or for the host to see that none is. Those
/// that had a twin before come first, with those of Namespaces whose NamespaceOffloading `vanished`: the host would take back what a new map
/// lacks.
pub(super) fn whole(
    asking: &[Asking],
    vanished: BTreeMap<String, String>,
    id: &str,
    cluster: &ClusterEntry,
) -> Option<Changes> {
    let needs_one = |asking: &Asking| {
        asking.is_wanted(cluster) || asking.is_awaited(id) || asking.leaves_a_twin(id, cluster)
    };
    if !asking.iter().any(needs_one) {
        return None;
    }
    let of = |asking: &Asking| {
        asking.entry.asks()?;
        let had = asking.entry.had(id).or(cluster.wanted_before.get(&asking.namespace).map(String::as_str));
        let had = had.map(str::to_owned);
        let name = match asking.becomes(cluster) {
            Becomes::Says(name) => Some(name.to_owned()),
            Becomes::Goes => None,
            Becomes::Stays => had.clone(),
        };
        name.map(|name| (had.is_none(), asking.namespace.clone(), name))
    };
    let vanished = vanished.into_iter().map(|(namespace, name)| (false, namespace, name));
    let mut all: Vec<_> = asking.iter().filter_map(of).chain(vanished).collect();
    all.sort();
    let left_out = all.len().saturating_sub(ENTRIES_MAX);
    let keys = all.into_iter().take(ENTRIES_MAX);
    Some(Changes { keys: keys.map(|(_, namespace, name)| (namespace, Some(name))).collect(), left_out })
}

#[cfg(test)]
mod tests;
