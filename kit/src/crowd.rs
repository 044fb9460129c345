//! A crowd that has to list everything anew at the same moment (its API server was restored, emptied or replaced, or a CRD changed) does so
//! one after the other: each has a place, by which it waits. Pure.

use std::time::Duration;

/// Full lists that one of the crowd makes when its turn comes, at the most. For others it waits for another round.
pub const LISTS: u32 = 6;
/// Of all of them a second: not quite the 50 that are allowed, since turns meet at their ends.
const RATE: u32 = 40;

/// A place in the crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How many come before it.
    pub before: usize,
    /// How many there are.
    pub members: usize,
}

impl Place {
    /// The place in a round that begins when all had their turns in those before it. Rounds are counted from 0.
    pub fn in_round(self, round: usize) -> usize {
        self.members.max(self.before + 1) * round + self.before
    }
}

/// How long one waits that has this place in the crowd, counted from 0. `share`: which part of its turn passes before it begins, from 0 to 1.
pub fn wait(place: usize, share: f64) -> Duration {
    let turn = Duration::from_secs(1) * LISTS / RATE;
    let turns = u32::try_from(place).unwrap_or(u32::MAX);
    turn.saturating_mul(turns) + turn.mul_f64(share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]
        #[test]
        fn of_500_no_more_than_50_lists_begin_in_any_second(
            shares in prop::collection::vec(0.0..1.0f64, 500),
        ) {
            let of_round = |round| {
                let place = move |before| Place { before, members: 500 }.in_round(round);
                shares.iter().enumerate().map(move |(before, share)| wait(place(before), *share))
            };
            let waits = of_round(0).chain(of_round(1));
            let begun: Vec<_> = waits.flat_map(|wait| (0..LISTS).map(move |_| wait)).collect();
            for (first, at) in begun.iter().enumerate() {
                let in_a_second = begun[first..].iter().filter(|begun| **begun - *at < Duration::from_secs(1));
                prop_assert!(in_a_second.count() <= 50);
            }
            prop_assert!(begun.iter().max().is_some_and(|last| *last <= Duration::from_secs(150)));
            prop_assert!(of_round(0).all(|wait| wait <= Duration::from_secs(75)));
        }
    }

    #[test]
    fn a_few_hardly_wait() {
        assert!(wait(2, 1.0) < Duration::from_millis(500));
    }
}
