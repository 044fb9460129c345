//! `review` allows exactly the nodes of the contract, whatever Pod and NamespaceOffloading.

use proptest::prelude::*;

use super::{
    cluster::{NODES, Node},
    notation::{Requirement, Term},
    *,
};

fn requirement() -> impl Strategy<Value = Requirement> {
    let word = prop::sample::select(vec![
        ("region", "A"),
        ("region", "B"),
        ("storage", "ssd"),
        ("provider", "AWS"),
        ("liqo.io/type", "virtual-node"),
        ("absent", "x"),
    ]);
    let of_word = (word, prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]));
    let of_word = of_word.prop_map(|((key, value), operator)| {
        let values = if operator.ends_with("In") { vec![value.to_owned()] } else { Vec::new() };
        (key.to_owned(), operator, values)
    });
    let of_number = (prop::sample::select(vec!["Gt", "Lt"]), 3..9_i32);
    let of_number =
        of_number.prop_map(|(operator, bound)| ("cores".to_owned(), operator, vec![bound.to_string()]));
    prop_oneof![4 => of_word, 1 => of_number]
}

fn term() -> impl Strategy<Value = Term> {
    let node = prop::sample::select(NODES.map(|node| node.name).to_vec());
    let name = (prop::sample::select(vec!["In", "NotIn"]), node);
    let name =
        name.prop_map(|(operator, node)| ("metadata.name".to_owned(), operator, vec![node.to_owned()]));
    let name = prop::collection::vec(name, 0..2);
    (prop::collection::vec(requirement(), 0..3), name).prop_map(|(labels, name)| Term { labels, name })
}

fn terms() -> impl Strategy<Value = Option<Value>> {
    prop::option::of(prop::collection::vec(term(), 0..4).prop_map(|terms| notation::json(&terms)))
}

/// The contract: what the Pod itself wants, and what the strategy allows.
fn is_allowed(
    node: &Node,
    own: Option<&Value>,
    strategy: PodOffloadingStrategy,
    selector: Option<&Value>,
) -> bool {
    let is_list = |terms: &&Value| terms.as_array().is_some_and(|terms| !terms.is_empty());
    let matches = |terms: Option<&Value>| terms.filter(is_list).is_none_or(|terms| node.matches(terms));
    let is_selected = matches(selector);
    let policy = match strategy {
        Local => !node.is_virtual(),
        Remote => node.is_virtual() && is_selected,
        LocalAndRemote => !node.is_virtual() || is_selected,
    };
    matches(own) && policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn exactly_the_nodes_of_the_contract_are_allowed_and_twice_is_the_same(
        own in terms(),
        selector in terms(),
        strategy in prop::sample::select(vec![Local, Remote, LocalAndRemote]),
        tolerates: bool,
    ) {
        let mut pod = own.as_ref().map_or_else(|| json!({"spec": {}}), pod_with);
        if tolerates {
            pod["spec"]["tolerations"] = json!([{"key": "test", "operator": "Exists"}]);
        }
        // `reviewed` reviews twice.
        let after = reviewed(&pod, &offloading(strategy, selector.clone()));
        let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        // The API server refuses a Pod with a list of no terms, as it would without us.
        if after.pointer(required).is_some_and(|required| required["nodeSelectorTerms"] == json!([])) {
            return Ok(());
        }
        for node in &NODES {
            let want = is_allowed(node, own.as_ref(), strategy, selector.as_ref());
            prop_assert_eq!(node.takes(&after), want, "{}: {}", node.name, after);
        }
    }
}
