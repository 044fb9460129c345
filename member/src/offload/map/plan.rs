//! What becomes of each entry of a map, and of each twin: pure.

#[cfg(test)]
mod property;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    label as general,
    offload::{
        consent::{Refusal, allows},
        label,
        peer::Incoming,
        twin::check_twin,
    },
};
use kube::{ResourceExt, api::ObjectMeta};

use crate::offload::view::Namespace;

/// What entries are held against.
pub(super) struct Around<'a> {
    pub(super) home: &'a str,
    /// Name of the map.
    pub(super) record: &'a str,
    /// The consent to that home, or why there is none.
    pub(super) incoming: Result<&'a Incoming, Refusal>,
    /// The twins of that home by that map.
    pub(super) twins: &'a [Namespace],
    /// The Namespace of a name, whoever made it.
    pub(super) namespace: &'a dyn Fn(&str) -> Option<Namespace>,
    /// Namespaces of the system, as far as they matter to a name.
    pub(super) system: &'a dyn Fn(&str) -> BTreeSet<String>,
}

/// Why there is no twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What becomes of one entry, or of a twin that no entry wants.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Create(Namespace),
    /// It is there; what is ours to say of it is to be as wanted.
    Mend {
        have: Namespace,
        want: Namespace,
    },
    Refuse {
        twin: String,
        why: Refused,
    },
    /// It is being deleted, and has to be gone before it can be made anew.
    Wait {
        twin: String,
    },
    Delete(Namespace),
}

/// The steps towards `desired`, by the names of the Namespaces at home. A twin goes when its key does, and not because the key names another
/// one: a name never changes, so no decision of a home's user is behind that.
pub(super) fn plan(desired: &BTreeMap<String, String>, around: &Around<'_>) -> Vec<(String, Step)> {
    let (mut steps, mut has) = (Vec::new(), BTreeMap::new());
    for twin in around.twins {
        let Some((_, original)) = twin.twin_of(around.record) else { continue };
        // One that is going will be none.
        if !twin.is_going() {
            has.insert(original, twin.name_any());
        }
        if !desired.contains_key(original) {
            steps.push((original.to_owned(), Step::Delete(twin.clone())));
        }
    }
    let mut made = BTreeSet::new();
    for (namespace, twin) in desired {
        // Two Namespaces cannot have one twin.
        let step = match made.contains(twin) {
            true => {
                let home = around.home;
                refuse(twin, "NotOurs", format!("{twin} is the twin of another Namespace of cluster {home}"))
            }
            false => {
                let other = has.get(namespace.as_str()).map(String::as_str);
                entry((namespace, twin), other, around.twins.len() + made.len(), around)
            }
        };
        if matches!(step, Step::Create(_)) {
            made.insert(twin);
        }
        steps.push((namespace.clone(), step));
    }
    steps
}

fn refuse(twin: &str, reason: &'static str, message: String) -> Step {
    Step::Refuse { twin: twin.to_owned(), why: Refused { reason, message } }
}

fn not_ours(namespace: &str, twin: &str, around: &Around<'_>) -> Step {
    let home = around.home;
    refuse(
        twin,
        "NotOurs",
        format!("Namespace {twin} exists and was not made for {namespace} of cluster {home}"),
    )
}

/// `other`: the twin that the Namespace has, if this one is not there.
fn entry((namespace, twin): (&str, &str), other: Option<&str>, count: usize, around: &Around<'_>) -> Step {
    let there = (around.namespace)(twin);
    let is_its_own = |have: &&Namespace| have.twin_of(around.record) == Some((around.home, namespace));
    if let Some(have) = there.as_ref().filter(is_its_own) {
        return match have.is_going() {
            true => Step::Wait { twin: twin.to_owned() },
            false => Step::Mend { want: mended(have, around), have: have.clone() },
        };
    }
    if let Some(other) = other {
        let message = format!(
            "{namespace} has twin {other} here, whose name does not change; to have {twin}, end its offloading first"
        );
        return refuse(twin, "NameChanged", message);
    }
    // Before what else is here is told: who may bring nothing learns nothing of which names there are.
    let incoming = match around.incoming.clone() {
        Ok(incoming) => incoming,
        Err(error) => return refuse(twin, error.reason(), error.to_string()),
    };
    if there.is_some() {
        return not_ours(namespace, twin, around);
    }
    if let Err(error) = check_twin(twin, &(around.system)(twin)) {
        return refuse(twin, error.reason(), error.to_string());
    }
    match allows(incoming, around.home, namespace, twin, count) {
        Ok(()) => Step::Create(made(namespace, twin, around)),
        Err(error) => refuse(twin, error.reason(), error.to_string()),
    }
}

fn made(namespace: &str, twin: &str, around: &Around<'_>) -> Namespace {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let annotations =
        [pair(label::MANAGED_BY_NAMESPACE_MAP, around.record), pair(label::ORIGINAL_NAME, namespace)];
    let metadata = ObjectMeta {
        name: Some(twin.to_owned()),
        labels: Some(labels(around).collect()),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata }
}

/// The twin with its labels, and the level of Pod Security that is allowed now; without a consent it has the one that it had.
fn mended(have: &Namespace, around: &Around<'_>) -> Namespace {
    let mut want = have.clone();
    want.metadata.labels.get_or_insert_default().extend(labels(around));
    want
}

fn labels(around: &Around<'_>) -> impl Iterator<Item = (String, String)> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let security = around
        .incoming
        .as_ref()
        .ok()
        .map(|incoming| pair(label::POD_SECURITY, incoming.pod_security.as_str()));
    [pair(general::MANAGED_BY, general::FREEPORT), pair(label::REMOTE_CLUSTER_ID, around.home)]
        .into_iter()
        .chain(security)
}

#[cfg(test)]
mod tests {
    use api::offload::map::ENTRIES_MAX;
    use serde_json::json;

    use super::*;

    const RECORD: &str = "1.west.east";

    fn twin(name: &str, original: &str) -> Namespace {
        let around = around(None, &[], &|_| None);
        made(original, name, &around)
    }

    fn around<'a>(
        incoming: Option<&'a Incoming>,
        twins: &'a [Namespace],
        namespace: &'a dyn Fn(&str) -> Option<Namespace>,
    ) -> Around<'a> {
        let incoming = incoming.ok_or_else(|| Refusal::NotAccepted { home: "west".into() });
        Around { home: "west", record: RECORD, incoming, twins, namespace, system: &|_| BTreeSet::new() }
    }

    fn desired(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    fn reason(step: &Step) -> &'static str {
        match step {
            Step::Create(_) => "create",
            Step::Mend { have, want } if have == want => "stays",
            Step::Mend { .. } => "mend",
            Step::Refuse { why, .. } => why.reason,
            Step::Wait { .. } => "wait",
            Step::Delete(_) => "delete",
        }
    }

    /// What becomes of one entry where these Namespaces are there.
    fn becomes(entry: (&str, &str), incoming: Option<&Incoming>, there: &[Namespace]) -> &'static str {
        let namespace = |name: &str| there.iter().find(|n| n.name_any() == name).cloned();
        let steps = plan(&desired(&[entry]), &around(incoming, &[], &namespace));
        let [(_, step)] = &steps[..] else { panic!("{steps:?}") };
        reason(step)
    }

    #[test]
    fn an_entry_is_held_against_its_twin() {
        let consent = Incoming::default();
        let shop = ("shop", "shop-west");
        assert_eq!(becomes(shop, None, &[]), "NotAccepted");
        assert_eq!(becomes(shop, Some(&consent), &[]), "create");
        assert_eq!(becomes(("shop", "other"), Some(&consent), &[]), "NameNotAllowed");
        let any = Incoming { namespaces: vec!["*".into()], ..Incoming::default() };
        assert_eq!(becomes(("shop", "kube-system"), Some(&any), &[]), "NameReserved");
        assert_eq!(becomes(("shop", "default"), Some(&any), &[]), "NameReserved");
        assert_eq!(becomes(("shop", "default"), None, &[]), "NotAccepted");
        let ours = twin("shop-west", "shop");
        assert_eq!(
            becomes(shop, None, std::slice::from_ref(&ours)),
            "stays",
            "a consent that is withdrawn takes nothing away"
        );
        assert_eq!(
            becomes(shop, Some(&consent), std::slice::from_ref(&ours)),
            "mend",
            "the level of Pod Security"
        );
        let made = made("shop", "shop-west", &around(Some(&consent), &[], &|_| None));
        assert_eq!(becomes(shop, Some(&consent), &[made]), "stays");
        let mut unlabelled = ours.clone();
        unlabelled.metadata.labels = None;
        assert_eq!(becomes(shop, Some(&consent), &[unlabelled.clone()]), "NotOurs", "we never wrote it");
        unlabelled.metadata.managed_fields =
            serde_json::from_value(json!([{"manager": "freeport-member"}])).unwrap();
        assert_eq!(becomes(shop, None, &[unlabelled]), "mend", "somebody took its labels off");
        let mut going = ours.clone();
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-01T12:00:00Z")).unwrap();
        assert_eq!(becomes(shop, Some(&consent), &[going]), "wait");
        for foreign in [
            json!({"name": "shop-west"}),
            json!({"name": "shop-west", "labels": {"app.kubernetes.io/managed-by": "freeport"}}),
        ] {
            let foreign = serde_json::from_value(json!({"metadata": foreign})).unwrap();
            assert_eq!(becomes(shop, None, std::slice::from_ref(&foreign)), "NotAccepted", "it tells nobody");
            assert_eq!(becomes(shop, Some(&any), &[foreign]), "NotOurs");
        }
        assert_eq!(becomes(shop, Some(&any), &[twin("shop-west", "shop2")]), "NotOurs", "another one's twin");
    }

    #[test]
    fn a_map_that_is_full_gets_as_many_twins_as_the_consent_says() {
        let names: Vec<_> =
            (0..ENTRIES_MAX).map(|n| (format!("ns-{n:04}"), format!("ns-{n:04}-west"))).collect();
        let consent = Incoming::default();
        let steps = plan(&names.into_iter().collect(), &around(Some(&consent), &[], &|_| None));
        let of = |what: &str| steps.iter().filter(|(_, step)| reason(step) == what).count();
        let (made, refused) = (of("create"), of("TooManyNamespaces"));
        assert_eq!((made, made + refused), (100, ENTRIES_MAX));
    }

    #[test]
    fn a_twin_goes_when_its_key_does_and_the_limit_counts_all() {
        let twins = [twin("shop-west", "shop"), twin("other", "c"), twin("web-west", "web")];
        let namespace = |name: &str| twins.iter().find(|n| n.name_any() == name).cloned();
        let consent = Incoming { max_namespaces: 4, ..Incoming::default() };
        let around = around(Some(&consent), &twins, &namespace);
        let wanted = desired(&[("a", "a-west"), ("b", "b-west"), ("c", "other"), ("web", "web-west")]);
        let steps = plan(&wanted, &around);
        let seen: Vec<_> = steps.iter().map(|(name, step)| (name.as_str(), reason(step))).collect();
        let want =
            [("shop", "delete"), ("a", "create"), ("b", "TooManyNamespaces"), ("c", "mend"), ("web", "mend")];
        assert_eq!(seen, want);
    }

    #[test]
    fn a_key_that_names_another_twin_is_refused_and_takes_none_away() {
        let any = Incoming { namespaces: vec!["*".into()], ..Incoming::default() };
        let becomes = |twins: &[Namespace], name: &str| {
            let namespace = |name: &str| twins.iter().find(|n| n.name_any() == name).cloned();
            let steps = plan(&desired(&[("shop", name)]), &around(Some(&any), twins, &namespace));
            steps.iter().map(|(_, step)| reason(step)).collect::<Vec<_>>()
        };
        let old = twin("shop-west", "shop");
        assert_eq!(becomes(std::slice::from_ref(&old), "renamed"), ["NameChanged"]);
        assert_eq!(becomes(std::slice::from_ref(&old), "shop-west"), ["mend"], "named as before");
        assert_eq!(becomes(&[old.clone(), twin("renamed", "shop")], "renamed"), ["mend"], "both stay");
        let mut going = old;
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-01T12:00:00Z")).unwrap();
        assert_eq!(becomes(&[going], "renamed"), ["create"], "its key went before");
    }
}
