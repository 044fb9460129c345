//! Objects as nobody would write them, but an API server might take them: made from a good object and its kind's OpenAPI schema, by a
//! seed, so that each can be made again.
//!
//! | module | holds |
//! |---|---|
//! | [`random`] | numbers by a seed |
//! | [`schema`] | what an API server says of its kinds |
//! | [`change`] | odd values in the place of good ones |
//! | [`crd`] | CRDs of other releases |
//! | [`good`] | a good object of each kind |
//! | [`author`] | who writes a kind, and with which rights |
//! | [`authors`] | all of them |
//! | [`editor`] | somebody who edits what others made |

mod author;
pub mod authors;
mod change;
mod crd;
pub mod editor;
pub mod good;
mod schema;

use std::env;

use sim::random::Random;

/// A member of which nothing runs: nobody mends or removes its records.
pub const MEMBER: &str = "north";
/// A user with all rights in one Namespace.
const USER: &str = "dev";

/// Which cases a run has.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    seed: u64,
    first: u64,
    count: u64,
}

impl Cases {
    /// `count` cases of a seed that stands here, unless `FREEPORT_ODD_SEED`, `FREEPORT_ODD_FIRST` and `FREEPORT_ODD_CASES` say
    /// otherwise. Prints how to have the same again.
    pub fn of_environment(seed: u64, count: u64) -> Self {
        let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let cases = Self {
            seed: number("FREEPORT_ODD_SEED").unwrap_or(seed),
            first: number("FREEPORT_ODD_FIRST").unwrap_or(0),
            count: number("FREEPORT_ODD_CASES").unwrap_or(count),
        };
        let Self { seed, first, count } = cases;
        crate::note!(
            "FREEPORT_ODD_SEED={seed} FREEPORT_ODD_FIRST={first} FREEPORT_ODD_CASES={count} gives these cases again"
        );
        cases
    }

    /// The numbers of the cases, so many at a time.
    pub fn batches(self, size: usize) -> Vec<Vec<u64>> {
        let numbers: Vec<_> = (self.first..self.first + self.count).collect();
        numbers.chunks(size).map(<[u64]>::to_vec).collect()
    }

    /// A seed of a case for who has a source of its own, whatever came before it.
    pub fn bytes(self, number: u64) -> [u8; 32] {
        let (mut random, mut bytes) = (self.random(number), [0; 32]);
        bytes.fill_with(|| u8::try_from(random.below(256)).unwrap());
        bytes
    }

    /// The source of a case, whatever came before it.
    pub(crate) fn random(self, number: u64) -> Random {
        Random::new(self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }
}
