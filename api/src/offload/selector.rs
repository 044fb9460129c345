//! Which virtual nodes a `clusterSelector` selects: as kube-scheduler reads the same terms in a Pod's node affinity.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};

use crate::name;

/// The one field of a Node that terms can name.
const METADATA_NAME: &str = "metadata.name";

/// What selectors see of a Node.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// Whether the terms select the node: one of them matches, or there are none.
///
/// A term matches if all its requirements do; an empty one, and one that [`check`] refuses, matches nothing.
pub fn selects(terms: &[NodeSelectorTerm], node: Candidate<'_>) -> bool {
    terms.is_empty() || terms.iter().any(|term| term_matches(term, node))
}

/// Whether a scheduler takes these terms; what it would object to otherwise.
pub fn check(terms: &[NodeSelectorTerm]) -> Result<(), String> {
    terms.iter().enumerate().try_for_each(|(at, term)| {
        let in_term = |problem: String| format!("nodeSelectorTerms[{at}]: {problem}");
        if is_empty(term) {
            return Err(in_term(
                "an empty term selects nothing: leave it out, or say what it requires".into(),
            ));
        }
        let labels = expressions(term).iter().try_for_each(check_label);
        labels.and_then(|()| fields(term).iter().try_for_each(check_field)).map_err(in_term)
    })
}

/// Whether nothing is required, which matches nothing.
pub(super) fn is_empty(term: &NodeSelectorTerm) -> bool {
    expressions(term).is_empty() && fields(term).is_empty()
}

/// What a term requires of labels.
pub(super) fn expressions(term: &NodeSelectorTerm) -> &[NodeSelectorRequirement] {
    term.match_expressions.as_deref().unwrap_or_default()
}

/// What a term requires of fields.
pub(super) fn fields(term: &NodeSelectorTerm) -> &[NodeSelectorRequirement] {
    term.match_fields.as_deref().unwrap_or_default()
}

fn term_matches(term: &NodeSelectorTerm, node: Candidate<'_>) -> bool {
    let label = |requirement: &NodeSelectorRequirement| {
        check_label(requirement).is_ok() && holds(requirement, node.labels.get(&requirement.key))
    };
    let name = node.name.to_owned();
    let field = |requirement: &NodeSelectorRequirement| {
        check_field(requirement).is_ok() && holds(requirement, Some(&name))
    };
    !is_empty(term) && expressions(term).iter().all(label) && fields(term).iter().all(field)
}

/// Whether a value, if there is one, is as required. An unknown operator requires what nothing is.
fn holds(requirement: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = values(requirement);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers(value, values).is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers(value, values).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

fn numbers(value: Option<&String>, values: &[String]) -> Option<(i64, i64)> {
    Some((value?.parse().ok()?, values.first()?.parse().ok()?))
}

fn values(requirement: &NodeSelectorRequirement) -> &[String] {
    requirement.values.as_deref().unwrap_or_default()
}

fn check_label(requirement: &NodeSelectorRequirement) -> Result<(), String> {
    let NodeSelectorRequirement { key, operator, .. } = requirement;
    let values = values(requirement);
    if !name::is_qualified_name(key) {
        return Err(format!("{key:?} is not the key of a label"));
    }
    if let Some(value) = values.iter().find(|value| !name::is_label_value(value)) {
        return Err(format!("{value:?} is not the value of a label ({key})"));
    }
    match (operator.as_str(), values) {
        ("In" | "NotIn", []) => Err(format!("operator {operator} of {key} needs a value")),
        ("Exists" | "DoesNotExist", [_, ..]) => Err(format!("operator {operator} of {key} takes no values")),
        ("Gt" | "Lt", [bound]) if bound.parse::<i64>().is_ok() => Ok(()),
        ("Gt" | "Lt", _) => Err(format!("operator {operator} of {key} needs one whole number as value")),
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => Ok(()),
        _ => Err(format!(
            "operator {operator:?} of {key} is none of In, NotIn, Exists, DoesNotExist, Gt and Lt"
        )),
    }
}

fn check_field(requirement: &NodeSelectorRequirement) -> Result<(), String> {
    let NodeSelectorRequirement { key, operator, .. } = requirement;
    if key != METADATA_NAME {
        return Err(format!("matchFields can name {METADATA_NAME} only, not {key:?}"));
    }
    match (operator.as_str(), values(requirement)) {
        ("In" | "NotIn", [_]) => Ok(()),
        ("In" | "NotIn", _) => Err(format!("operator {operator} of {METADATA_NAME} needs one value")),
        _ => Err(format!("operator {operator:?} of {METADATA_NAME} is neither In nor NotIn")),
    }
}
