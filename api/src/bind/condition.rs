//! kube-bind's conditions: as Kubernetes', with a severity in place of a generation. A list of them is written as a whole.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Status;

/// The condition that sums up all others.
pub const READY: &str = "Ready";

/// What is said about one question.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which question is answered.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// How bad it is, where the status is `False`: `Error`, `Warning` or `Info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Since when just this is said. Go writes null where nothing is.
    #[schemars(required)]
    pub last_transition_time: Option<Time>,
    /// One CamelCase word for machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How bad it is that something is not so. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It does not work, and somebody has to act.
    Error,
    /// It does not work now, or not as it should.
    Warning,
    /// It is to be expected.
    Info,
}

impl Severity {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }
}

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which question is answered.
    pub type_: &'static str,
    /// The answer, and how bad it is.
    pub answer: Answer,
}

/// An answer, with a reason and a message unless it is yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is so.
    Yes,
    /// It is not so.
    No(Severity, &'static str, String),
    /// It is not known.
    Unknown(&'static str, String),
}

impl Verdict {
    /// Of this type.
    pub fn new(type_: &'static str, answer: Answer) -> Self {
        Self { type_, answer }
    }

    fn condition(&self, at: Timestamp) -> Condition {
        let of = |status: Status, severity: Option<Severity>, said: Option<(&str, &String)>| Condition {
            type_: self.type_.to_owned(),
            status: status.as_str().to_owned(),
            severity: severity.map(|severity| severity.as_str().to_owned()),
            last_transition_time: Some(Time(at)),
            reason: said.map(|(reason, _)| reason.to_owned()),
            message: said.map(|(_, message)| message.clone()).filter(|message| !message.is_empty()),
        };
        match &self.answer {
            Answer::Yes => of(Status::True, None, None),
            Answer::No(severity, reason, message) => {
                of(Status::False, Some(*severity), Some((reason, message)))
            }
            Answer::Unknown(reason, message) => of(Status::Unknown, None, Some((reason, message))),
        }
    }
}

/// The list that says `verdicts`, and of other types what `have` says; with [`READY`], which sums up all but the types in `aside`.
/// `Ready` comes first, the rest by type. What says the same keeps its time.
pub fn conditions(
    have: &[Condition],
    verdicts: &[Verdict],
    aside: &[&str],
    now: Timestamp,
) -> Vec<Condition> {
    // Go's clock has whole seconds here.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let is_said = |type_: &str| verdicts.iter().any(|verdict| verdict.type_ == type_);
    let others = have.iter().filter(|condition| condition.type_ != READY && !is_said(&condition.type_));
    let mut all: Vec<_> = others.cloned().collect();
    all.extend(verdicts.iter().map(|verdict| timed(verdict.condition(now), have)));
    all.sort_by(|one, other| one.type_.cmp(&other.type_));
    let summary = summary(all.iter().filter(|condition| !aside.contains(&condition.type_.as_str())));
    let ready =
        summary.map(|ready| timed(Condition { last_transition_time: Some(Time(now)), ..ready }, have));
    ready.into_iter().chain(all).collect()
}

/// With the time of the one in `have` that says the same.
fn timed(new: Condition, have: &[Condition]) -> Condition {
    let says = |old: &&Condition| {
        let fields = |c: &Condition| {
            let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
            (
                c.type_.clone(),
                c.status.clone(),
                or_empty(&c.severity),
                or_empty(&c.reason),
                or_empty(&c.message),
            )
        };
        fields(old) == fields(&new)
    };
    let since = have.iter().find(says).and_then(|old| old.last_transition_time.clone());
    Condition { last_transition_time: since.or(new.last_transition_time.clone()), ..new }
}

/// What the others say together: that of the worst, and of several the first. Nothing if there are none.
fn summary<'a>(all: impl Iterator<Item = &'a Condition>) -> Option<Condition> {
    let rank = |condition: &&Condition| match (condition.status.as_str(), condition.severity.as_deref()) {
        ("False", Some("Warning")) => 1,
        ("False", Some("Info")) => 2,
        ("False", _) => 0,
        ("True", _) => 3,
        _ => 4,
    };
    let worst = all.min_by_key(rank)?;
    let said = if worst.status == "True" { Condition::default() } else { worst.clone() };
    Some(Condition { type_: READY.to_owned(), status: worst.status.clone(), ..said })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: i64 = 1_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn no(type_: &'static str, severity: Severity) -> Verdict {
        Verdict::new(type_, Answer::No(severity, "Reason", format!("{type_} fails")))
    }

    fn shown(conditions: &[Condition]) -> Vec<String> {
        let words = |c: &Condition| {
            [Some(c.type_.clone()), Some(c.status.clone()), c.severity.clone(), c.message.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" ")
        };
        conditions.iter().map(words).collect()
    }

    #[test]
    fn ready_says_what_is_worst_and_comes_first() {
        let verdicts = [
            Verdict::new("Connected", Answer::Yes),
            no("Heartbeating", Severity::Warning),
            no("Zeta", Severity::Error),
            no("Alpha", Severity::Error),
            Verdict::new("SchemaInSync", Answer::Unknown("Pending", String::new())),
        ];
        let said = conditions(&[], &verdicts, &[], at(THEN));
        let want = ["Ready False Error Alpha fails", "Alpha False Error Alpha fails", "Connected True"];
        assert_eq!(shown(&said)[..3], want);
        let aside = conditions(&[], &verdicts, &["Alpha", "Zeta"], at(THEN));
        assert_eq!(shown(&aside)[0], "Ready False Warning Heartbeating fails");
    }

    #[test]
    fn what_is_not_known_never_outweighs_what_is_so() {
        let unknown = || Verdict::new("A", Answer::Unknown("Pending", "soon".into()));
        let said = conditions(&[], &[unknown(), Verdict::new("B", Answer::Yes)], &[], at(THEN));
        assert_eq!(shown(&said)[0], "Ready True");
        assert_eq!(shown(&conditions(&[], &[unknown()], &[], at(THEN)))[0], "Ready Unknown soon");
        assert_eq!(conditions(&[], &[], &[], at(THEN)), []);
    }

    #[test]
    fn a_time_moves_when_anything_else_does() {
        let first = conditions(&[], &[no("A", Severity::Error)], &[], at(THEN));
        let again = conditions(&first, &[no("A", Severity::Error)], &[], at(THEN + 5));
        assert_eq!(first, again);
        let other = conditions(&first, &[no("A", Severity::Warning)], &[], at(THEN + 5));
        assert_eq!(other[1].last_transition_time, Some(Time(at(THEN + 5))));
        let more = conditions(&first, &[Verdict::new("B", Answer::Yes)], &[], at(THEN + 5));
        assert_eq!(
            shown(&more),
            ["Ready False Error A fails", "A False Error A fails", "B True"],
            "of other writers"
        );
    }

    #[test]
    fn what_go_writes_is_read() {
        let read: Condition = serde_json::from_str(
            r#"{"type": "A", "status": "True", "severity": "", "lastTransitionTime": null}"#,
        )
        .unwrap();
        assert_eq!((read.severity.as_deref(), read.last_transition_time), (Some(""), None));
    }
}
