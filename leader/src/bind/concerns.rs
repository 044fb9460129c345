//! Who has to look again when something changes: pure.
//!
//! A consumer can change what is in its cluster namespace as often as it likes. So each change wakes whoever uses what has changed, and a
//! status that a konnector writes wakes nobody, or the one that reads it.

use api::bind::{
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceNamespace},
    label,
};
use kube::{Resource, ResourceExt};

use super::{
    key::Key,
    known::{Known, Place},
};

/// Whom a change concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Concerns {
    /// Nobody.
    Nobody,
    /// Everybody: what there is was told anew.
    All,
    /// Whoever asks for something: what is offered is something else.
    Offer,
    /// Who asks for a contract by this BindableResourcesRequest.
    Ask(String),
    /// A request.
    Request(Key),
    /// An export alone.
    Export(Key),
    /// What follows from the exports of a cluster namespace: requests that are judged by them, and rights.
    Exports(String),
    /// An APIServiceNamespace.
    Space(Key),
    /// A Namespace that stands for those of consumers, by its name and who it was made for.
    Place(String, Option<Key>),
    /// The account and the credential of a cluster namespace.
    Credential(String),
    /// All that is of a cluster namespace, and who asks for one.
    Contract(String),
}

impl Concerns {
    /// Whether there may be another number of contracts, or of those that use an API.
    pub(super) fn may_change_contracts(&self) -> bool {
        matches!(self, Self::All | Self::Contract(_) | Self::Exports(_))
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Applied,
    Removed,
}

/// A ClusterBinding: a konnector says again and again that it is there. The leader only makes it.
pub(super) fn of_cluster_binding<P: Resource>(object: &P, event: Event) -> Concerns {
    match event {
        Event::Applied => Concerns::Nobody,
        Event::Removed => Concerns::Credential(Key::of(object).cluster_namespace),
    }
}

/// An export. `before` is what was known of it.
pub(super) fn of_export<P: Resource>(
    before: Option<&APIServiceExport>,
    now: Option<&APIServiceExport>,
    object: &P,
    event: Event,
) -> Concerns {
    let key = Key::of(object);
    let is_same = |before: &APIServiceExport, now: &APIServiceExport| {
        before.uid() == now.uid()
            && before.spec == now.spec
            && before.metadata.deletion_timestamp == now.metadata.deletion_timestamp
    };
    match (before, now) {
        (Some(before), Some(now)) if event == Event::Applied && is_same(before, now) => Concerns::Export(key),
        _ => Concerns::Exports(key.cluster_namespace),
    }
}

/// A BoundSchema: its status is the konnector's, and nobody reads it here.
pub(super) fn of_schema<P: Resource>(
    before: Option<&BoundSchema>,
    now: Option<&BoundSchema>,
    object: &P,
    event: Event,
) -> Concerns {
    match (before, now) {
        (Some(before), Some(now)) if event == Event::Applied && before.spec == now.spec => Concerns::Nobody,
        _ => Concerns::Exports(Key::of(object).cluster_namespace),
    }
}

/// A cluster namespace, or a Namespace of consumers.
pub(super) fn of_place(place: &Place) -> Concerns {
    let name = place.name_any();
    if place.labels().get(label::BIND).is_some_and(|value| value == label::CONTRACT) {
        return Concerns::Contract(name);
    }
    Concerns::Place(name, Key::made_for(place))
}

/// The requests that a change concerns. One that is gone leaves room for another one.
pub(super) fn requests(concerns: &Concerns, known: &Known) -> Vec<Key> {
    let all = &known.requests;
    match concerns {
        Concerns::All => all.iter().map(Key::of).chain(all.all_odd()).collect(),
        Concerns::Offer => all.iter().map(Key::of).collect(),
        Concerns::Contract(of) | Concerns::Exports(of) => {
            all.within(of).map(Key::of).chain(all.next(of)).collect()
        }
        Concerns::Request(key) => [key.clone()].into_iter().chain(all.next(&key.cluster_namespace)).collect(),
        _ => Vec::new(),
    }
}

/// The APIServiceNamespaces that a change concerns. One that is gone leaves room for another one.
pub(super) fn spaces(concerns: &Concerns, known: &Known) -> Vec<Key> {
    let all = &known.namespaces;
    match concerns {
        Concerns::All => all.iter().map(Key::of).collect(),
        Concerns::Contract(of) | Concerns::Exports(of) => {
            all.within(of).map(Key::of).chain(all.next(of)).collect()
        }
        Concerns::Space(key) => [key.clone()].into_iter().chain(all.next(&key.cluster_namespace)).collect(),
        Concerns::Place(place, made_for) => {
            let is_in = |space: &&APIServiceNamespace| assigned(space).unwrap_or(&space.name_any()) == place;
            known.namespaces.iter().filter(is_in).map(Key::of).chain(made_for.clone()).collect()
        }
        _ => Vec::new(),
    }
}

fn assigned(space: &APIServiceNamespace) -> Option<&str> {
    space.status.as_ref()?.namespace.as_deref().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use api::bind::export::APIServiceExportRequest;
    use kit::objects::Change;
    use serde_json::{Value, json};

    use super::*;
    use crate::bind::lean::{Lean, Written};

    fn export(status: &str, isolation: &str, deleted: bool) -> APIServiceExport {
        let deleted = deleted.then_some("2026-01-01T00:00:00Z");
        let condition = json!({"type": "Connected", "status": status, "lastTransitionTime": null});
        serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": "cns", "deletionTimestamp": deleted},
            "spec": {"resources": [], "informerScope": "Namespaced", "isolation": isolation}, "status": {"conditions": [condition]},
        }))
        .unwrap()
    }

    fn schema(status: &Value, plural: &str) -> BoundSchema {
        serde_json::from_value(json!({
            "metadata": {"name": "m.g", "namespace": "cns"}, "status": status,
            "spec": {"informerScope": "Namespaced", "group": "g", "names": {"plural": plural, "kind": "M"}, "scope": "Namespaced", "versions": []},
        }))
        .unwrap()
    }

    #[test]
    fn what_a_konnector_says_wakes_nobody_else() {
        let binding = schema(&json!({}), "m");
        assert_eq!(of_cluster_binding(&binding, Event::Applied), Concerns::Nobody);
        assert_eq!(of_cluster_binding(&binding, Event::Removed), Concerns::Credential("cns".into()));
        let said = |before: &APIServiceExport, now: &APIServiceExport| {
            of_export(Some(before), Some(now), now, Event::Applied)
        };
        let before = export("False", "None", false);
        let own = Concerns::Export(Key { cluster_namespace: "cns".into(), name: "x".into() });
        assert_eq!(said(&before, &export("True", "None", false)), own);
        let whole = Concerns::Exports("cns".into());
        assert_eq!(said(&before, &export("False", "None", true)), whole);
        assert_eq!(said(&before, &export("False", "Prefixed", false)), whole);
        assert_eq!(of_export(Some(&before), Some(&before), &before, Event::Removed), whole);
        let (had, says) = (schema(&json!({}), "m"), schema(&json!({"storedVersions": ["v1"]}), "m"));
        assert_eq!(of_schema(Some(&had), Some(&says), &says, Event::Applied), Concerns::Nobody);
        assert_eq!(of_schema(Some(&had), Some(&schema(&json!({}), "n")), &had, Event::Applied), whole);
        assert_eq!(of_schema(None, Some(&had), &had, Event::Applied), whole);
    }

    #[test]
    fn a_namespace_wakes_all_that_have_their_objects_in_it_and_those_that_wait_for_it() {
        let mut known = Known::default();
        for (contract, name, status) in
            [("a", "team1", "team1"), ("b", "team1", "team1"), ("c", "team1", ""), ("d", "team1", "d-team1")]
        {
            let space = json!({"metadata": {"name": name, "namespace": contract}, "spec": {}, "status": {"namespace": status}});
            known.namespaces.change(Change::Apply(serde_json::from_value(space).unwrap()));
        }
        let key = |contract: &str| Key { cluster_namespace: contract.into(), name: "team1".into() };
        let of = |concerns: &Concerns| {
            let mut keys: Vec<_> =
                spaces(concerns, &known).into_iter().map(|k| k.cluster_namespace).collect();
            keys.sort();
            keys.dedup();
            keys.concat()
        };
        assert_eq!(of(&Concerns::Place("team1".into(), Some(key("gone")))), "abcgone");
        assert_eq!(of(&Concerns::Space(key("d"))), "d");
        assert_eq!(of(&Concerns::Contract("b".into())), "b");
        assert_eq!(of(&Concerns::Offer), "");
    }

    #[test]
    fn contracts_are_counted_when_there_may_be_others() {
        let key = || Key { cluster_namespace: "cns".into(), name: "x".into() };
        for counts in [Concerns::All, Concerns::Contract("cns".into()), Concerns::Exports("cns".into())] {
            assert!(counts.may_change_contracts(), "{counts:?}");
        }
        for same in [
            Concerns::Nobody,
            Concerns::Export(key()),
            Concerns::Place("team1".into(), None),
            Concerns::Space(key()),
        ] {
            assert!(!same.may_change_contracts(), "{same:?}");
        }
    }

    #[test]
    fn a_request_that_goes_wakes_one_that_was_left_out() {
        let request = |n: usize| -> Lean<APIServiceExportRequest> {
            let metadata = json!({"name": format!("r{n:03}"), "namespace": "cns"});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"resources": []}})).unwrap()
        };
        let mut known = Known::default();
        known
            .requests
            .change(Change::Reset((0..APIServiceExportRequest::QUOTA.records + 2).map(request).collect()));
        let gone = Concerns::Request(Key::of(&request(0)));
        assert_eq!(requests(&gone, &known).len(), 1, "there is no room");
        known.requests.change(Change::Remove(request(0)));
        let next = Key::of(&request(APIServiceExportRequest::QUOTA.records));
        assert_eq!(requests(&gone, &known)[1..], [next]);
    }
}
