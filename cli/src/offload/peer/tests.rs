//! What consents say, and what the member says of them.

use super::*;

fn options(peer: &str, labels: &[(&str, &str)], namespaces: &[&str]) -> AcceptOptions {
    AcceptOptions {
        cluster: KubeContext::default(),
        peer: peer.into(),
        remove: false,
        labels: labels.iter().map(|&(key, value)| (key.into(), value.into())).collect(),
        yes: false,
        namespaces: namespaces.iter().map(|&name| name.into()).collect(),
    }
}

#[test]
fn what_is_not_named_stays_as_it_was() {
    assert_eq!(incoming(&options("west", &[], &[])).unwrap(), json!({}));
    let some = incoming(&options("west", &[("liqo.io/region", "eu")], &["team-*", "*"])).unwrap();
    assert_eq!(some, json!({"nodeLabels": {"liqo.io/region": "eu"}, "namespaces": ["team-*", "*"]}));
}

#[test]
fn what_no_consent_can_say_is_refused() {
    for (peer, labels, namespaces, says) in [
        ("West", &[][..], &[][..], "cluster ID"),
        ("west", &[("a b", "c")], &[], "no Node can have"),
        ("west", &[("a", "b c")], &[], "no Node can have"),
        ("west", &[("kubernetes.io/os", "x")], &[], "cannot be set"),
        ("west", &[("liqo.io/type", "x")], &[], "cannot be set"),
        ("west", &[], &["Shop"], "must be the name of a Namespace"),
        ("west", &[], &["kube-*"], "matches no twin"),
        ("west", &[], &["default"], "matches no twin"),
        ("west", &[], &[""], "must be the name of a Namespace"),
    ] {
        let error = incoming(&options(peer, labels, namespaces)).unwrap_err();
        assert!(matches!(error, Error::Argument(_)) && error.to_string().contains(says), "{error}");
    }
    assert!(incoming(&options("west", &[("topology.kubernetes.io/region", "eu")], &[])).is_ok());
}

#[test]
fn a_consent_that_may_lack_labels_is_told_from_one_that_keeps_them() {
    let there = |spec: serde_json::Value| -> OffloadPeerView {
        serde_json::from_value(json!({"metadata": {"name": "west"}, "spec": spec})).unwrap()
    };
    let has = there(json!({"incoming": {"nodeLabels": {"region": "eu"}}}));
    assert!(!narrows(Some(&has), &options("west", &[], &[])), "what is not named stays");
    assert!(!narrows(Some(&has), &options("west", &[("region", "eu"), ("tier", "a")], &[])));
    assert!(narrows(Some(&has), &options("west", &[("region", "us")], &[])));
    assert!(narrows(Some(&there(json!({"outgoing": {}}))), &options("west", &[], &[])), "it was taken back");
    assert!(narrows(None, &options("west", &[], &[])));
}

#[test]
fn a_consent_is_given_again_by_the_flags_that_gave_it() {
    let there: OffloadPeerView =
        serde_json::from_value(json!({"metadata": {"name": "west"}, "spec": {"incoming":
        {"nodeLabels": {"liqo.io/region": "eu"}, "namespaces": ["team-*"]}}}))
        .unwrap();
    assert_eq!(given(&there), ["--label liqo.io/region=eu", "--namespace 'team-*'"]);
}

#[test]
fn who_is_no_member_is_known_where_members_are() {
    let set = |ready: &str| -> ClusterSetView {
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let members = json!([{"clusterID": "leader"}, {"clusterID": "west"}]);
        let status = json!({"conditions": conditions, "clusterStatuses": members});
        serde_json::from_value(json!({"metadata": {"name": "demo"}, "status": status})).unwrap()
    };
    let said = |set: &ClusterSetView, peer: &str| stranger(set, peer).unwrap_or_default();
    assert!(said(&set("True"), "nobody").starts_with("no member of this ClusterSet has the ID nobody"));
    assert_eq!(stranger(&set("True"), "west"), None);
    assert_eq!(stranger(&set("Unknown"), "west"), None, "it was one");
    let unknown = "whether a member has the ID nobody is not known";
    assert!(said(&set("Unknown"), "nobody").starts_with(unknown), "it does not hear of members");
    assert!(said(&ClusterSetView::default(), "nobody").starts_with(unknown));
}
