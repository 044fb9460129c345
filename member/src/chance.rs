//! What is left to chance.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// From 0 to 1, by chance.
pub(crate) fn share() -> f64 {
    let number = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
    f64::from(number) / f64::from(u32::MAX)
}

/// A time of at most so long, by chance.
pub(crate) fn chance(most: Duration) -> Duration {
    most.mul_f64(share())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_has_a_bound() {
        let most = Duration::from_secs(10);
        assert!((0..100).all(|_| chance(most) <= most && (0.0..=1.0).contains(&share())));
    }
}
