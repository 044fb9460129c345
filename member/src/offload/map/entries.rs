//! What the entries of a map say of twins: pure.

use std::collections::BTreeMap;

use api::{
    offload::map::{
        ACCEPTED, CREATION_LOOP_BACK_OFF, DELETION_REFUSED, ENTRIES_MAX, MESSAGE_MAX, MappedNamespace,
        TERMINATING,
    },
    view::shortened,
};
use serde_json::{Value, json};

use super::plan::Refused;
use crate::offload::{index::ClusterEntry, view::PeerMap};

/// What entries are to say; nothing of one that goes.
pub(super) type Said = BTreeMap<String, Option<MappedNamespace>>;

/// What there is to write: the entries that say something else, if any; and, if each twin that is not desired is in an entry (`is_done`), the
/// generation that was acted on, for which a home that has withdrawn a twin waits.
pub(super) fn status(entry: &ClusterEntry, map: &PeerMap, mut said: Said, is_done: bool) -> Option<Value> {
    let have = current(entry);
    said.retain(|namespace, want| have.get(namespace) != want.as_ref());
    within(ENTRIES_MAX, &have, &mut said);
    let generation = map.metadata.generation.filter(|_| is_done);
    let observed = map.status.0.as_ref().ok().and_then(|status| status.observed_generation);
    if said.is_empty() && (generation.is_none() || observed == generation) {
        return None;
    }
    let changed: BTreeMap<_, Value> = said.into_iter().map(|(name, entry)| (name, whole(entry))).collect();
    let mut status = json!({"currentMapping": changed});
    if let Some(generation) = generation {
        status["observedGeneration"] = json!(generation);
    }
    Some(status)
}

/// Leaves out new entries for which a map of so many has no room until others have gone: all of it would be refused.
fn within(most: usize, have: &BTreeMap<String, MappedNamespace>, said: &mut Said) {
    let gone = said.iter().filter(|(name, want)| want.is_none() && have.contains_key(*name)).count();
    let mut room = most.saturating_sub(have.len() - gone);
    said.retain(|name, want| {
        let is_new = want.is_some() && !have.contains_key(name);
        let has_room = !is_new || room > 0;
        room -= usize::from(is_new && has_room);
        has_room
    });
}

pub(super) fn current(entry: &ClusterEntry) -> BTreeMap<String, MappedNamespace> {
    entry.said_here().map(|status| status.current_mapping.clone()).unwrap_or_default()
}

/// An entry in a merge patch: what it does not say goes.
fn whole(entry: Option<MappedNamespace>) -> Value {
    entry.map_or(Value::Null, |entry| {
        json!({
            "remoteNamespace": entry.remote_namespace, "phase": entry.phase,
            "reason": entry.reason, "message": entry.message,
        })
    })
}

pub(super) fn refused(twin: String, why: &Refused) -> MappedNamespace {
    MappedNamespace {
        remote_namespace: twin,
        phase: CREATION_LOOP_BACK_OFF.to_owned(),
        reason: Some(why.reason.to_owned()),
        message: Some(shortened(why.message.clone(), MESSAGE_MAX)),
    }
}

pub(super) fn accepted(twin: String) -> MappedNamespace {
    MappedNamespace { remote_namespace: twin, phase: ACCEPTED.to_owned(), ..MappedNamespace::default() }
}

pub(super) fn terminating(twin: String) -> MappedNamespace {
    MappedNamespace { remote_namespace: twin, phase: TERMINATING.to_owned(), ..MappedNamespace::default() }
}

/// A twin whose deletion the host's API server refuses.
pub(super) fn undeleted(twin: String, words: String) -> MappedNamespace {
    let (reason, message) = (Some(DELETION_REFUSED.to_owned()), Some(shortened(words, MESSAGE_MAX)));
    MappedNamespace { reason, message, ..terminating(twin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_is_full_takes_what_is_new_when_others_have_gone() {
        let entry = || Some(accepted("twin".to_owned()));
        let have = ["a", "b"].map(|name| (name.to_owned(), accepted(name.to_owned()))).into();
        let left = |said: &[(&str, Option<MappedNamespace>)]| {
            let mut said = said.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect();
            within(3, &have, &mut said);
            said.into_keys().collect::<String>()
        };
        assert_eq!(left(&[("b", entry()), ("c", entry()), ("d", entry())]), "bc");
        assert_eq!(left(&[("a", None), ("c", entry()), ("d", entry()), ("e", entry())]), "acd");
        assert_eq!(left(&[("x", None), ("c", entry()), ("d", entry())]), "cx", "it was none");
    }
}
