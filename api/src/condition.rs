//! Setting a condition: `lastTransitionTime` moves only when the status does (rule R-16).
//!
//! Two shapes are in use: Kubernetes' `metav1.Condition` on kinds of the MCS API, and Antrea's looser one, all of whose
//! fields are optional, on Antrea's kinds.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// What a condition says, without the times and generations that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which question is answered, for example `Valid`.
    pub type_: &'static str,
    /// The answer.
    pub status: Status,
    /// One CamelCase word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// Answer of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Yes.
    True,
    /// No.
    False,
    /// Not known yet, or not any more.
    Unknown,
}

impl Status {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }
}

impl Verdict {
    /// Puts the parts together.
    pub fn new(
        type_: &'static str,
        status: Status,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { type_, status, reason: reason.into(), message: message.into() }
    }
}

/// The conditions that say `verdicts` about generation `observed`; `have` lends the times of those whose status stays.
///
/// Types in `have` that are not among `verdicts` belong to other writers and are left out: what we apply is ours alone.
pub fn conditions(
    verdicts: &[Verdict],
    have: &[Condition],
    observed: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    let since = |verdict: &Verdict| {
        have.iter()
            .find(|c| c.type_ == verdict.type_ && c.status == verdict.status.as_str())
            .map_or_else(|| now.clone(), |c| c.last_transition_time.clone())
    };
    verdicts
        .iter()
        .map(|verdict| Condition {
            type_: verdict.type_.into(),
            status: verdict.status.as_str().into(),
            reason: verdict.reason.clone(),
            message: verdict.message.clone(),
            last_transition_time: since(verdict),
            observed_generation: observed,
        })
        .collect()
}

/// Whether `have` already says all of `want` (both as [`conditions`] makes them).
pub fn already_said(have: &[Condition], want: &[Condition]) -> bool {
    want.iter().all(|w| have.contains(w))
}

/// Condition of Antrea's kinds: like Kubernetes' own, with every field optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AntreaCondition {
    /// Which question is answered.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// True, False or Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// One CamelCase word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl AntreaCondition {
    /// The condition that says `verdict`; the old one of that type in `have` lends its time if the status stays.
    pub fn of(verdict: &Verdict, have: &[AntreaCondition], now: &Time) -> Self {
        let status = Some(verdict.status.as_str().to_owned());
        let since = have
            .iter()
            .find(|c| c.type_.as_deref() == Some(verdict.type_) && c.status == status)
            .and_then(|c| c.last_transition_time.clone());
        Self {
            type_: Some(verdict.type_.into()),
            status,
            last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
            message: (!verdict.message.is_empty()).then(|| verdict.message.clone()),
            reason: (!verdict.reason.is_empty()).then(|| verdict.reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn r16_time_moves_only_with_the_status() {
        let valid = Verdict::new("Valid", Status::True, "Valid", "");
        let first = conditions(std::slice::from_ref(&valid), &[], Some(1), &at(10));
        assert_eq!(first[0].last_transition_time, at(10));
        assert!(already_said(&first, &conditions(&[valid], &first, Some(1), &at(20))));

        let other_reason = Verdict::new("Valid", Status::True, "Other", "m");
        let second = conditions(&[other_reason], &first, Some(2), &at(30));
        assert_eq!(second[0].last_transition_time, at(10));
        assert!(!already_said(&first, &second));

        let invalid = Verdict::new("Valid", Status::False, "NoService", "m");
        assert_eq!(conditions(&[invalid], &first, Some(2), &at(30))[0].last_transition_time, at(30));
    }

    #[test]
    fn antrea_conditions_keep_their_time_too() {
        let failed = Verdict::new("Failure", Status::False, "ConvergeFailure", "m");
        let first = AntreaCondition::of(&failed, &[], &at(1));
        assert_eq!(AntreaCondition::of(&failed, std::slice::from_ref(&first), &at(2)), first);
    }
}
