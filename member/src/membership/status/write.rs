//! Writes the `status` of ClusterSets, and an Event when a problem comes up or is over.

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::{AntreaCondition, Status, Verdict},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    boot::Env,
    index::Shared,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};

use super::{Report, desired, stays};
use crate::membership::{
    object::Set,
    state::MembershipState,
    verdict::{self, Complete},
};

/// What is reported on the ClusterSets of the Namespace.
pub(in crate::membership) struct Reports {
    /// On the one this cluster belongs to, by its name.
    pub(in crate::membership) own: Option<(String, Report)>,
    /// On all others that have not been left.
    pub(in crate::membership) others: Verdict,
}

/// Brings the status of all ClusterSets up to date; whether it worked.
pub(in crate::membership) async fn write_all(
    env: &Env,
    state: &Shared<MembershipState>,
    writer: &Writer,
    reports: &Reports,
) -> bool {
    env.metrics.link_state(reports.own.as_ref().map(|(_, report)| report.verdict.reason.as_str()));
    let mut all = true;
    for set in state.with(|state| state.cluster_sets.iter().cloned().collect::<Vec<_>>()) {
        let report = match &reports.own {
            Some((own, report)) if *own == set.name_any() => report.clone(),
            _ if set.is_left() => continue,
            _ => reports.others.clone().into(),
        };
        all &= write_status(env, state, writer, &set, &report).await;
    }
    all
}

/// Brings the status of one ClusterSet up to date; whether it worked.
pub(in crate::membership) async fn write_status(
    env: &Env,
    state: &Shared<MembershipState>,
    writer: &Writer,
    set: &Set,
    report: &Report,
) -> bool {
    let want = desired(set, report, &Time(Timestamp::now()));
    if stays(set, report) || set.status.0.as_ref() == Ok(&want) {
        return true;
    }
    let lists = state.with(|state| state.cluster_sets.lists());
    match writer.put_status(set, &want).await {
        Ok(written) => {
            leave_event(env, set, &report.verdict, verdict::is_problem(&report.verdict));
            let others = report.complete.iter().flatten().chain(&report.credential).chain(&report.writes);
            for Complete { verdict, is_problem } in others {
                leave_event(env, set, verdict, *is_problem);
            }
            state.with(|state| state.cluster_sets.answered(written, lists));
            true
        }
        // Deleted meanwhile: nobody reads it any more.
        Err(Error::Gone) => true,
        Err(error) => {
            let cluster_set = set.name_any();
            tracing::warn!(cluster_set, %error, "cannot write the status of the ClusterSet, trying again");
            false
        }
    }
}

/// Leaves an Event when something comes up, and when it is over.
fn leave_event(env: &Env, set: &Set, verdict: &Verdict, is_problem: bool) {
    let condition = set.condition(verdict.type_);
    if !is_news(condition, verdict) {
        return;
    }
    let had = condition.and_then(|had| had.reason.as_deref());
    let (cluster_set, reason, message) = (set.name_any(), verdict.reason.as_str(), verdict.message.as_str());
    if is_problem {
        tracing::warn!(cluster_set, reason, "{message}");
        env.events.warn(set.object_ref(&()), "Connect", reason, message);
    } else if verdict.status == Status::False || verdict.status == Status::True && had.is_some() {
        tracing::info!(cluster_set, reason, "{message}");
        env.events.tell(set.object_ref(&()), "Connect", reason, message);
    }
}

/// Whether there is an Event in what is reported now: another reason, or other writes that are refused.
fn is_news(had: Option<&AntreaCondition>, verdict: &Verdict) -> bool {
    let had_reason = had.and_then(|had| had.reason.as_deref());
    let is_other_text = || had.and_then(|had| had.message.as_deref()) != Some(&verdict.message);
    had_reason != Some(&verdict.reason) || verdict.type_ == WRITES_ACCEPTED && is_other_text()
}

#[cfg(test)]
mod tests {
    use api::mcs::READY;

    use super::*;

    #[test]
    fn other_writes_that_are_refused_are_news_and_other_words_of_another_condition_are_not() {
        let said = |type_, message: &str| Verdict::new(type_, Status::False, "Refused", message);
        let is_news = |type_, before: Option<&str>, now: &str| {
            let had = before
                .map(|before| AntreaCondition::of(&said(type_, before), &[], &Time(Timestamp::UNIX_EPOCH)));
            is_news(had.as_ref(), &said(type_, now))
        };
        assert!(is_news(WRITES_ACCEPTED, None, "a") && is_news(WRITES_ACCEPTED, Some("a"), "b"));
        assert!(!is_news(WRITES_ACCEPTED, Some("a"), "a") && !is_news(READY, Some("a"), "b"));
    }
}
