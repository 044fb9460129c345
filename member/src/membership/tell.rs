//! Telling: writes the `status` of ClusterSets, and an Event when a problem comes up or is over.

use api::condition::{Status, Verdict};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    boot::Env,
    index::Shared,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};

use super::{
    desk::{Desk, Set},
    status::{self, Word},
    verdict,
};

/// What is said about the ClusterSets.
pub(super) struct Words {
    /// About ours.
    pub ours: Option<(String, Word)>,
    /// About all others that have not been left.
    pub others: Verdict,
    /// Whether there is nothing to find out or to do again.
    pub settled: bool,
}

/// Brings the status of all ClusterSets up to date; whether it worked.
pub(super) async fn tell(env: &Env, desk: &Shared<Desk>, writer: &Writer, words: &Words) -> bool {
    env.metrics.link_state(words.ours.as_ref().map(|(_, word)| word.verdict.reason.as_str()));
    let mut all = true;
    for (name, set) in desk.with(|desk| desk.sets.clone()) {
        let word = match &words.ours {
            Some((ours, word)) if *ours == name => word.clone(),
            _ if status::has_left(&set) => continue,
            _ => words.others.clone().into(),
        };
        all &= status(env, desk, writer, &set, &word).await;
    }
    all
}

/// Brings the status of one ClusterSet up to date; whether it worked.
pub(super) async fn status(env: &Env, desk: &Shared<Desk>, writer: &Writer, set: &Set, word: &Word) -> bool {
    let want = status::desired(set, word, &Time(Timestamp::now()));
    if status::stands(set, word) || set.status.0.as_ref() == Ok(&want) {
        return true;
    }
    match writer.put_status(set, &want).await {
        Ok(told) => {
            tell_change(env, set, &word.verdict);
            desk.with(|desk| desk.answered_set(told));
            true
        }
        // Deleted meanwhile: nobody is left to be told.
        Err(Error::Gone) => true,
        Err(error) => {
            let cluster_set = set.name_any();
            tracing::warn!(cluster_set, %error, "the ClusterSet's status was not written, trying again");
            false
        }
    }
}

/// Leaves an Event when a problem comes up, and when it is over.
fn tell_change(env: &Env, set: &Set, verdict: &Verdict) {
    let had = status::reason(set);
    if had == Some(&verdict.reason) {
        return;
    }
    let (cluster_set, reason, message) = (set.name_any(), verdict.reason.as_str(), verdict.message.as_str());
    if verdict::is_problem(verdict) {
        tracing::warn!(cluster_set, reason, "{message}");
        env.events.warn(set.object_ref(&()), "Link", reason, message);
    } else if verdict.status == Status::True && had.is_some() {
        tracing::info!(cluster_set, reason, "{message}");
        env.events.tell(set.object_ref(&()), "Link", reason, message);
    }
}
