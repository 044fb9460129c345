//! When progress is said: pure.

use std::time::{Duration, Instant};

use api::{
    condition::{Status, Verdict},
    offload::{
        map::TERMINATING,
        namespace::{NamespaceOffloadingStatus, OFFLOADING_REQUIRED, READY},
        phase::{HOST_SILENT, Phase, SELECTED, Summary},
    },
};

/// How long twins may take that are only on their way, before that is said for the first time; hosts that answer for others meanwhile
/// have yet to come to these.
const MOMENT: Duration = Duration::from_secs(2);
/// How soon the first progress is said in any case. Hundreds at once take longer than ten seconds: at that, each would be written once more
/// just before it is ready.
const LONG: Duration = Duration::from_secs(30);
/// How soon more of the same is said.
const NEXT: Duration = Duration::from_secs(10);
/// How soon after the last status another one is written: hosts may say something else as often as they like.
const PACE: Duration = Duration::from_secs(1);

/// When `want` is to be said in place of `have`, if all that is new since then is how far twins are that are on their way; nothing if
/// it is to be said now. `moved`: when a map, or its host, said something else last. One without our finalizer is about to be written
/// for that, and would be written twice at the same time.
pub(super) fn due(
    have: &NamespaceOffloadingStatus,
    want: &NamespaceOffloadingStatus,
    is_held: bool,
    since: Instant,
    moved: Option<Instant>,
) -> Option<Instant> {
    let Some(before) = have.offloading_phase.as_deref() else {
        let first = moved.map_or(since, |moved| moved.max(since)) + MOMENT;
        return Some(if is_held { first.min(since + LONG) } else { since + LONG });
    };
    let far = want.remote_namespaces_conditions.clone();
    let farther = NamespaceOffloadingStatus { remote_namespaces_conditions: far, ..have.clone() };
    let is_more = before == Phase::InProgress.as_str() && super::is_said(&farther, want);
    is_more.then(|| since + NEXT)
}

/// How long it is not to be said yet, if it is [`due`] then and the last status was written `said_at`; nothing if it may be now. The first
/// one waits for no pace.
pub(super) fn wait(due: Option<Instant>, said_at: Option<Instant>, now: Instant) -> Option<Duration> {
    let at = due.max(said_at.map(|at| at + PACE))?;
    (at > now).then(|| at - now)
}

/// Reason of `Ready` of a host that had a twin and whose map is missing.
const MAP_MISSING: &str = "MapMissing";

/// Keeps hosts that had a twin and whose map is `missing`: it is put back, and before they have seen it nobody knows that the twin is gone.
/// Without their conditions they were forgotten, and the NamespaceOffloading would go before its twin.
pub(super) fn unseen(said: &mut Summary, missing: impl IntoIterator<Item = String>) {
    for host in missing {
        let twin = "it had a twin, and is not known to have taken it back";
        let map = format!(
            "the NamespaceMap for cluster {host} is missing in the Common Area: it is put back, by which the host sees that it is to \
             delete the twin; if that does not come about, the CRD may be missing there (freeport init --offload)"
        );
        said.clusters.entry(host).or_insert_with(|| {
            vec![
                Verdict::new(OFFLOADING_REQUIRED, Status::True, SELECTED, twin),
                Verdict::new(READY, Status::Unknown, MAP_MISSING, map),
            ]
        });
    }
}

/// Reason of `Ready` of a host that does not say for long that the twin is gone.
const HOST_DOES_NOT_ANSWER: &str = "HostDoesNotAnswer";

/// Says of these hosts, for which one that is being deleted waits for too long, how to go on without them. Those that say themselves that
/// it takes time do answer.
pub(super) fn unanswered(said: &mut Summary, hosts: &[String]) {
    for host in hosts {
        let verdicts = said.clusters.entry(host.clone()).or_default();
        if verdicts.iter().any(|verdict| verdict.type_ == READY && verdict.reason == TERMINATING) {
            continue;
        }
        let message = format!(
            "cluster {host} has not said that the twin is gone: freeport offload use {host} --remove --yes lets this go without it, and the twin \
             may stay there"
        );
        let is_about = |verdict: &Verdict| verdict.type_ == OFFLOADING_REQUIRED;
        let required = verdicts.iter().find(|verdict| is_about(verdict)).cloned();
        let verdict = Verdict::new(READY, Status::False, HOST_DOES_NOT_ANSWER, message);
        *verdicts = required.into_iter().chain([verdict]).collect();
    }
}

/// Whether something was wrong of which the user was told.
pub(super) fn had_trouble(have: &NamespaceOffloadingStatus) -> bool {
    let troubles = [Phase::NoClusterSelected, Phase::SomeFailed, Phase::AllFailed].map(Phase::as_str);
    let mut reasons = have.remote_namespaces_conditions.values().flatten().map(|c| c.reason.as_str());
    have.offloading_phase.as_deref().is_some_and(|phase| troubles.contains(&phase))
        || reasons.any(|reason| reason == HOST_SILENT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(phase: &str, ready: &[(&str, &str)]) -> NamespaceOffloadingStatus {
        let of = |type_, reason| {
            json!({"type": type_, "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-11-01T12:00:00Z"})
        };
        let clusters: serde_json::Map<_, _> = ready
            .iter()
            .map(|(id, reason)| {
                ((*id).to_owned(), json!([of("OffloadingRequired", "ClusterSelected"), of("Ready", reason)]))
            })
            .collect();
        let status = json!({"offloadingPhase": phase, "observedGeneration": 1, "remoteNamespacesConditions": clusters});
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_first_progress_waits_a_moment_and_more_of_it_longer() {
        let since = Instant::now();
        let wait = |have: &NamespaceOffloadingStatus, want: &NamespaceOffloadingStatus| {
            due(have, want, true, since, None).map(|at| at - since)
        };
        let none = NamespaceOffloadingStatus::default();
        let begun = status("InProgress", &[("east", "Creating"), ("north", "Creating")]);
        let half = status("InProgress", &[("east", "NamespaceCreated"), ("north", "Creating")]);
        let ready = status("Ready", &[("east", "NamespaceCreated"), ("north", "NamespaceCreated")]);
        assert_eq!(wait(&none, &begun), Some(MOMENT));
        let about = due(&none, &begun, false, since, None);
        assert_eq!(about, Some(since + LONG), "it is about to be written");
        let moved = |after| due(&none, &begun, true, since, Some(since + after)).map(|at| at - since);
        let second = Duration::from_secs(1);
        assert_eq!(moved(second), Some(MOMENT + second), "hosts are at work for others");
        assert_eq!(moved(12 * second), Some(MOMENT + 12 * second), "hundreds at once");
        assert_eq!(moved(29 * second), Some(LONG), "it is said in any case");
        assert_eq!(due(&none, &begun, true, since + second, Some(since)), Some(since + second + MOMENT));
        assert_eq!(wait(&begun, &half), Some(NEXT));
        assert_eq!(wait(&ready, &half), None, "a twin was lost");
        let other = NamespaceOffloadingStatus { observed_generation: Some(2), ..half.clone() };
        assert_eq!(wait(&begun, &other), None, "it is about another spec");
    }

    #[test]
    fn what_a_host_says_again_and_again_is_written_now_and_then() {
        let begun = Instant::now();
        assert_eq!(wait(None, None, begun), None, "the first");
        assert_eq!(wait(None, Some(begun), begun), Some(PACE));
        assert_eq!(wait(None, Some(begun), begun + PACE / 4), Some(PACE * 3 / 4));
        assert_eq!(wait(None, Some(begun), begun + PACE), None);
        assert_eq!(wait(Some(begun + NEXT), Some(begun), begun + PACE), Some(NEXT - PACE));
        assert_eq!(wait(Some(begun), Some(begun), begun), Some(PACE));
        assert_eq!(wait(Some(begun), None, begun + PACE), None);
    }

    #[test]
    fn a_host_whose_map_is_missing_is_not_forgotten() {
        let north = vec![Verdict::new(READY, Status::False, TERMINATING, "")];
        let clusters = [("north".to_owned(), north.clone())];
        let mut said = Summary { phase: Phase::Terminating, clusters: clusters.into() };
        unseen(&mut said, ["east".to_owned(), "north".to_owned()]);
        assert_eq!(said.clusters["north"], north);
        let required = said.clusters["east"].iter().find(|verdict| verdict.type_ == OFFLOADING_REQUIRED);
        assert_eq!(required.unwrap().status, Status::True);
        unanswered(&mut said, &["east".to_owned()]);
        let reasons: Vec<_> = said.clusters["east"].iter().map(|verdict| verdict.reason.as_str()).collect();
        assert_eq!(reasons, [SELECTED, HOST_DOES_NOT_ANSWER], "the same when that takes long");
    }

    #[test]
    fn a_host_that_does_not_answer_is_named_with_what_helps() {
        let clusters = [
            ("east".to_owned(), vec![]),
            ("north".to_owned(), vec![Verdict::new(READY, Status::False, TERMINATING, "")]),
        ];
        let mut said = Summary { phase: Phase::Terminating, clusters: clusters.into() };
        unanswered(&mut said, &["east".to_owned(), "north".to_owned()]);
        let [east] = &said.clusters["east"][..] else { panic!("{said:?}") };
        assert_eq!(east.reason, HOST_DOES_NOT_ANSWER);
        assert!(east.message.contains("freeport offload use east --remove"));
        assert_eq!(said.clusters["north"][0].reason, TERMINATING);
    }

    #[test]
    fn that_it_works_is_news_after_a_trouble() {
        assert!(!had_trouble(&NamespaceOffloadingStatus::default()));
        assert!(!had_trouble(&status("InProgress", &[("east", "Creating")])));
        assert!(had_trouble(&status("InProgress", &[("east", "HostSilent")])));
        assert!(had_trouble(&status("SomeFailed", &[])) && had_trouble(&status("NoClusterSelected", &[])));
    }
}
