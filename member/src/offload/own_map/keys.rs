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
mod tests {
    use api::offload::label;
    use serde_json::{Value, json};

    use super::*;

    const GOES: &str = "2026-11-01T12:00:00Z";

    /// Cluster `east`, which is used, with its Node.
    pub(super) fn east() -> ClusterEntry {
        let read = |value: Value| serde_json::from_value(value).unwrap();
        let labels = json!({"app.kubernetes.io/managed-by": "freeport"});
        ClusterEntry {
            peer: serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {"outgoing": {}}}))
                .unwrap(),
            node: read(json!({"metadata": {"name": "freeport-east", "labels": labels}})),
            ..ClusterEntry::default()
        }
    }

    pub(super) fn asking(namespace: &str, metadata: &Value, status: &Value) -> Asking {
        let mut offloading =
            json!({"metadata": {"name": "offloading", "uid": "u"}, "spec": {}, "status": status});
        let had = offloading["metadata"].as_object_mut().unwrap();
        had.extend(metadata.as_object().unwrap().clone());
        let entry = NamespaceEntry {
            offloading: serde_json::from_value(offloading).unwrap(),
            ..NamespaceEntry::default()
        };
        Asking { namespace: namespace.into(), entry: entry.into(), name: Some(format!("{namespace}-west")) }
    }

    pub(super) fn held(namespace: &str) -> Asking {
        asking(namespace, &json!({"finalizers": [label::FINALIZER]}), &json!({}))
    }

    fn desired(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).to_owned(), format!("{name}-west"))).collect()
    }

    fn keys<const N: usize>(keys: [(&str, Option<&str>); N]) -> BTreeMap<String, Option<String>> {
        keys.into_iter().map(|(name, twin)| (name.to_owned(), twin.map(str::to_owned))).collect()
    }

    #[test]
    fn all_that_waits_goes_at_once_and_what_is_so_is_not_written() {
        let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
        let mut withdrawn = asking("gone", &going, &json!({}));
        Arc::get_mut(&mut withdrawn.entry).unwrap().withdrawn = Some("u".into());
        let all = [
            held("shop"),
            held("web"),
            held("there"),
            asking("new", &json!({}), &json!({})),
            withdrawn,
            asking("doubted", &going, &json!({})),
        ];
        let have = desired(&["there", "gone", "doubted", "nobodys"]);
        let seen = changes(&have, &all, &east(), false);
        let want = keys([("shop", Some("shop-west")), ("web", Some("web-west")), ("gone", None)]);
        assert_eq!((seen.keys, seen.left_out), (want, 0));
        let now = desired(&["there", "shop", "web", "doubted", "nobodys"]);
        assert_eq!(changes(&now, &all, &east(), false), Changes::default(), "a second pass");
        let nodeless = ClusterEntry { node: None, ..self::east() };
        assert_eq!(
            changes(&have, &all, &nodeless, false).keys,
            keys([("gone", None)]),
            "a Node that vanished"
        );
    }

    #[test]
    fn of_a_cluster_that_is_not_used_any_more_all_keys_go() {
        let unused = serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": {}})).unwrap();
        let unused = ClusterEntry { peer: Some(unused), ..east() };
        let going = json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES});
        let mut invalid = held("invalid");
        invalid.name = None;
        let all = [held("shop"), invalid, asking("doubted", &going, &json!({}))];
        let have = desired(&["shop", "invalid", "doubted", "nobodys"]);
        let every = [("shop", None), ("invalid", None), ("doubted", None), ("nobodys", None)];
        assert_eq!(changes(&have, &all, &unused, false).keys, keys(every), "of one that vanished, too");
        assert_eq!(changes(&desired(&[]), &all, &unused, false), Changes::default(), "a second pass");
        let known = keys([("shop", None)]);
        assert_eq!(
            changes(&have, &all, &unused, true).keys,
            known,
            "this cluster was restored from a backup"
        );
        let vanished = ClusterEntry { peer: None, ..unused };
        assert!(changes(&have, &[], &vanished, false).keys.is_empty(), "nobody has decided that");
    }

    #[test]
    fn a_key_that_came_after_its_namespace_offloading_went_is_taken_out() {
        let mut late = held("late");
        let entry = Arc::get_mut(&mut late.entry).unwrap();
        (entry.offloading, entry.withdrawn) = (None, Some("u".into()));
        late.name = None;
        let mut foreign = held("foreign");
        Arc::get_mut(&mut foreign.entry).unwrap().offloading = None;
        let seen = changes(&desired(&["late", "foreign"]), &[late, foreign], &east(), false);
        assert_eq!(seen.keys, keys([("late", None)]), "what merely vanished stays");
    }

    #[test]
    fn a_map_that_vanished_is_put_back_whole() {
        let said = json!({"remoteNamespaceName": "old", "remoteNamespacesConditions": {"east": [
            {"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "", "lastTransitionTime": GOES},
        ]}});
        let mut invalid = asking("invalid", &json!({}), &said);
        invalid.name = None;
        let all = [held("shop"), invalid, asking("new", &json!({}), &json!({}))];
        let seen = whole(&all, BTreeMap::new(), "east", &east()).unwrap();
        assert_eq!(seen.keys, keys([("shop", Some("shop-west")), ("invalid", Some("old"))]));
        assert_eq!(
            whole(&all[1..], BTreeMap::new(), "east", &east()),
            None,
            "nobody wants anything new of it"
        );
        let mut withdrawn =
            asking("gone", &json!({"finalizers": [label::FINALIZER], "deletionTimestamp": GOES}), &said);
        Arc::get_mut(&mut withdrawn.entry).unwrap().withdrawn = Some("u".into());
        let empty = whole(&[withdrawn], BTreeMap::new(), "east", &east()).unwrap();
        assert_eq!(empty.keys, keys([]), "the host has to see that it is gone");
        let mut unused = east();
        unused.peer_withdrawn = Some(true);
        unused.peer = None;
        let left = asking("shop", &json!({"finalizers": [label::FINALIZER]}), &said);
        let empty = whole(std::slice::from_ref(&left), BTreeMap::new(), "east", &unused).unwrap();
        assert_eq!(empty.keys, keys([]), "the host is not used any more, and has a twin");
        assert_eq!(whole(&[held("shop")], BTreeMap::new(), "east", &unused), None, "it never had one");
    }

    #[test]
    fn a_key_whose_namespace_offloading_vanished_before_the_map_comes_back_with_it() {
        let mut east = east();
        east.wanted_before = desired(&["gone", "new"]);
        let vanished = desired(&["gone"]);
        let new = || asking("new", &json!({}), &json!({}));
        assert_eq!(whole(&[new()], vanished.clone(), "east", &east), None, "nobody wants anything");
        let seen = whole(&[held("shop"), new()], vanished, "east", &east).unwrap();
        let mut want = keys([("shop", Some("shop-west"))]);
        let as_before = east.wanted_before.iter().map(|(name, twin)| (name.clone(), Some(twin.clone())));
        want.extend(as_before);
        assert_eq!(seen.keys, want);
    }

    #[test]
    fn a_map_takes_as_many_as_there_is_room_for() {
        let names: Vec<_> = (0..=ENTRIES_MAX).map(|n| format!("ns-{n:04}")).collect();
        let all: Vec<_> = names.iter().map(|name| held(name)).collect();
        let seen = changes(&desired(&["other"]), &all, &east(), false);
        assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX - 1, 2));
        let seen = whole(&all, BTreeMap::new(), "east", &east()).unwrap();
        assert_eq!((seen.keys.len(), seen.left_out), (ENTRIES_MAX, 1));
        let full = desired(&names[..ENTRIES_MAX].iter().map(String::as_str).collect::<Vec<_>>());
        let seen = changes(&full, &all, &east(), false);
        assert_eq!((seen.keys.len(), seen.left_out), (0, 1));
    }
}
