//! Whether the leader takes back so much at once that its word alone does not count: pure.
//!
//! Members take back what they export in their own records, and the leader passes that on. A leader that is wrong (somebody edits its imports, it
//! lost what it knew) could take everything away from everybody. So of the imports that are here only some go by its word alone in a
//! while; of all others members are asked whether they said it. What stays then is noted on its ServiceImport, so that it is the same after
//! a restart, whatever the leader has deleted meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{ServiceName, name};
use kit::backoff::Backoff;

/// What goes within this time goes at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How long members are asked before it counts that they did not say it: that a record is gone may be known before the rest of it is.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(1);
/// The same where it cannot be found out: a member may have begun to take it back, or is not heard yet.
const IN_DOUBT: Duration = Duration::from_secs(30);
/// How soon they are asked again about what stays.
const ASK_AGAIN: Backoff = Backoff { first: SECOND_LOOK, longest: Duration::from_secs(60) };
/// So many of a hundred may go, and one always.
const SHARE: usize = 30;

/// Whether members have taken something back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    /// All have.
    Yes,
    /// It is not known of one of them, or not yet.
    #[default]
    Unknown,
    /// One of them exports it.
    No,
}

/// What went lately, and what stays for now. Lives as long as a session.
#[derive(Debug, Default)]
pub(crate) struct Withdrawals {
    gone: BTreeMap<ServiceName, Instant>,
    /// How many imports there were when the first of these went.
    of: usize,
    asked: BTreeMap<ServiceName, Asked>,
    /// Imports that stay, though the leader says that nobody exports them.
    withheld: BTreeSet<ServiceName>,
    /// Imports that stayed, and that somebody has let go.
    let_go: BTreeSet<ServiceName>,
    /// What the ClusterSet says of what is to go.
    said: Option<String>,
}

/// When members were asked about an import.
#[derive(Debug)]
struct Asked {
    first: Instant,
    times: u32,
    /// They are not asked again before.
    again: Instant,
    /// What they said last.
    said: Said,
    /// Those that had slices then: where one has none any more, its record may be gone as well.
    with_slices: BTreeSet<String>,
}

impl Withdrawals {
    /// Whether one of `here` imports may go by the leader's word alone.
    pub(super) fn may_go(&mut self, service: &ServiceName, here: usize, now: Instant) -> bool {
        self.gone.retain(|_, at| now.saturating_duration_since(*at) < AT_ONCE);
        if self.let_go.contains(service) || self.gone.contains_key(service) {
            return true;
        }
        // As long as something stays, more is of the same step.
        if !self.withheld.is_empty() {
            return false;
        }
        // What goes is here for a while yet.
        if self.gone.is_empty() {
            self.of = here;
        }
        let may_go = self.gone.len() < (self.of * SHARE / 100).max(1);
        if may_go {
            self.gone.insert(service.clone(), now);
        }
        may_go
    }

    /// Whether members are to be asked now: not so soon again, unless others of them have slices now.
    pub(super) fn asks(
        &mut self,
        service: &ServiceName,
        with_slices: BTreeSet<String>,
        now: Instant,
    ) -> bool {
        let before = self.asked.remove(service);
        let first = before.as_ref().map_or(now, |before| before.first);
        let (times, is_due) = match &before {
            Some(before) if before.with_slices == with_slices => (before.times + 1, before.again <= now),
            _ => (1, true),
        };
        let asked = match before.filter(|_| !is_due) {
            Some(before) => before,
            None => {
                Asked { first, times, again: now + ASK_AGAIN.wait(times), said: Said::default(), with_slices }
            }
        };
        self.asked.insert(service.clone(), asked);
        is_due
    }

    /// Members said this when they were asked.
    pub(super) fn answered(&mut self, service: &ServiceName, said: Said) {
        if let Some(asked) = self.asked.get_mut(service) {
            asked.said = said;
        }
    }

    /// What members said when they were asked last.
    pub(super) fn said(&self, service: &ServiceName) -> Said {
        self.asked.get(service).map(|asked| asked.said).unwrap_or_default()
    }

    /// After which time members are to be asked again, if they were asked.
    pub(super) fn asks_again(&self, service: &ServiceName, now: Instant) -> Option<Duration> {
        self.asked.get(service).map(|asked| asked.again.saturating_duration_since(now))
    }

    /// Members did not say that they take the import back. Whether it stays against the leader's word, or they are asked once more.
    pub(super) fn withhold(&mut self, service: &ServiceName, now: Instant) -> bool {
        let stays = self.withheld.contains(service)
            || self.asked.get(service).is_some_and(|asked| {
                let enough = if asked.said == Said::No { SECOND_LOOK } else { IN_DOUBT };
                now.saturating_duration_since(asked.first) >= enough
            });
        if stays {
            self.withheld.insert(service.clone());
        }
        stays
    }

    /// What is noted of an import that stays against the leader's word.
    pub(super) fn note(&self, service: &ServiceName) -> Option<String> {
        self.withheld.contains(service).then(|| name::hash(self.said.as_deref().unwrap_or_default()))
    }

    /// Takes in an import of which this was noted: it stays, unless the ClusterSet has said something else since.
    pub(super) fn goes_on(&mut self, service: &ServiceName, noted: &str) {
        let says_more = self.said.as_deref().is_some_and(|said| name::hash(said) != noted);
        let these = if says_more { &mut self.let_go } else { &mut self.withheld };
        these.insert(service.clone());
    }

    /// Whether somebody has let the import go, and the leader has not named anybody since.
    pub(super) fn lets_go(&self, service: &ServiceName) -> bool {
        self.let_go.contains(service)
    }

    /// The import goes.
    pub(super) fn goes(&mut self, service: &ServiceName) {
        self.asked.remove(service);
        self.withheld.remove(service);
    }

    /// It is to be found out otherwise whether the import goes.
    pub(super) fn is_in_doubt(&mut self, service: &ServiceName) {
        if !self.withheld.contains(service) {
            self.asked.remove(service);
        }
    }

    /// The leader does not take the import back, or not any more.
    pub(super) fn stays(&mut self, service: &ServiceName) {
        self.asked.remove(service);
        self.withheld.remove(service);
        self.let_go.remove(service);
    }

    /// Takes in what the ClusterSet says, and lets go what stays now; which these are.
    pub(crate) fn hear(&mut self, said: Option<&str>) -> BTreeSet<ServiceName> {
        self.said = said.map(str::to_owned);
        let these = std::mem::take(&mut self.withheld);
        self.let_go.extend(these.iter().cloned());
        these
    }

    /// What stays.
    pub(crate) fn withheld(&self) -> &BTreeSet<ServiceName> {
        &self.withheld
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(number: usize) -> ServiceName {
        ServiceName::new("shop", format!("s{number}"))
    }

    #[test]
    fn a_third_goes_at_once_and_the_rest_is_asked_for() {
        let (mut all, begun) = (Withdrawals::default(), Instant::now());
        let here = 100;
        let went: Vec<_> = (0..here).filter(|number| all.may_go(&service(*number), here, begun)).collect();
        assert_eq!(went, (0..30).collect::<Vec<_>>());
        assert!(all.may_go(&service(7), here, begun), "its removal was begun");
        assert!(all.asks(&service(50), BTreeSet::new(), begun));
        all.answered(&service(50), Said::No);
        assert!(
            !all.withhold(&service(50), begun) && all.withheld().is_empty(),
            "members are asked once more"
        );
        assert!(all.withhold(&service(50), begun + SECOND_LOOK));
        assert!(!all.may_go(&service(51), here, begun));
        assert_eq!(all.withheld().len(), 1);
        assert_eq!(all.hear(Some("today")), [service(50)].into());
        all.goes(&service(50));
        assert!(all.may_go(&service(50), here, begun) && all.withheld().is_empty());
        all.stays(&service(50));
        assert!(!all.may_go(&service(50), here, begun), "it came back: that was once");
        assert!(all.may_go(&service(60), here, begun + AT_ONCE), "later is another step");
        all.asks(&service(61), BTreeSet::new(), begun);
        assert!(!all.withhold(&service(61), begun + SECOND_LOOK), "it is not known");
        assert!(all.withhold(&service(61), begun + IN_DOUBT));
        assert!(!all.may_go(&service(62), here, begun + 9 * AT_ONCE), "time alone lets nothing go");
    }

    #[test]
    fn members_are_asked_less_and_less_often_unless_their_slices_go() {
        let (mut all, begun) = (Withdrawals::default(), Instant::now());
        let slices = |of: &[&str]| of.iter().map(|cluster| (*cluster).to_owned()).collect::<BTreeSet<_>>();
        let (both, second) = (slices(&["east", "north"]), Duration::from_secs(1));
        let mut asks = |of: &BTreeSet<String>, after| all.asks(&service(1), of.clone(), begun + after);
        let asked: Vec<_> = (0..200).filter(|n| asks(&both, *n * second)).collect();
        assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        assert!(asks(&slices(&["east"]), 200 * second) && !asks(&slices(&["east"]), 200 * second));
        assert_eq!(all.asks_again(&service(1), begun + 200 * second), Some(second));
        assert_eq!(all.asks_again(&service(2), begun), None);
        all.is_in_doubt(&service(1));
        assert_eq!(all.asks_again(&service(1), begun), None, "nobody is asked here any more");
    }

    #[test]
    fn what_stays_is_the_same_for_the_next_process() {
        let (mut before, now) = (Withdrawals::default(), Instant::now());
        before.hear(Some("today"));
        before.asks(&service(1), BTreeSet::new(), now);
        before.answered(&service(1), Said::No);
        before.withhold(&service(1), now + SECOND_LOOK);
        let note = before.note(&service(1)).unwrap();
        assert_eq!(before.note(&service(2)), None);
        for (said, stays) in [(Some("today"), true), (Some("tomorrow"), false), (None, true)] {
            let mut next = Withdrawals::default();
            next.hear(said);
            next.goes_on(&service(1), &note);
            assert_eq!((next.withheld().contains(&service(1)), next.lets_go(&service(1))), (stays, !stays));
            assert!(!stays || !next.may_go(&service(2), 100, now), "it is of the same step");
        }
    }

    #[test]
    fn of_few_imports_one_goes_at_once() {
        for here in 1..=6 {
            let (mut all, now) = (Withdrawals::default(), Instant::now());
            let went: Vec<_> = (0..here).filter(|number| all.may_go(&service(*number), here, now)).collect();
            assert_eq!(went, [0]);
        }
    }
}
