use serde_json::{Value, json};

use super::*;

fn terms(terms: Value) -> Vec<NodeSelectorTerm> {
    serde_json::from_value(terms).unwrap()
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
}

fn selected(selector: Value) -> bool {
    let labels = [("region", "A"), ("cores", "8"), ("word", "x8")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    selects(&terms(selector), Candidate { name: "freeport-east", labels: &labels })
}

#[test]
fn operators_mean_what_they_mean_to_the_scheduler() {
    for (key, operator, values, want) in [
        ("region", "In", &["A", "B"][..], true),
        ("region", "In", &["B"], false),
        ("none", "In", &["A"], false),
        ("region", "NotIn", &["B"], true),
        ("region", "NotIn", &["A"], false),
        ("none", "NotIn", &["A"], true),
        ("region", "Exists", &[], true),
        ("none", "Exists", &[], false),
        ("region", "DoesNotExist", &[], false),
        ("none", "DoesNotExist", &[], true),
        ("cores", "Gt", &["7"], true),
        ("cores", "Gt", &["8"], false),
        ("cores", "Lt", &["9"], true),
        ("cores", "Lt", &["8"], false),
        ("word", "Gt", &["1"], false),
        ("none", "Lt", &["1"], false),
    ] {
        assert_eq!(selected(expression(key, operator, values)), want, "{key} {operator} {values:?}");
        assert_eq!(check(&terms(expression(key, operator, values))), Ok(()), "{key} {operator} {values:?}");
    }
}

#[test]
fn none_select_all_and_an_empty_one_selects_nothing() {
    assert!(selected(json!([])));
    assert!(!selected(json!([{}])));
    let either = json!([{}, expression("region", "In", &["A"])[0]]);
    assert!(selected(either));
    let both = json!([{"matchExpressions": [{"key": "region", "operator": "In", "values": ["A"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["freeport-west"]}]}]);
    assert!(!selected(both));
    for (operator, name, want) in
        [("In", "freeport-east", true), ("NotIn", "freeport-east", false), ("NotIn", "x", true)]
    {
        let field =
            json!([{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}]);
        assert_eq!(selected(field.clone()), want, "{field}");
        assert_eq!(check(&terms(field)), Ok(()));
    }
}

#[test]
fn what_no_scheduler_takes_is_refused_with_a_sentence_and_selects_nothing() {
    let field = |key: &str, operator: &str, values: &[&str]| json!([{"matchFields": [{"key": key, "operator": operator, "values": values}]}]);
    for (bad, says) in [
        (json!([{}]), "nodeSelectorTerms[0]: an empty term"),
        (json!([{"matchExpressions": [], "matchFields": []}]), "an empty term"),
        (json!([expression("region", "Exists", &[])[0], {}]), "nodeSelectorTerms[1]"),
        (expression("region", "Is", &["A"]), "\"Is\""),
        (expression("region", "In", &[]), "needs a value"),
        (expression("region", "NotIn", &[]), "needs a value"),
        (expression("none", "NotIn", &["a b"]), "\"a b\""),
        (expression("region", "Exists", &["A"]), "takes no values"),
        (expression("none", "DoesNotExist", &["A"]), "takes no values"),
        (expression("cores", "Gt", &[]), "one whole number"),
        (expression("cores", "Lt", &["1", "2"]), "one whole number"),
        (expression("cores", "Gt", &["1.5"]), "one whole number"),
        (expression("a b", "DoesNotExist", &[]), "\"a b\""),
        (field("metadata.namespace", "In", &["x"]), "metadata.name only"),
        (field("metadata.name", "In", &["freeport-east", "x"]), "one value"),
        (field("metadata.name", "Exists", &[]), "neither In nor NotIn"),
    ] {
        let problem = check(&terms(bad.clone())).unwrap_err();
        assert!(problem.contains(says), "{problem}");
        let first = json!([bad.as_array().unwrap().last().unwrap()]);
        assert!(!selected(first), "{bad}");
    }
}
