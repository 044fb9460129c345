//! One watch at the provider: what it covers, and how far what it told can be relied on. Pure, but for the watch itself.

use std::{collections::BTreeMap, mem::replace, time::Instant};

use kit::{failure::Failure, objects::ObjectName, watch::Watches};
use tokio_util::sync::CancellationToken;

use crate::bind::contract::IN_TIME;

/// The provider's Namespaces, by the consumer's: those that a watch covers.
pub(super) type Covered = BTreeMap<String, String>;

/// What one watch at the provider covers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    All,
    Within(String),
}

impl Scope {
    /// Whether it covers the object of that name.
    pub(super) fn has(&self, (namespace, _): &ObjectName) -> bool {
        match self {
            Self::All => true,
            Self::Within(only) => namespace == only,
        }
    }
}

/// A watch at the provider.
pub(super) struct Watched {
    pub(super) watches: Watches,
    pub(super) stop: CancellationToken,
    /// The Namespaces by which what it told is sorted; nothing before its first list. What is in another one is at nobody's place, and
    /// not in the index.
    sorted: Option<Covered>,
    /// Since when a list is waited for.
    waits: Option<Instant>,
    /// The provider refuses the watch, or tells nothing.
    refused: Option<Failure>,
    /// Since when it does not serve the API.
    unserved: Option<Instant>,
    is_unserved: bool,
    /// It was not begun, since there are too many.
    has_no_room: bool,
}

impl Watched {
    /// One that begins `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            watches: Watches::default(),
            stop: CancellationToken::new(),
            sorted: None,
            waits: Some(now),
            refused: None,
            unserved: None,
            is_unserved: false,
            has_no_room: false,
        }
    }

    /// One that is not begun, and why.
    pub(super) fn without_room(why: Failure) -> Self {
        Self { refused: Some(why), waits: None, has_no_room: true, ..Self::new(Instant::now()) }
    }

    /// Whether it was not begun.
    pub(super) fn has_no_room(&self) -> bool {
        self.has_no_room
    }

    /// A list came, and is in the index, sorted by these Namespaces.
    pub(super) fn listed(&mut self, sorted: Covered) {
        (self.sorted, self.waits) = (Some(sorted), None);
    }

    /// These Namespaces are what it covers `now`. Where one was not assigned when objects in it were told, they have to be listed again.
    pub(super) fn assigned(&mut self, covered: &Covered, now: Instant) {
        let Some(sorted) = &mut self.sorted else { return };
        sorted.retain(|ours, theirs| covered.get(ours) == Some(theirs));
        let is_lacking = covered.keys().any(|ours| !sorted.contains_key(ours));
        // A list that is on its way is sorted by what is assigned when it comes; to begin it anew each time might never end.
        if is_lacking && self.waits.is_none() {
            self.waits = Some(now);
            self.watches.list_again();
        }
    }

    /// Whether all is known of what it covers; with a Namespace of ours and the provider's for it, of what is there.
    pub(super) fn is_told(&self, of: Option<(&str, &str)>) -> bool {
        let is_sorted =
            |sorted: &Covered, (ours, theirs): (&str, &str)| sorted.get(ours).is_some_and(|to| to == theirs);
        self.sorted.as_ref().is_some_and(|sorted| of.is_none_or(|of| is_sorted(sorted, of)))
    }

    /// Why it tells nothing.
    pub(super) fn refused(&self) -> Option<&Failure> {
        self.refused.as_ref()
    }

    /// Whether the provider has not served the API for some time.
    pub(super) fn is_unserved(&self) -> bool {
        self.is_unserved
    }

    /// Whether nobody knows why nothing is told.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.waits.is_some_and(|since| now.saturating_duration_since(since) > IN_TIME)
    }

    /// Takes in whether the provider refuses the watch; whether that is news.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        if self.has_no_room {
            return false;
        }
        let failure = self.failure(now);
        self.found(failure, now)
    }

    fn failure(&self, now: Instant) -> Option<Failure> {
        let mut troubles = self.watches.troubles(now).into_iter().map(|trouble| trouble.failure);
        let late = || Failure::Unreachable("it tells nothing");
        match self.is_late(now) {
            true => Some(troubles.next().unwrap_or_else(late)),
            false => troubles.find(Failure::is_refusal),
        }
    }

    fn found(&mut self, failure: Option<Failure>, now: Instant) -> bool {
        let lacks_api = failure == Some(Failure::KindMissing);
        self.unserved = self.unserved.or(Some(now)).filter(|_| lacks_api);
        let is_unserved = self.unserved.is_some_and(|since| now.saturating_duration_since(since) > IN_TIME);
        let is_news = self.refused != failure;
        self.refused = failure;
        is_news | (replace(&mut self.is_unserved, is_unserved) != is_unserved)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn covered(all: &[(&str, &str)]) -> Covered {
        all.iter().map(|(ours, theirs)| ((*ours).to_owned(), (*theirs).to_owned())).collect()
    }

    #[test]
    fn what_was_at_nobodys_place_when_it_was_told_is_listed_again_and_only_that_waits() {
        let now = Instant::now();
        let mut watched = Watched::new(now);
        assert!(!watched.is_told(None));
        watched.listed(covered(&[("a", "a")]));
        let tells = |watched: &Watched| ["a", "b"].map(|name| watched.is_told(Some((name, name))));
        assert_eq!(tells(&watched), [true, false]);
        watched.assigned(&covered(&[("a", "a")]), now);
        assert_eq!(watched.waits, None, "nothing is new");
        watched.assigned(&covered(&[("a", "a"), ("b", "b")]), now);
        assert_eq!((tells(&watched), watched.waits), ([true, false], Some(now)));
        watched.assigned(&covered(&[("a", "there"), ("b", "b")]), now);
        assert!(!watched.is_told(Some(("a", "a"))) && !watched.is_told(Some(("a", "there"))));
        watched.listed(covered(&[("a", "there"), ("b", "b")]));
        assert!(watched.is_told(Some(("a", "there"))) && watched.is_told(Some(("b", "b"))));
        watched.assigned(&covered(&[("b", "b")]), now);
        watched.assigned(&covered(&[("a", "there"), ("b", "b")]), now);
        assert!(!watched.is_told(Some(("a", "there"))), "nobody knows what came while it was nobody's");
    }

    #[test]
    fn x8_an_api_is_not_served_when_it_was_not_for_some_time() {
        let (mut watched, begun) = (Watched::new(Instant::now()), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let missing = || Some(Failure::KindMissing);
        assert!(watched.found(missing(), at(0)) && !watched.is_unserved());
        assert!(!watched.found(missing(), at(20)), "no news");
        assert!(watched.found(missing(), at(40)) && watched.is_unserved());
        assert!(!watched.found(missing(), at(45)));
        assert!(watched.found(None, at(50)) && !watched.is_unserved());
        assert!(watched.found(missing(), at(60)) && !watched.is_unserved(), "it counts from the beginning");
        assert!(watched.found(Some(Failure::Unauthorized), at(100)) && !watched.is_unserved());
    }
}
