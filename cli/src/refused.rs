//! A command that waits for a daemon stops where an API server refuses what the daemon has to do.

use std::time::{Duration, Instant};

use crate::{Error, cluster::Cluster};

/// Time for which a command waits at least: a refusal that is reported when it starts may be over in a moment.
const SECOND_LOOK: Duration = Duration::from_secs(10);

/// Stops a command that has waited since `begun`, for `limit` at most, where this is refused to `freeport-member`. `next`: what remains to be
/// done when it is not refused any more.
///
/// # Errors
/// [`Error::WriteRefused`].
pub(crate) fn stop(
    cluster: &Cluster,
    refused: Option<String>,
    (begun, limit): (Instant, Duration),
    next: &str,
) -> Result<(), Error> {
    let Some(refused) = refused.filter(|_| begun.elapsed() >= SECOND_LOOK.min(limit)) else { return Ok(()) };
    let reason = format!(
        "{refused}. Change the policy, webhook, quota or right that refuses it: freeport-member goes on by itself, and {next}"
    );
    Err(Error::WriteRefused { cluster: cluster.name.clone(), reason })
}
