//! Condition [`ACCEPTED`] of a Pod that is refused, at home or by its host: pure. A Pod that is not refused does not have it.

use api::offload::pod_status::{ACCEPTED, PodCondition};
use jiff::Timestamp;

/// The Pod is refused: since `now`, unless it already was.
pub(super) fn say(conditions: &mut Vec<PodCondition>, reason: &str, message: &str, now: Timestamp) {
    let before = conditions.iter().position(|condition| condition.type_ == ACCEPTED);
    let since = before.and_then(|at| conditions[at].last_transition_time.clone());
    let condition = PodCondition {
        type_: ACCEPTED.to_owned(),
        status: "False".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: since.or_else(|| Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
    };
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
}

/// Nothing is in its way any more.
pub(super) fn take_back(conditions: &mut Vec<PodCondition>) {
    conditions.retain(|condition| condition.type_ != ACCEPTED);
}
