use kit::watch::Gather;
use odd::anything;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

type Requests = Bounded<APIServiceExportRequest>;
type Spaces = Bounded<APIServiceNamespace>;

fn request(name: &str, spec: &Value) -> Lean<APIServiceExportRequest> {
    noted(name, spec, &json!({}))
}

fn noted(name: &str, spec: &Value, more: &Value) -> Lean<APIServiceExportRequest> {
    let mut metadata = json!({"name": name, "namespace": "cns", "uid": name, "resourceVersion": "3"});
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// An APIServiceNamespace, with `more` metadata, that was said to be there.
fn space(name: &str, said: &str, more: &Value) -> Lean<APIServiceNamespace> {
    let mut metadata = json!({"name": name, "namespace": "cns", "uid": name, "resourceVersion": "3"});
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": {"namespace": said}})).unwrap()
}

/// More bytes of owners than are looked at.
fn many_owners() -> Vec<Value> {
    let owner = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{n}"), "uid": n.to_string()});
    (0..100).map(owner).collect()
}

fn key(name: &str) -> Key {
    Key { cluster_namespace: "cns".into(), name: name.into() }
}

fn all(of: std::ops::Range<usize>) -> Vec<Lean<APIServiceExportRequest>> {
    of.map(|n| request(&format!("r{n:03}"), &json!({"resources": []}))).collect()
}

#[test]
fn what_nobody_reads_is_not_kept_and_what_is_too_large_is_not_looked_at() {
    let api = json!([{"group": "g", "resource": "mm"}]);
    let dense = vec![json!({"a": 0}); 100_000];
    let labels: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("l{n}"), json!(""))).collect();
    let spec = json!({"parameters": {"x": dense}, "resources": api});
    let kept =
        noted("mango", &spec, &json!({"labels": labels, "annotations": {"note": "x".repeat(100_000)}}));
    assert!(kept.bytes < 5000, "{}", kept.bytes);
    let kept = kept.object.unwrap();
    assert_eq!((kept.spec.parameters, kept.metadata.annotations, kept.metadata.labels), (None, None, None));
    assert_eq!((kept.metadata.uid.as_deref(), kept.spec.resources.len()), (Some("mango"), 1));
    let many: Vec<_> = (0..5000).map(|n| json!({"group": "g", "resource": format!("m{n}")})).collect();
    let kept = request("mango", &json!({ "resources": many }));
    assert!(matches!(&kept.object, Err(Unread::Odd(why)) if why.contains("131072")), "{:?}", kept.object);
    assert_eq!(kept.metadata.name.as_deref(), Some("mango"));
}

#[test]
fn of_what_is_not_read_it_is_known_why_and_of_so_many_at_the_most() {
    let odd = |name: &str| request(name, &json!({"resources": "none"}));
    let most = APIServiceExportRequest::QUOTA.records;
    let all = || (0..most + 5).map(|n| odd(&format!("r{n:03}")));
    let (mut told, mut listed) = (Requests::default(), Requests::default());
    all().for_each(|object| told.change(Change::Apply(object)));
    listed.change(Change::Reset(gathered(all())));
    for mut requests in [told, listed] {
        assert_eq!((requests.all_odd().count(), requests.wants_list()), (most, false));
        changes_of_odd(&mut requests, odd);
    }
}

fn gathered(all: impl Iterator<Item = Lean<APIServiceExportRequest>>) -> Vec<Lean<APIServiceExportRequest>> {
    let mut gathered = Gathered::default();
    gathered.begin();
    all.for_each(|object| gathered.take(object));
    gathered.end()
}

fn changes_of_odd(requests: &mut Requests, odd: impl Fn(&str) -> Lean<APIServiceExportRequest>) {
    assert!(requests.odd(&key("r000")).is_some() && requests.odd(&key("gone")).is_none());
    requests.change(Change::Apply(request("r000", &json!({"resources": []}))));
    requests.change(Change::Remove(odd("r001")));
    assert!(requests.odd(&key("r000")).is_none() && requests.odd(&key("r001")).is_none());
    assert!(requests.wants_list(), "there is room for those of which nothing is known");
    requests.change(Change::Reset(gathered([odd("r001")].into_iter())));
    assert!(!requests.wants_list());
    assert_eq!(requests.all_odd().collect::<Vec<_>>(), [key("r001")]);
}

#[test]
fn a_request_with_as_many_apis_as_it_may_have_is_looked_at() {
    let long = |n: usize| json!({"group": "provider.example.com", "resource": format!("mangodbs{n}"), "versions": ["v1alpha1", "v1"]});
    let all: Vec<_> = (0..api::bind::grant::APIS_MAX).map(long).collect();
    assert!(request("mango", &json!({ "resources": all })).object.is_ok());
}

#[test]
fn what_goes_or_has_a_namespace_is_looked_at_however_large_its_consumer_makes_it() {
    let (deleted, ours) = ("2026-01-01T00:00:00Z", [label::BIND_FINALIZER, "x/y"]);
    let rest = |more: Value| {
        let mut more = more;
        more["ownerReferences"] = json!(many_owners());
        space("team1", "cns-team1", &more).object
    };
    assert!(rest(json!({})).is_err(), "nothing was made for it");
    let held = rest(json!({"finalizers": ours})).unwrap();
    assert_eq!(held.status.unwrap().namespace.as_deref(), Some("cns-team1"));
    assert_eq!(held.metadata.finalizers.unwrap(), [label::BIND_FINALIZER]);
    assert_eq!((held.metadata.owner_references, held.metadata.uid.as_deref()), (None, Some("team1")));
    let going = rest(json!({"finalizers": ["x/y"], "deletionTimestamp": deleted})).unwrap();
    assert!(is_going(&going.metadata));
    // Nested deeper than can be decoded, and still in the way of its cluster namespace.
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let of = |more: &str| -> Lean<APIServiceExportRequest> {
        let metadata = format!(r#"{{"name": "r", "namespace": "cns", "finalizers": ["x/y"]{more}}}"#);
        serde_json::from_str(&format!(r#"{{"metadata": {metadata}, "spec": {{"resources": {deep}}}}}"#))
            .unwrap()
    };
    assert!(of("").object.is_err());
    let going = of(r#", "deletionTimestamp": "2026-01-01T00:00:00Z""#).object.unwrap();
    assert!(is_going(&going.metadata) && going.spec.resources.is_empty());
}

#[test]
fn of_many_those_that_came_first_are_looked_at() {
    let spec = json!({"resources": []});
    let most = APIServiceExportRequest::QUOTA.records;
    let mut known = Requests::default();
    known.change(Change::Reset(all(0..most + 5)));
    assert_eq!(known.iter().count(), most);
    let has = |known: &Requests, name: &str| known.named(&key(name).pair()).is_some();
    known.change(Change::Apply(request("mango", &spec)));
    assert!(!has(&known, "mango"), "one more");
    known.change(Change::Apply(request("r000", &spec)));
    assert!(has(&known, "r000"), "one of them");
    known.change(Change::Remove(request("r000", &spec)));
    known.change(Change::Apply(request("mango", &spec)));
    assert!(has(&known, "mango"), "there is room");
}

#[test]
fn those_left_out_are_next_when_others_are_gone() {
    let most = APIServiceExportRequest::QUOTA.records;
    let mut known = Requests::default();
    known.change(Change::Reset(all(0..most + 2)));
    let (one, other) = (key(&format!("r{most:03}")), key(&format!("r{:03}", most + 1)));
    assert_eq!(known.next("cns"), []);
    assert!(!known.has_room_for(&one));
    known.change(Change::Remove(request("r000", &json!({"resources": []}))));
    assert_eq!(known.next("cns"), std::slice::from_ref(&one));
    assert!(known.has_room_for(&other) && known.next("other").is_empty());
    // It was looked at, so the watch tells of it again.
    known.change(Change::Apply(request(&one.name, &json!({"resources": []}))));
    assert_eq!(known.next("cns"), []);
    known.change(Change::Remove(request("r001", &json!({"resources": []}))));
    known.change(Change::Remove(request(&other.name, &json!({"resources": []}))));
    assert_eq!(known.next("cns"), [], "it is gone");
}

#[test]
fn what_was_given_a_namespace_counts_before_what_was_not() {
    let most = APIServiceNamespace::QUOTA.records;
    let mut spaces: Vec<_> = (0..most).map(|n| space(&format!("n{n:04}"), "", &json!({}))).collect();
    spaces.push(space("zero", "", &json!({"finalizers": [label::BIND_FINALIZER]})));
    let mut known = Spaces::default();
    known.change(Change::Reset(spaces));
    let has = |known: &Spaces, name: &str| known.named(&key(name).pair()).is_some();
    assert!(has(&known, "zero") && !has(&known, &format!("n{:04}", most - 1)));
    let ours = json!({"finalizers": [label::BIND_FINALIZER]});
    known.change(Change::Apply(space("its-own", "", &ours)));
    known.change(Change::Apply(space("assigned", "cns-assigned", &ours)));
    let going = json!({"finalizers": ["x/y"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
    known.change(Change::Apply(space("going", "", &going)));
    assert!(!has(&known, "its-own"), "anybody can put our finalizer on");
    assert!(has(&known, "assigned") && has(&known, "going"));
}

fn of(cluster_namespace: &str, name: &str) -> Lean<APIServiceExportRequest> {
    let mut request = request(name, &json!({"resources": []}));
    request.metadata.namespace = Some(cluster_namespace.to_owned());
    if let Ok(content) = &mut request.object {
        content.metadata.namespace = request.metadata.namespace.clone();
    }
    request
}

#[test]
fn of_a_flood_a_list_keeps_as_much_as_is_looked_at_and_as_many_names() {
    let most = APIServiceExportRequest::QUOTA.records;
    let flood = (0..most * 10).map(|n| of("cns", &format!("r{n:04}")));
    let listed = gathered(flood.chain([of("quiet", "mango")]));
    assert_eq!(listed.len(), 2 * most + 1);
    let mut known = Requests::default();
    known.change(Change::Reset(listed));
    assert_eq!((known.within("cns").count(), known.within("quiet").count()), (most, 1));
    assert!(!known.wants_list(), "there is no room");
    (0..2 * most).for_each(|n| known.change(Change::Remove(of("cns", &format!("r{n:04}")))));
    assert!(known.wants_list() && known.next("cns").is_empty(), "nothing is known of the others");
    known.change(Change::Reset(vec![of("quiet", "mango")]));
    assert!(!known.wants_list());
}

#[test]
fn of_what_a_watch_tells_one_by_one_no_more_is_kept() {
    let most = APIServiceExportRequest::QUOTA.records;
    let mut known = Requests::default();
    (0..most * 10).for_each(|n| known.change(Change::Apply(of("cns", &format!("r{n:04}")))));
    assert_eq!((known.iter().count(), known.shares["cns"].left_out.len()), (most, most));
    (0..most * 10).for_each(|n| known.change(Change::Remove(of("cns", &format!("r{n:04}")))));
    assert!(known.wants_list(), "some were forgotten");
}

#[test]
fn a_consumer_has_so_much_memory_for_all_together() {
    let large: Vec<_> = (0..200).map(|n| json!({"group": "g", "resource": format!("m{n}")})).collect();
    let large = |n: usize| request(&format!("r{n:03}"), &json!({ "resources": large }));
    let (mut known, quota) = (Requests::default(), APIServiceExportRequest::QUOTA);
    (0..quota.records).for_each(|n| known.change(Change::Apply(large(n))));
    let share = &known.shares["cns"];
    assert!(share.bytes <= quota.bytes && share.bytes > quota.bytes / 2, "{}", share.bytes);
    assert_eq!(known.iter().count(), quota.bytes / large(0).bytes);
    known.change(Change::Remove(large(0)));
    known.change(Change::Apply(large(199)));
    assert!(known.named(&key("r199").pair()).is_some(), "there is room");
}

proptest! {
    #[test]
    fn no_object_of_a_consumer_stops_a_list(
        odd in anything(&["metadata", "finalizers", "ownerReferences", "spec", "parameters", "resources", "status", "namespace"]),
    ) {
        odd::everywhere::<Lean<APIServiceExportRequest>>(&odd).unwrap();
        odd::everywhere::<Lean<APIServiceNamespace>>(&odd).unwrap();
    }
}
