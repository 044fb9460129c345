//! What the last renewal of a Lease shows of its holder.

use api::lease::LeaseView;
use jiff::{SignedDuration, Timestamp};

/// What the last renewal of a Lease says of its holder, by our clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It renews.
    Alive,
    /// It does not renew.
    Silent,
    /// It was renewed this far in our future: the clocks differ, and nothing follows.
    Ahead(SignedDuration),
}

/// Compares the last renewal with `now`.
pub fn sign(lease: &LeaseView, now: Timestamp) -> Sign {
    let stale = SignedDuration::try_from(lease.stale()).unwrap_or(SignedDuration::MAX);
    match lease.renew_time().map(|renewed| now.duration_since(renewed)) {
        Some(age) if age < -stale => Sign::Ahead(-age),
        Some(age) if age < stale => Sign::Alive,
        _ => Sign::Silent,
    }
}
