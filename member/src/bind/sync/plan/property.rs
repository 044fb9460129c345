//! Whatever users and others do to an object and its copy, in any order and between any two steps: in the end both are as the last of it
//! says, a further pass does nothing, and what is not ours is as it was.

use std::sync::Arc;

use api::bind::label::{CLUSTER_NAMESPACE, CONSUMER_UID};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy as _, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
};

use super::*;

const CNS: &str = "kube-bind-37p3oxx6sh4fd";
const THERE: &str = "kube-bind-37p3oxx6sh4fd-team1";
/// Finalizer of somebody at the provider.
const OPERATOR: &str = "operator/f";
/// How uids of our copies begin.
const COPY: &str = "p";
/// More than any of it needs.
const STEPS: usize = 20;

/// What somebody does.
#[derive(Clone, Debug)]
enum Event {
    /// One pass goes one step.
    Step,
    /// A user creates the object, or sets a field of it, or takes it out.
    Set(usize, Option<u8>),
    /// A user deletes the object.
    Delete,
    /// The operator says something, or nothing.
    Status(Option<u8>),
    /// Somebody there changes a field of the copy.
    Edit(usize, u8),
    /// Somebody there deletes the copy.
    DeleteCopy,
    /// Somebody there takes our annotation off.
    TakeAnnotation,
    /// The operator holds the copy, or lets it go.
    Operator(bool),
    /// The konnector starts again: what it noted is lost.
    Restart,
}

fn event() -> impl proptest::strategy::Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Step),
        4 => (0..3_usize, proptest::option::of(0..3_u8)).prop_map(|(field, value)| Event::Set(field, value)),
        1 => Just(Event::Delete),
        2 => proptest::option::of(0..3_u8).prop_map(Event::Status),
        2 => (0..3_usize, 0..3_u8).prop_map(|(field, value)| Event::Edit(field, value)),
        1 => Just(Event::DeleteCopy),
        1 => Just(Event::TakeAnnotation),
        1 => any::<bool>().prop_map(Event::Operator),
        1 => Just(Event::Restart),
    ]
}

/// Two API servers, as far as one object is concerned.
#[derive(Clone, Debug, Default)]
struct World {
    here: Option<Value>,
    there: Option<Value>,
    assigned: bool,
    applied: Option<(Value, super::super::entry::Essence)>,
    said: Option<(Option<Value>, Option<Value>)>,
    made: u32,
}

impl World {
    fn next(&self) -> Step {
        let cluster_namespace = ClusterNamespace { name: CNS.into(), uid: "n1".into() };
        let rules = Rules {
            strategy: Strategy::Namespaced,
            cluster_namespace: &cluster_namespace,
            binding_uid: "b1",
            is_ending: false,
            orphan: false,
            is_unserved: false,
            gaps: Gaps::default(),
            not_assigned: None,
        };
        let place = Place::within("team1", "foo");
        next(&place, &self.pair(), &rules, self.assigned.then_some(THERE))
    }

    fn pair(&self) -> Pair {
        Pair {
            here: self.here.clone().map(|here| Arc::new(serde_json::from_value(here).unwrap())),
            there: self.there.clone().map(|there| Arc::new(serde_json::from_value(there).unwrap())),
            applied: self.applied.clone().filter(|_| self.there.is_some()),
            said: self.said.clone().filter(|_| self.here.is_some()),
            ..Pair::default()
        }
    }

    /// Goes one step; whether there was one.
    fn step(&mut self) -> bool {
        match self.next() {
            Step::Rest | Step::Fail(_) => return false,
            Step::Assign(_) => self.assigned = true,
            Step::Hold => self.here.as_mut().unwrap()["metadata"]["finalizers"] = json!([FINALIZER]),
            Step::TakeOver(fields) => {
                self.there.as_mut().unwrap()["metadata"]["managedFields"] = json!(fields)
            }
            Step::Apply(target, want) => {
                assert_eq!(target, Place::within(THERE, "foo"));
                self.apply(&want);
                let became = Pair::essence(self.pair().there.as_deref().unwrap());
                self.applied = Some((want, became));
            }
            Step::Status(status) => {
                let here = self.here.as_mut().unwrap().as_object_mut().unwrap();
                match status.clone() {
                    Some(status) => here.insert("status".into(), status),
                    None => here.remove("status"),
                };
                self.said = Some((status.clone(), status));
            }
            Step::Annotate(annotations) => {
                let here = &mut self.here.as_mut().unwrap()["metadata"]["annotations"];
                annotations.into_iter().for_each(|(key, value)| here[key] = value);
            }
            Step::Delete => {
                let there = self.there.as_ref().unwrap();
                assert!(there["metadata"]["uid"].as_str().unwrap().starts_with(COPY), "not ours: {there}");
                self.delete_copy();
            }
            Step::Release | Step::LetGo => {
                let here = self.here.as_mut().unwrap();
                here["metadata"]["finalizers"] = json!([]);
                let is_going = !here["metadata"]["deletionTimestamp"].is_null();
                self.here.take_if(|_| is_going);
            }
        }
        true
    }

    /// As an API server applies: our fields become just these, and those of others stay.
    fn apply(&mut self, want: &Value) {
        let name = self.new_uid(COPY);
        let there = self.there.get_or_insert_with(|| {
            json!({"metadata": {"name": "foo", "namespace": THERE, "uid": name, "annotations": {}}, "spec": {}})
        });
        let ours = there["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let wanted = want["spec"].as_object().cloned().unwrap_or_default();
        let spec = there["spec"].as_object_mut().unwrap();
        spec.retain(|field, _| !ours.contains_key(&format!("f:{field}")));
        spec.extend(wanted.clone());
        let annotations = want["metadata"]["annotations"].as_object().unwrap().clone();
        let named = |all: &Map<String, Value>| {
            all.keys().map(|key| (format!("f:{key}"), json!({}))).collect::<Map<_, _>>()
        };
        let fields = json!({"f:spec": named(&wanted), "f:metadata": {"f:annotations": named(&annotations)}});
        for (key, value) in annotations {
            there["metadata"]["annotations"][key] = value;
        }
        there["metadata"]["managedFields"] =
            json!([{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}]);
    }

    fn delete_copy(&mut self) {
        let Some(there) = &mut self.there else { return };
        match there["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) {
            true => there["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z"),
            false => self.there = None,
        }
    }

    fn new_uid(&mut self, of: &str) -> String {
        self.made += 1;
        format!("{of}{}", self.made)
    }

    fn happens(&mut self, event: &Event) {
        let uid = self.new_uid("u");
        match (event, &mut self.here, &mut self.there) {
            (Event::Step, ..) => drop(self.step()),
            (Event::Set(field, value), here, _) => {
                let here = here.get_or_insert_with(|| {
                    json!({"metadata": {"name": "foo", "namespace": "team1", "uid": uid, "annotations": {}}, "spec": {"size": "l"}})
                });
                put(&mut here["spec"], *field, *value);
            }
            (Event::Delete, Some(here), _) => {
                here["metadata"]["deletionTimestamp"] = json!("2026-11-01T12:00:00Z");
                let is_held = here["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
                self.here.take_if(|_| !is_held);
            }
            (Event::Status(value), _, Some(there)) => {
                put_into(there, "status", value.map(|value| json!({ "v": value })))
            }
            (Event::Edit(field, value), _, Some(there)) => put(&mut there["spec"], *field, Some(*value)),
            (Event::DeleteCopy, ..) => self.delete_copy(),
            (Event::TakeAnnotation, _, Some(there)) => {
                put_into(&mut there["metadata"]["annotations"], CLUSTER_NAMESPACE, None);
            }
            (Event::Operator(true), _, Some(there)) if there["metadata"]["deletionTimestamp"].is_null() => {
                there["metadata"]["finalizers"] = json!([OPERATOR]);
            }
            (Event::Operator(false), _, Some(there)) => {
                there["metadata"]["finalizers"] = json!([]);
                let is_going = !there["metadata"]["deletionTimestamp"].is_null();
                self.there.take_if(|_| is_going);
            }
            (Event::Restart, ..) => (self.applied, self.said) = (None, None),
            _ => {}
        }
    }

    fn settle(&mut self) {
        for _ in 0..STEPS {
            // An operator lets go in the end.
            self.happens(&Event::Operator(false));
            if !self.step() {
                return;
            }
        }
        panic!("it does not end: {self:?} {:?}", self.next());
    }
}

fn put(spec: &mut Value, field: usize, value: Option<u8>) {
    put_into(spec, ["a", "b", "c"][field], value.map(|value| json!(value)));
}

fn put_into(object: &mut Value, field: &str, value: Option<Value>) {
    let object = object.as_object_mut().unwrap();
    match value {
        Some(value) => object.insert(field.to_owned(), value),
        None => object.remove(field),
    };
}

proptest! {
    #[test]
    fn whatever_happens_both_sides_agree_in_the_end(events in vec(event(), 0..60)) {
        let mut world = World::default();
        events.iter().for_each(|event| world.happens(event));
        world.settle();
        prop_assert_eq!(world.next(), Step::Rest);
        let mut restarted = world.clone();
        restarted.happens(&Event::Restart);
        prop_assert_eq!(restarted.next(), Step::Rest, "also without what it noted");
        let Some(here) = &world.here else {
            // A copy whose object went while it had lost the annotation that says whose it is, stays.
            let is_nobodys = |there: &Value| there["metadata"]["annotations"][CLUSTER_NAMESPACE].is_null();
            prop_assert!(world.there.as_ref().is_none_or(is_nobodys), "{:?}", world.there);
            return Ok(());
        };
        let there = world.there.as_ref().unwrap();
        for (field, value) in here["spec"].as_object().unwrap() {
            prop_assert_eq!(&there["spec"][field], value, "{}", field);
        }
        prop_assert_eq!(&there["metadata"]["annotations"][CONSUMER_UID], &here["metadata"]["uid"]);
        prop_assert_eq!(here.get("status"), there.get("status"));
        prop_assert_eq!(&here["metadata"]["finalizers"], &json!([FINALIZER]));
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is(events in vec(event(), 0..60), is_anothers in any::<bool>()) {
        let annotations = if is_anothers { json!({CLUSTER_NAMESPACE: "another"}) } else { json!({}) };
        let foreign = json!({"metadata": {"name": "foo", "namespace": THERE, "uid": "theirs", "annotations": annotations}, "spec": {"a": 9}});
        let mut world = World { there: Some(foreign.clone()), ..World::default() };
        let of_users = |event: &&Event| matches!(event, Event::Step | Event::Set(..) | Event::Delete | Event::Restart);
        events.iter().filter(of_users).for_each(|event| world.happens(event));
        for _ in 0..STEPS {
            world.step();
        }
        prop_assert_eq!(world.there, Some(foreign));
        prop_assert!(world.here.is_none_or(|here| here["metadata"]["deletionTimestamp"].is_null() && here.get("status").is_none()));
    }
}
