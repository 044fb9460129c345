//! The vectors of the reference's Appendix A, as they are there: `vectors.txt`.

use super::{cluster::NODES, *};

/// Rows in which ours is another text for the same nodes: a term that already requires enough stays alone, and a toleration that is
/// enough is not repeated.
const OTHER_TEXT: [(&str, &str, &str); 2] = [("E25", "{T!=vn}", "[VT]"), ("E51", "-", "[VT]")];

fn tolerations(text: &str) -> Vec<Value> {
    let one = |name: &str| match name {
        "VT" => {
            json!({"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute"})
        }
        name => json!({"key": name, "operator": "Exists"}),
    };
    text.split([',', ' ']).filter(|name| !matches!(*name, "" | "-")).map(one).collect()
}

fn unbracketed(text: &str) -> &str {
    text.trim_start_matches('[').trim_end_matches(']')
}

#[test]
fn the_vectors_of_the_reference_hold() {
    let mut checked = 0;
    for row in include_str!("vectors.txt").lines() {
        let fields: Vec<_> = row.split(" ; ").collect();
        let [id, strategy, selector, before, tolerates, class, after, tolerates_after, nodes, kind] =
            fields[..].try_into().unwrap();
        // What upstream does wrong, or refuses to read.
        if kind == "upstream" {
            continue;
        }
        let other = OTHER_TEXT.iter().find(|(other, ..)| *other == id);
        let (after, tolerates_after) = other.map_or((after, tolerates_after), |other| (other.1, other.2));
        let strategy = match strategy {
            "L" => Local,
            "R" => Remote,
            "LR" => LocalAndRemote,
            other => panic!("{other}"),
        };
        let wants = offloading(strategy, notation::terms(selector).map(|terms| notation::json(&terms)));
        let mut pod = match notation::terms(before) {
            Some(terms) => pod_with(&notation::json(&terms)),
            None => json!({"metadata": {}, "spec": {"containers": []}}),
        };
        let tolerates = tolerations(tolerates);
        if !tolerates.is_empty() {
            pod["spec"]["tolerations"] = json!(tolerates);
        }
        if class != "-" {
            pod["spec"]["runtimeClassName"] = json!(class);
        }
        let result = reviewed(&pod, &wants);
        let required =
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let want = notation::terms(after).map(|terms| notation::json(&terms));
        assert_eq!(result.pointer(required), want.as_ref(), "{id}");
        let tolerated = result["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        assert_eq!(tolerated, tolerations(unbracketed(tolerates_after)), "{id}");
        let taken = NODES.iter().filter(|node| node.takes(&result)).map(|node| node.name);
        let want: Vec<_> = unbracketed(nodes).split(',').filter(|name| !name.is_empty()).collect();
        assert_eq!(taken.collect::<Vec<_>>(), want, "{id}");
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn u12_an_unknown_strategy_cannot_be_read() {
    let view: crate::offload::view::NamespaceOffloadingView =
        serde_json::from_value(json!({"metadata": {}, "spec": {"podOffloadingStrategy": ""}})).unwrap();
    let problem = view.spec.0.unwrap_err();
    let denial = Denial::Unreadable { namespace: "shop".into(), problem }.to_string();
    assert!(denial.contains("shop/offloading") && denial.contains("LocalAndRemote"), "{denial}");
}
