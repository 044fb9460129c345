//! What becomes of each entry, and of twins that no entry wants.

use api::offload::map::ENTRIES_MAX;
use serde_json::json;

use super::*;

const RECORD: &str = "1.west.east";

fn twin(name: &str, original: &str) -> Namespace {
    let around = around(None, &[], &|_| false);
    made(original, name, &around)
}

fn around<'a>(
    incoming: Option<&'a Incoming>,
    twins: &'a [Namespace],
    exists: &'a dyn Fn(&str) -> bool,
) -> Around<'a> {
    let incoming = incoming.ok_or_else(|| Refusal::NotAccepted { home: "west".into() });
    Around { home: "west", record: RECORD, incoming, twins, exists, system: &|_| BTreeSet::new() }
}

fn desired(pairs: &[(&str, &str)]) -> NamespaceMapSpec {
    let desired_mapping = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    NamespaceMapSpec { desired_mapping, ..NamespaceMapSpec::default() }
}

fn reason(step: &Step) -> &'static str {
    match step {
        Step::Create(_) => "create",
        Step::Mend { have, want } if have == want => "stays",
        Step::Mend { .. } => "mend",
        Step::Refuse { why, .. } => why.reason,
        Step::Wait { .. } => "wait",
        Step::Keep { .. } => "keep",
        Step::Delete(_) => "delete",
    }
}

/// What becomes of one entry where these Namespaces are there.
fn becomes(entry: (&str, &str), incoming: Option<&Incoming>, there: &[Namespace]) -> &'static str {
    let exists = |name: &str| there.iter().any(|n| n.name_any() == name);
    let is_its_own = |n: &&Namespace| n.twin_of(RECORD) == Some(("west", entry.0));
    let twins: Vec<_> = there.iter().filter(is_its_own).cloned().collect();
    let steps = plan(&desired(&[entry]), &around(incoming, &twins, &exists));
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
    let exists = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    assert_eq!(
        becomes(("shop", "default"), Some(&any), &[exists]),
        "NameReserved",
        "whether it is there or not"
    );
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
    let made = made("shop", "shop-west", &around(Some(&consent), &[], &|_| false));
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
    let mine: Namespace = serde_json::from_value(json!({"metadata": {"name": "mine"}})).unwrap();
    let mine = std::slice::from_ref(&mine);
    assert_eq!(becomes(("shop", "mine"), Some(&any), mine), "NotOurs");
    for there in [&[][..], mine] {
        assert_eq!(
            becomes(("shop", "mine"), Some(&consent), there),
            "NameNotAllowed",
            "not even that it is there"
        );
    }
    assert_eq!(becomes(shop, Some(&any), &[twin("shop-west", "shop2")]), "NotOurs", "another one's twin");
}

#[test]
fn a_map_that_is_full_gets_as_many_twins_as_the_consent_says() {
    let names: Vec<_> = (0..ENTRIES_MAX).map(|n| (format!("ns-{n:04}"), format!("ns-{n:04}-west"))).collect();
    let consent = Incoming::default();
    let spec =
        NamespaceMapSpec { desired_mapping: names.into_iter().collect(), ..NamespaceMapSpec::default() };
    let steps = plan(&spec, &around(Some(&consent), &[], &|_| false));
    let of = |what: &str| steps.iter().filter(|(_, step)| reason(step) == what).count();
    let (made, refused) = (of("create"), of("TooManyNamespaces"));
    assert_eq!((made, made + refused), (100, ENTRIES_MAX));
}

#[test]
fn a_twin_goes_when_it_is_withdrawn_and_the_limit_counts_all() {
    let mut going = twin("going", "left");
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-01T12:00:00Z")).unwrap();
    let twins = [
        twin("shop-west", "shop"),
        twin("other", "c"),
        twin("web-west", "web"),
        twin("db-west", "db"),
        twin("second", "db"),
        going,
    ];
    let exists = |name: &str| twins.iter().any(|n| n.name_any() == name);
    let consent = Incoming { max_namespaces: 7, ..Incoming::default() };
    let around = around(Some(&consent), &twins, &exists);
    let mut wanted = desired(&[("a", "a-west"), ("b", "b-west"), ("c", "other"), ("web", "web-west")]);
    wanted.withdrawn = ["shop", "web", "never"].map(|name| (name.to_owned(), 1)).into();
    let steps = plan(&wanted, &around);
    let seen: Vec<_> = steps.iter().map(|(name, step)| (name.as_str(), reason(step))).collect();
    let undesired = [("shop", "delete"), ("db", "keep"), ("left", "wait")];
    let want = [("a", "create"), ("b", "TooManyNamespaces"), ("c", "mend"), ("web", "mend")];
    let want: Vec<_> = undesired.into_iter().chain(want).collect();
    assert_eq!(seen, want);
}

#[test]
fn a_key_that_names_another_twin_is_refused_and_takes_none_away() {
    let any = Incoming { namespaces: vec!["*".into()], ..Incoming::default() };
    let becomes = |twins: &[Namespace], name: &str| {
        let exists = |name: &str| twins.iter().any(|n| n.name_any() == name);
        let steps = plan(&desired(&[("shop", name)]), &around(Some(&any), twins, &exists));
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
