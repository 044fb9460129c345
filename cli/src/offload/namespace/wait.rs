//! Waits for Namespaces, all of which the member looks at meanwhile, and says what came of each.

use std::time::{Duration, Instant};

use super::{
    super::{
        away::explained,
        progress::{Progress, progress},
    },
    read,
};
use crate::{Error, cluster::Cluster, eraser::Say, printable::printable, rollout};

/// For so long a refusal may be of how things were before: of a consent that was given a moment ago, the host hears before the home.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Waits until the member says of each that all is done, or that it cannot be.
pub(super) async fn wait(
    cluster: &Cluster,
    namespaces: &[String],
    limit: Duration,
    say: Say<'_>,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut failed = Vec::new();
    for namespace in namespaces {
        match one(cluster, namespace, begun, limit, say).await {
            Ok(()) => {}
            Err(error @ (Error::Refused { .. } | Error::Timeout { .. })) if namespaces.len() > 1 => {
                say(&error.to_string());
                failed.push(namespace.as_str());
            }
            Err(error) => return Err(error),
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(cluster.refuse(format!(
            "{} of {} Namespaces are not ready: {}",
            failed.len(),
            namespaces.len(),
            failed.join(", ")
        ))),
    }
}

async fn one(
    cluster: &Cluster,
    namespace: &str,
    begun: Instant,
    limit: Duration,
    say: Say<'_>,
) -> Result<(), Error> {
    let probe = async || {
        Ok(match progress(read(cluster, namespace).await?.as_ref()) {
            Progress::Done(message) => Ok(Ok(message)),
            // In the words of another cluster.
            Progress::Failed(message) if is_final(begun.elapsed(), limit) => Ok(Err(printable(&message))),
            Progress::Failed(message) | Progress::Waits(message) => {
                Err(explained(cluster, printable(&message)).await)
            }
        })
    };
    let waiting = |message: &str| say(&format!("{}: waiting for {namespace}: {message}", cluster.name));
    match rollout::wait(limit.saturating_sub(begun.elapsed()), probe, waiting).await? {
        Ok(Ok(message)) => {
            say(&format!("{}: {namespace}: {message}", cluster.name));
            Ok(())
        }
        Ok(Err(message)) => Err(cluster.refuse(format!("Namespace {namespace}: {message}"))),
        Err(message) => Err(Error::Timeout {
            cluster: cluster.name.clone(),
            missing: format!("Namespace {namespace} is not ready: {message}"),
            limit,
        }),
    }
}

/// Whether a refusal is one of how things are now.
fn is_final(waited: Duration, limit: Duration) -> bool {
    waited >= SECOND_LOOK.min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_looked_at_again_before_it_counts() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
        assert!(!is_final(Duration::ZERO, long) && !is_final(short, long));
        assert!(is_final(SECOND_LOOK, long) && is_final(short, short));
    }
}
