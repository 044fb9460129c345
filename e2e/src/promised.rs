//! Times that the documentation promises.

use std::time::Duration;

use crate::{ground::is_simulated, say::say};

/// Another replica is active after the active one was killed or paused.
pub const TAKEOVER: Duration = Duration::from_secs(15);
/// Another replica is active after the active one was told to end.
pub const HANDOVER: Duration = Duration::from_secs(3);
/// Endpoints of a cluster that does not answer are not ready.
pub const DEMOTED: Duration = Duration::from_secs(15);
/// They are ready again after somebody answered; exports are back after their cluster was observed again.
pub const BACK: Duration = Duration::from_secs(1);
/// The credential of a member that is revoked lets nobody do anything.
pub const REVOKED: Duration = Duration::from_secs(10);
/// A half-open connection was found, and all is as before.
pub const HALF_OPEN: Duration = Duration::from_secs(15);

/// Prints what took how long. In virtual time it fails if that was longer than promised; real programs share their machine with compilers and other
/// fleets, so their times are printed alone.
pub fn promised(what: &str, took: Duration, promise: Duration) {
    let late = if took > promise { ": late" } else { "" };
    say(&format!("{what} after {:.1} s; promised: {} s{late}", took.as_secs_f64(), promise.as_secs()));
    assert!(!is_simulated() || took <= promise, "{what} after {took:?}, which is more than {promise:?}");
}
