//! Whose news are told at once: pure. To tell them our Lease is renewed, which every member watches; no member may have us do that all
//! the time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Of each member so many in this time; what is more goes with the next renewal.
const MOST: u8 = 3;
const WHILE: Duration = Duration::from_secs(30);

/// Of each Lease since when, and how many news were told since.
#[derive(Debug, Default)]
pub(super) struct Urgent(BTreeMap<String, (Instant, u8)>);

impl Urgent {
    /// Whether news of this Lease are told at once.
    pub(super) fn are(&mut self, lease: &str, now: Instant) -> bool {
        self.0.retain(|_, (since, _)| now.saturating_duration_since(*since) < WHILE);
        let (_, told) = self.0.entry(lease.to_owned()).or_insert((now, 0));
        *told = told.saturating_add(1);
        *told <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_with_news_all_the_time_is_not_told_of_at_once_and_the_others_are() {
        let (mut urgent, begun) = (Urgent::default(), Instant::now());
        let at = |second| begun + Duration::from_secs(second);
        let told: Vec<_> = (0..40).filter(|second| urgent.are("east", at(*second))).collect();
        assert_eq!(told, [0, 1, 2, 30, 31, 32]);
        assert!(urgent.are("west", at(40)));
    }
}
