//! What flags say, and what is printed.

use super::*;
use crate::offload::vanished::tests::example;

fn options(namespaces: &[&str]) -> OffloadOptions {
    OffloadOptions {
        cluster: KubeContext::default(),
        namespaces: namespaces.iter().map(|&name| name.into()).collect(),
        ns_selector: None,
        strategy: None,
        mapping: None,
        remote_name: None,
        yes: false,
        selectors: Vec::new(),
        dry_run: true,
        as_json: false,
        wait: false,
        timeout: Duration::ZERO,
    }
}

#[test]
fn only_what_a_flag_says_is_in_the_spec() {
    assert_eq!(spec(&options(&["shop"])).unwrap(), json!({}));
    let some = OffloadOptions {
        strategy: Some(PodOffloadingStrategy::Remote),
        mapping: Some(NamespaceMappingStrategy::SelectedName),
        remote_name: Some("store".into()),
        selectors: vec!["region=a".into(), "gpu".into()],
        ..options(&["shop"])
    };
    let terms = json!([
        {"matchExpressions": [{"key": "region", "operator": "In", "values": ["a"]}]},
        {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
    ]);
    let want = json!({
        "podOffloadingStrategy": "Remote", "namespaceMappingStrategy": "SelectedName", "remoteNamespaceName": "store",
        "clusterSelector": {"nodeSelectorTerms": terms},
    });
    assert_eq!(spec(&some).unwrap(), want);
    let all = OffloadOptions { selectors: vec![String::new()], ..options(&["shop"]) };
    assert_eq!(spec(&all).unwrap(), json!({"clusterSelector": null}));
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let selected = Some(NamespaceMappingStrategy::SelectedName);
    let named = |name: &str| Some(name.to_owned());
    for (options, says) in [
        (options(&["Shop"]), "is not the name of a Namespace"),
        (OffloadOptions { remote_name: named("x"), ..options(&["a"]) }, "goes with"),
        (OffloadOptions { mapping: selected, ..options(&["a"]) }, "needs --remote-namespace-name"),
        (OffloadOptions { mapping: selected, remote_name: named("x"), ..options(&["a", "b"]) }, "one twin"),
        (
            OffloadOptions {
                mapping: selected,
                remote_name: named("x"),
                ns_selector: named("team=a"),
                ..options(&[])
            },
            "one twin",
        ),
        (OffloadOptions { mapping: selected, remote_name: named("X"), ..options(&["a"]) }, "DNS label"),
        (OffloadOptions { selectors: vec!["a b".into()], ..options(&["a"]) }, "--selector"),
    ] {
        let error = spec(&options).unwrap_err();
        assert!(matches!(error, Error::Argument(_)) && error.to_string().contains(says), "{error}");
    }
}

#[test]
fn what_is_printed_closes_the_window_before_it_opens() {
    let mut text = String::new();
    let mut say = |line: &str| text.push_str(&format!("{line}\n"));
    let shop = ["shop".to_owned()];
    print(&shop, &json!({"clusterSelector": null}), false, &mut say).unwrap();
    let want = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    liqo.io/scheduling-enabled: 'true'\n  name: shop\n\
                ---\napiVersion: offloading.liqo.io/v1beta1\nkind: NamespaceOffloading\nmetadata:\n  name: offloading\n  \
                namespace: shop\nspec: {}\n";
    assert_eq!(text, want);
    let mut local = String::new();
    print(&shop, &json!({"podOffloadingStrategy": "Local"}), false, &mut |line: &str| local.push_str(line))
        .unwrap();
    assert!(!local.contains("kind: Namespace\n"), "{local}");
}

#[test]
fn as_json_all_objects_are_one_list_in_the_order_of_applying() {
    let mut text = String::new();
    let names = ["shop".to_owned(), "web".to_owned()];
    print(&names, &json!({"clusterSelector": null}), true, &mut |line: &str| text.push_str(line)).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("List")));
    let items = list["items"].as_array().unwrap().iter();
    let seen: Vec<_> = items
        .map(|item| [&item["kind"], &item["metadata"]["name"], &item["metadata"]["namespace"]])
        .collect();
    let (labelled, offloading) = (json!("Namespace"), json!("NamespaceOffloading"));
    let (none, name, shop, web) = (json!(null), json!("offloading"), json!("shop"), json!("web"));
    let want = [
        [&labelled, &shop, &none],
        [&offloading, &name, &shop],
        [&labelled, &web, &none],
        [&offloading, &name, &web],
    ];
    assert_eq!(seen, want);
    assert_eq!(list["items"][0]["metadata"]["labels"], json!({"liqo.io/scheduling-enabled": "true"}));
}

#[test]
fn what_can_never_be_offloaded_is_said_before_anything_is_written() {
    let why = |metadata: &Value| cannot(&serde_json::from_value(json!({"metadata": metadata})).unwrap());
    assert_eq!(why(&json!({"name": "shop"})), None);
    assert_eq!(why(&json!({"name": "default"})), None);
    for (metadata, says) in [
        (json!({"name": "kube-system"}), "Namespace kube-system cannot be offloaded"),
        (
            json!({"name": "area", "labels": {"multicluster.freeport.dev/common-area": "true"}}),
            "Namespace area cannot",
        ),
        (
            json!({"name": "shop", "deletionTimestamp": "2026-11-01T12:00:00Z"}),
            "Namespace shop is being deleted",
        ),
    ] {
        let said = why(&metadata).unwrap();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn pods_that_are_older_are_spoken_of_where_there_are_any() {
    let said = |pods: &[&str]| older("shop", &pods.iter().map(|&pod| pod.to_owned()).collect::<Vec<_>>());
    assert_eq!(said(&[]), None);
    assert!(said(&["web"]).unwrap().starts_with("Pod web of shop is older"));
    let two = said(&["web", "db"]).unwrap();
    assert!(two.starts_with("2 Pods of shop") && two.contains("freeport offload status -n shop"), "{two}");
}

#[test]
fn a_selector_that_takes_the_twin_of_a_vanished_offloading_is_refused() {
    let nodes = ["east", "north"].map(|id| -> Meta<Node> {
        let labels = json!({"liqo.io/remote-cluster-id": id, "region": id});
        serde_json::from_value(json!({"metadata": {"name": format!("freeport-{id}"), "labels": labels}}))
            .unwrap()
    });
    let goes = |namespace: &str, selector: &str| {
        let options = OffloadOptions { selectors: vec![selector.to_owned()], ..options(&[namespace]) };
        let selects = serde_json::from_value(spec(&options).unwrap()).unwrap();
        taken(namespace, None, &example(), &selects, &nodes)
    };
    assert!(goes("web", "region=east").unwrap().starts_with("twin web in north goes"));
    assert!(goes("web", "region=us").unwrap().starts_with("twin web in east, north goes"));
    assert_eq!(goes("web", ""), None);
    assert_eq!(goes("shop", "region=east"), None);
    assert!(goes("shop", "region=north").unwrap().starts_with("twin shop-west in east goes"));
    assert_eq!(goes("other", "region=us"), None, "it has no twin");
}
