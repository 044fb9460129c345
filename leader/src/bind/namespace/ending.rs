//! What becomes of a Namespace when the APIServiceNamespace goes that it was made for: pure.

use api::bind::export::APIServiceNamespace;

use super::assigned::{assigned, is_made_for, is_without_prefix, said};
use crate::bind::{
    key::Key,
    known::{Known, Place},
};

/// What becomes of it.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// It goes as well.
    Delete(Place),
    /// Others have objects in it: it is this one's from now on.
    HandOver(Place, Key),
    /// It stays as it is.
    Stays,
}

/// `place` is the Namespace of that name: a watch may not have told of it yet.
pub(super) fn ending(
    key: &Key,
    namespace: &APIServiceNamespace,
    (name, place): (&str, Option<&Place>),
    known: &Known,
) -> Ending {
    let Some(place) = place else { return Ending::Stays };
    let (is_its, was_said) = (is_made_for(place, key), said(namespace) == Some(name));
    if !(is_its || was_said && is_without_prefix(place, key)) {
        return Ending::Stays;
    }
    match heir(key, name, known) {
        None => Ending::Delete(place.clone()),
        Some(heir) if is_its => Ending::HandOver(place.clone(), heir),
        Some(_) => Ending::Stays,
    }
}

/// Another one that has its objects there, or is going to. Of several that go at the same time just one is the last.
fn heir(key: &Key, name: &str, known: &Known) -> Option<Key> {
    let is_in = |other: &&APIServiceNamespace| {
        let of = Key::of(*other);
        of != *key && assigned(&of, other, known).as_deref() == Some(name)
    };
    let is_live = |other: &&APIServiceNamespace| other.metadata.deletion_timestamp.is_none();
    let (live, going): (Vec<_>, Vec<_>) = known.namespaces.iter().filter(is_in).partition(is_live);
    let later = going.into_iter().map(Key::of).filter(|other| other > key);
    live.into_iter().map(Key::of).chain(later).next()
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::{
        super::assigned::tests::{key, known, made, namespace},
        *,
    };

    /// How it ends for `cns/team1`, beside APIServiceNamespaces `team1` of others: the cluster namespace, where it is, whether it goes.
    fn ends(made_for: &str, said: &str, others: &[(&str, &str, bool)]) -> String {
        let mut known = known("None");
        let place = made("team1", made_for, false);
        for (contract, status, goes) in others {
            let deleted = goes.then_some("2026-01-01T00:00:00Z");
            let mut other = json!(namespace(status));
            other["metadata"]["namespace"] = json!(contract);
            other["metadata"]["deletionTimestamp"] = json!(deleted);
            known.namespaces.change(Change::Apply(serde_json::from_value(other).unwrap()));
        }
        match ending(&key(), &namespace(said), ("team1", Some(&place)), &known) {
            Ending::Delete(_) => "goes".into(),
            Ending::HandOver(_, heir) => format!("is of {heir}"),
            Ending::Stays => "stays".into(),
        }
    }

    #[test]
    fn d7_only_what_was_made_for_it_goes_and_only_with_the_last() {
        let (ours, theirs) = ("cns/team1", "a/team1");
        assert_eq!(ends(ours, "team1", &[]), "goes");
        assert_eq!(ends(ours, "", &[]), "goes", "it was made, and then not said");
        assert_eq!(ends(ours, "team1", &[("a", "a-team1", false)]), "goes", "the other one is elsewhere");
        assert_eq!(ends(ours, "team1", &[("b", "team1", false)]), "is of b/team1");
        assert_eq!(ends(theirs, "team1", &[("a", "team1", false)]), "stays");
        assert_eq!(ends(theirs, "team1", &[]), "goes", "the last one");
        assert_eq!(ends(theirs, "", &[]), "stays", "it was never its own");
        assert_eq!(ends("cns/other", "team1", &[]), "stays");
        // Both go: the later one takes it along, whoever it was made for.
        assert_eq!(ends(theirs, "team1", &[("a", "team1", true)]), "goes");
        assert_eq!(ends(ours, "team1", &[("d", "team1", true)]), "is of d/team1");
        assert_eq!(ends(theirs, "team1", &[("d", "team1", true)]), "stays");
    }
}
