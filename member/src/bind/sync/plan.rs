//! What to do next about one object: pure. A pass does one step after the other until there is nothing more to do.

use api::bind::{
    label::{FINALIZER, PROVIDER_NAMESPACE, PROVIDER_UID},
    mapping::{Mapping, NoPlace, Place, Strategy},
};
use kit::write::holds;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::{
    copy::{Whose, copy, whose},
    entry::{Here, Pair, There},
};

use crate::bind::contract::{ClusterNamespace, MANAGER};

/// What holds for all objects of one API of one contract.
pub(crate) struct Rules<'a> {
    pub(crate) strategy: Strategy,
    pub(crate) cluster_namespace: &'a ClusterNamespace,
    /// Nothing new goes up: the provider takes the API back.
    pub(crate) is_ending: bool,
    /// Copies stay when their objects go.
    pub(crate) orphan: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Nothing, as long as nothing changes.
    Rest,
    /// An APIServiceNamespace for this Namespace.
    Assign(String),
    /// The finalizer onto the object.
    Hold,
    /// The copy, at this place.
    Apply(Place, Value),
    /// The status onto the object, or off it.
    Status(Option<Value>),
    /// These annotations onto the object.
    Annotate(Map<String, Value>),
    /// The copy goes.
    Delete,
    /// The finalizer off the object.
    Release,
    /// It cannot be done.
    Fail(Problem),
}

/// Why an object is not in step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("its name would have {0} characters at the provider, where 253 are allowed")]
    NameTooLong(usize),
    #[error("the object at its place at the provider belongs to consumer {0}")]
    OwnedByAnother(String),
    #[error(
        "there is an object at its place at the provider that no consumer made; annotation multicluster.freeport.dev/adopt=true there \
         would let it be taken over"
    )]
    NotOurs,
    #[error("it does not decode: {0}")]
    Undecodable(String),
    #[error("{0}")]
    Refused(String),
}

impl Problem {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NameTooLong(_) => "NameTooLong",
            Self::OwnedByAnother(_) => "OwnedByAnother",
            Self::NotOurs => "NotOurs",
            Self::Undecodable(_) => "Undecodable",
            Self::Refused(_) => "Refused",
        }
    }
}

/// The next step for the object at `place`. `assigned` is the provider's Namespace for that of the object.
pub(crate) fn next(place: &Place, pair: &Pair, rules: &Rules<'_>, assigned: Option<&str>) -> Step {
    let cns = rules.cluster_namespace.name.as_str();
    let there = pair.there.as_deref();
    let there = there.filter(|_| !rules.orphan || pair.here.as_ref().is_none_or(|here| !is_going(here)));
    let Some(here) = pair.here.as_deref() else {
        return if rules.orphan { Step::Rest } else { orphan(there, cns) };
    };
    let is_held = here.finalizers().iter().any(|held| held == FINALIZER);
    let is_going = is_going(here);
    if is_going && !is_held {
        return there.filter(|copy| is_copy_of(copy, here, cns)).map_or(Step::Rest, delete);
    }
    let mapping = Mapping { strategy: rules.strategy, cluster_namespace: cns };
    let target = match mapping.there(place, |_| assigned) {
        Ok(target) => target,
        // Nothing goes up any more, and where there is no Namespace for it there is no copy.
        Err(NoPlace::Pending) if rules.is_ending => {
            return if is_going { Step::Release } else { Step::Rest };
        }
        Err(NoPlace::Pending) => return Step::Assign(place.namespace.clone().unwrap_or_default()),
        Err(NoPlace::NameTooLong(_)) if is_going => return Step::Release,
        Err(NoPlace::NameTooLong(length)) => return Step::Fail(Problem::NameTooLong(length)),
        Err(NoPlace::WrongScope) => return Step::Rest,
    };
    let theirs = there.map(|there| whose(there, Some(here), cns));
    if is_going {
        return match (there, theirs) {
            (Some(there), Some(Whose::Ours)) => delete(there),
            _ => Step::Release,
        };
    }
    match theirs {
        Some(Whose::Anothers(name)) => return Step::Fail(Problem::OwnedByAnother(name)),
        Some(Whose::Nobodys) => return Step::Fail(Problem::NotOurs),
        Some(Whose::Ours) | None => {}
    }
    if let Some(error) = here.error.as_ref().or(there.and_then(|there| there.error.as_ref())) {
        return Step::Fail(Problem::Undecodable(error.clone()));
    }
    if there.is_none() && rules.is_ending {
        return Step::Rest;
    }
    if !is_held {
        return Step::Hold;
    }
    if there.is_some_and(|there| there.metadata.deletion_timestamp.is_some()) {
        return Step::Rest;
    }
    let want = copy(here, there, rules.strategy, rules.cluster_namespace);
    match there {
        None => Step::Apply(target, want),
        Some(there) if !rules.is_ending && !is_applied(pair, there, &want) => Step::Apply(target, want),
        Some(there) => down(pair, there),
    }
}

/// A copy without its object, of which nobody saw that it went.
fn orphan(there: Option<&There>, cns: &str) -> Step {
    there
        .filter(|there| whose(there, None, cns) == Whose::Ours && is_of_somebody(there))
        .map_or(Step::Rest, delete)
}

fn is_going(here: &Here) -> bool {
    here.metadata.deletion_timestamp.is_some()
}

fn is_of_somebody(there: &There) -> bool {
    there.annotations().get(api::bind::label::CONSUMER_UID).is_some_and(|uid| !uid.is_empty())
}

fn is_copy_of(there: &There, here: &Here, cns: &str) -> bool {
    let says = there.annotations().get(api::bind::label::CONSUMER_UID);
    whose(there, None, cns) == Whose::Ours && says.is_some() && says == here.uid().as_ref()
}

/// One that is going already is waited for.
fn delete(there: &There) -> Step {
    if there.metadata.deletion_timestamp.is_some() { Step::Rest } else { Step::Delete }
}

fn is_applied(pair: &Pair, there: &There, want: &Value) -> bool {
    let as_it_became =
        pair.applied.as_ref().is_some_and(|(sent, became)| sent == want && *became == Pair::essence(there));
    as_it_became || holds(there, &there.content, want, MANAGER)
}

/// What comes back from the provider.
fn down(pair: &Pair, there: &There) -> Step {
    let Some(here) = &pair.here else { return Step::Rest };
    let (want, have) = (there.content.get("status"), here.content.get("status"));
    let is_said =
        pair.said.as_ref().is_some_and(|(sent, became)| sent.as_ref() == want && became.as_ref() == have);
    if want != have && !is_said {
        return Step::Status(want.cloned());
    }
    let says = [
        (PROVIDER_NAMESPACE, there.namespace().unwrap_or_default()),
        (PROVIDER_UID, there.uid().unwrap_or_default()),
    ];
    let differs = |(key, value): &(&str, String)| here.annotations().get(*key) != Some(value);
    let missing: Map<_, _> =
        says.into_iter().filter(differs).map(|(key, value)| (key.to_owned(), json!(value))).collect();
    if missing.is_empty() { Step::Rest } else { Step::Annotate(missing) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::bind::label::{CLUSTER_NAMESPACE, CONSUMER_UID};

    use super::*;

    const CNS: &str = "kube-bind-37p3oxx6sh4fd";

    fn pair(here: Option<Value>, there: Option<Value>) -> Pair {
        Pair {
            here: here.map(|here| Arc::new(serde_json::from_value(here).unwrap())),
            there: there.map(|there| Arc::new(serde_json::from_value(there).unwrap())),
            ..Pair::default()
        }
    }

    fn step(pair: &Pair) -> Step {
        step_of(pair, Strategy::Namespaced, Some("kube-bind-37p3oxx6sh4fd-team1"), "foo")
    }

    fn step_of(pair: &Pair, strategy: Strategy, assigned: Option<&str>, name: &str) -> Step {
        let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
        let rules =
            Rules { strategy, cluster_namespace: &cluster_namespace, is_ending: false, orphan: false };
        let namespace = (strategy == Strategy::Namespaced).then(|| "team1".to_owned());
        next(&Place { namespace, name: name.into() }, pair, &rules, assigned)
    }

    fn live(more: Value) -> Value {
        let mut object =
            json!({"metadata": {"name": "foo", "namespace": "team1", "uid": "u1"}, "spec": {"size": "l"}});
        merge(&mut object, more);
        object
    }

    fn held(more: Value) -> Value {
        let mut object = live(json!({"metadata": {"finalizers": [FINALIZER]}}));
        merge(&mut object, more);
        object
    }

    fn merge(into: &mut Value, more: Value) {
        match (into, more) {
            (Value::Object(into), Value::Object(more)) => {
                more.into_iter()
                    .for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
            }
            (into, more) => *into = more,
        }
    }

    fn going() -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}})
    }

    fn copied(more: Value) -> Value {
        let annotations =
            json!({CLUSTER_NAMESPACE: CNS, "kube-bind.io/consumer-namespace": "team1", CONSUMER_UID: "u1"});
        let owned: Map<_, _> =
            annotations.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        let fields = json!({"f:metadata": {"f:annotations": owned}, "f:spec": {"f:size": {}}});
        let mut object = json!({
            "metadata": {"name": "foo", "namespace": "there", "uid": "p1", "annotations": annotations,
                "managedFields": [{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}]},
            "spec": {"size": "l"},
        });
        merge(&mut object, more);
        object
    }

    #[test]
    fn m7_without_a_namespace_at_the_provider_one_is_asked_for() {
        let pair = pair(Some(live(json!({}))), None);
        assert_eq!(step_of(&pair, Strategy::Namespaced, None, "foo"), Step::Assign("team1".into()));
    }

    #[test]
    fn b11_when_the_export_ends_no_namespace_is_asked_for_and_nothing_waits_for_one() {
        let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
        let rules = Rules {
            strategy: Strategy::Namespaced,
            cluster_namespace: &cluster_namespace,
            is_ending: true,
            orphan: false,
        };
        let at = Place { namespace: Some("team1".into()), name: "foo".into() };
        assert_eq!(next(&at, &pair(Some(live(json!({}))), None), &rules, None), Step::Rest);
        assert_eq!(next(&at, &pair(Some(held(going())), None), &rules, None), Step::Release);
    }

    #[test]
    fn m8_a_name_that_is_too_long_fails_before_anything_is_written() {
        let name = "n".repeat(230);
        let object = json!({"metadata": {"name": name, "uid": "u1"}});
        let fails = step_of(&pair(Some(object), None), Strategy::Prefixed, None, &name);
        assert_eq!(fails, Step::Fail(Problem::NameTooLong(254)));
    }

    #[test]
    fn the_finalizer_comes_before_the_copy() {
        assert_eq!(step(&pair(Some(live(json!({}))), None)), Step::Hold);
        let Step::Apply(place, want) = step(&pair(Some(held(json!({}))), None)) else {
            panic!("not applied")
        };
        assert_eq!(place, Place::within("kube-bind-37p3oxx6sh4fd-team1", "foo"));
        assert_eq!(want["spec"], json!({"size": "l"}));
    }

    #[test]
    fn t1_t2_t8_t16_what_differs_is_written_and_nothing_else() {
        let applied =
            |here: Value, there: Value| matches!(step(&pair(Some(here), Some(there))), Step::Apply(..));
        assert!(applied(held(json!({"spec": {"size": "s"}})), copied(json!({}))));
        assert!(applied(held(json!({"spec": {"size": "l", "more": null}})), copied(json!({}))));
        let taken_out = json!({"metadata": {"managedFields": [{"manager": MANAGER, "operation": "Apply",
            "fieldsV1": {"f:spec": {"f:size": {}, "f:gone": {}}}}]}, "spec": {"gone": 1}});
        assert!(applied(held(json!({})), copied(taken_out)), "what the consumer takes out goes");
        assert!(!applied(held(json!({})), copied(json!({"spec": {"theirs": 1}}))), "what others add stays");
        let settled = json!({"metadata": {"annotations": {PROVIDER_NAMESPACE: "there", PROVIDER_UID: "p1"}}});
        assert_eq!(step(&pair(Some(held(settled.clone())), Some(copied(json!({}))))), Step::Rest);
        let phase = json!({"status": {"phase": "Ready"}});
        let down = step(&pair(Some(held(settled.clone())), Some(copied(phase.clone()))));
        assert_eq!(down, Step::Status(Some(json!({"phase": "Ready"}))));
        let mut both = settled;
        merge(&mut both, phase);
        assert_eq!(step(&pair(Some(held(both)), Some(copied(json!({}))))), Step::Status(None));
        assert!(matches!(step(&pair(Some(held(json!({}))), Some(copied(json!({}))))), Step::Annotate(_)));
    }

    #[test]
    fn what_the_other_side_does_not_keep_is_sent_once() {
        let here = held(
            json!({"spec": {"pruned": 1}, "metadata": {"annotations": {PROVIDER_NAMESPACE: "there", PROVIDER_UID: "p1"}}}),
        );
        let mut pair = pair(Some(here), Some(copied(json!({}))));
        let Step::Apply(_, want) = step(&pair) else { panic!("not applied") };
        pair.applied = Some((want, Pair::essence(pair.there.as_deref().unwrap())));
        assert_eq!(step(&pair), Step::Rest);
    }

    #[test]
    fn t13_t17_y4_what_is_anothers_or_going_is_left_alone() {
        let of = |more: Value| step(&pair(Some(held(json!({}))), Some(copied(more))));
        assert_eq!(of(going()), Step::Rest);
        let anothers =
            json!({"metadata": {"annotations": {CLUSTER_NAMESPACE: "B"}}, "status": {"phase": "secret"}});
        assert_eq!(of(anothers.clone()), Step::Fail(Problem::OwnedByAnother("B".into())));
        let nobodys = json!({"metadata": {"name": "foo", "uid": "p1"}});
        assert_eq!(step(&pair(Some(held(json!({}))), Some(nobodys.clone()))), Step::Fail(Problem::NotOurs));
        assert_eq!(step(&pair(None, Some(nobodys))), Step::Rest, "D1, T14");
        let gone = step(&pair(Some(held(going())), Some(copied(anothers.clone()))));
        assert_eq!(gone, Step::Release, "deleting ours does not delete theirs");
        assert_eq!(step(&pair(None, Some(copied(anothers)))), Step::Rest, "Y3");
    }

    #[test]
    fn x1_x2_x5_the_finalizer_stays_until_the_copy_is_gone() {
        let held_and_going = || Some(held(going()));
        assert_eq!(step(&pair(held_and_going(), Some(copied(json!({}))))), Step::Delete);
        assert_eq!(step(&pair(held_and_going(), Some(copied(going())))), Step::Rest);
        assert_eq!(step(&pair(held_and_going(), None)), Step::Release);
        assert_eq!(
            step(&pair(None, Some(copied(json!({}))))),
            Step::Delete,
            "somebody took the finalizer off"
        );
        let mut without = live(going());
        merge(&mut without, json!({"metadata": {"uid": "u2"}}));
        assert_eq!(step(&pair(Some(without), Some(copied(json!({}))))), Step::Rest, "it never had one");
    }

    #[test]
    fn x10_a_new_object_takes_the_copy_of_its_name_over() {
        let new = held(json!({"metadata": {"uid": "u2"}}));
        let Step::Apply(_, want) = step(&pair(Some(new), Some(copied(json!({}))))) else {
            panic!("not applied")
        };
        assert_eq!(want["metadata"]["annotations"][CONSUMER_UID], "u2");
    }
}
