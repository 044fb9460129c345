//! `freeport-offload-content`: a NamespaceOffloading that nobody could do is refused, whoever writes it; so are selectors that
//! kube-scheduler would not take in a Pod (`api::offload::selector`), since the webhook puts them there.
//!
//! It checks only what changes in a spec, so that an old object can still end.

use super::{Check, Policy, Refused, requests};
use crate::objects::{Object, rights::OFFLOADING};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-offload-content";

/// Resources and versions of it: with both nothing has to be converted.
pub(super) const VERSIONS: &[&str] = &["v1beta1", "v1alpha1"];
pub(super) const RESOURCES: &[&str] = &["namespaceoffloadings"];

const SAYS_SOMETHING_NEW: &str = "
!has(object.metadata.deletionTimestamp) &&
(request.operation == 'CREATE' || dyn(object).?spec.orValue({}) != dyn(oldObject).?spec.orValue({}))";

const VARIABLES: &[(&str, &str)] = &[
    ("objectName", "string(dyn(object).metadata.?name.orValue(''))"),
    ("about", "'NamespaceOffloading ' + request.namespace + '/' + variables.objectName"),
    ("spec", "dyn(dyn(object).?spec.orValue({}))"),
    ("before", "dyn(request.operation == 'CREATE' ? dyn(object).?spec.orValue({}) : dyn(oldObject).?spec.orValue({}))"),
    ("strategy", "string(variables.spec[?'namespaceMappingStrategy'].orValue('DefaultName'))"),
    ("strategyBefore", "string(variables.before[?'namespaceMappingStrategy'].orValue('DefaultName'))"),
    ("remote", "string(variables.spec[?'remoteNamespaceName'].orValue(''))"),
    ("remoteBefore", "string(variables.before[?'remoteNamespaceName'].orValue(''))"),
    ("terms", "variables.spec[?'clusterSelector'][?'nodeSelectorTerms'].orValue([])"),
    ("expressions", "variables.terms.map(term, term[?'matchExpressions'].orValue([]))"),
    ("fields", "variables.terms.map(term, term[?'matchFields'].orValue([]))"),
    // What is wrong, from here on: of each term its requirements that are.
    (
        "oddKeys",
        "
variables.expressions.map(all, all.filter(one, string(one.key).indexOf('/') > 253 || !string(one.key).matches(
    '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')))
    .filter(odd, size(odd) > 0)",
    ),
    (
        "oddOperators",
        "
variables.expressions.map(all, all.filter(one,
    !(one.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']))).filter(odd, size(odd) > 0)",
    ),
    (
        "oddNumbers",
        "
variables.expressions.map(all, all.filter(one,
    one.operator in ['In', 'NotIn'] ? size(one[?'values'].orValue([])) == 0 :
    one.operator in ['Exists', 'DoesNotExist'] ? size(one[?'values'].orValue([])) > 0 :
    size(one[?'values'].orValue([])) != 1)).filter(odd, size(odd) > 0)",
    ),
    (
        "oddBounds",
        "
variables.expressions.map(all, all.filter(one, one.operator in ['Gt', 'Lt'] &&
    !one[?'values'].orValue([]).all(value, string(value).matches('^[0-9]{1,18}$')))).filter(odd, size(odd) > 0)",
    ),
    (
        "oddValues",
        "
variables.expressions.map(all, all.filter(one, !one[?'values'].orValue([]).all(value, value == '' ||
    string(value).matches('^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')))).filter(odd, size(odd) > 0)",
    ),
    (
        "oddFields",
        "
variables.fields.map(all, all.filter(one, one.key != 'metadata.name' || !(one.operator in ['In', 'NotIn']) ||
    size(one[?'values'].orValue([])) != 1)).filter(odd, size(odd) > 0)",
    ),
];

const CHECKS: &[Check] = &[
    wrong(
        "variables.objectName == 'offloading'",
        "a NamespaceOffloading is called offloading: there is one for each Namespace",
        "variables.about + ' must be called offloading: there is one for each Namespace'",
    ),
    wrong(
        "
!request.namespace.startsWith('kube-') && request.namespace != 'freeport-system' &&
!('multicluster.freeport.dev/common-area' in dyn(namespaceObject).metadata.?labels.orValue({}))",
        "kube-*, freeport-system and Common Areas are never offloaded",
        "variables.about + ': Namespace ' + request.namespace + ' cannot be offloaded: kube-*, freeport-system and Common Areas never are'",
    ),
    wrong(
        "variables.strategy == variables.strategyBefore",
        "namespaceMappingStrategy cannot be changed",
        "
variables.about + ': namespaceMappingStrategy cannot be changed from ' + variables.strategyBefore + ' to ' + variables.strategy +
': the twins have their names; end it first, by which they go: freeport unoffload namespace ' + request.namespace",
    ),
    wrong(
        "variables.remote == variables.remoteBefore",
        "remoteNamespaceName cannot be changed",
        "
variables.about + ': remoteNamespaceName cannot be changed from \"' + variables.remoteBefore + '\" to \"' + variables.remote +
'\": the twins have their names; end it first, by which they go: freeport unoffload namespace ' + request.namespace",
    ),
    wrong(
        "
variables.strategy != 'SelectedName' || variables.remote.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
        "SelectedName needs a remoteNamespaceName that is a DNS label",
        "
variables.about + ': SelectedName needs a remoteNamespaceName of at most 63 lower case letters, digits and dashes, not \"' +
variables.remote + '\"'",
    ),
    wrong(
        "
variables.terms.all(term,
    size(term[?'matchExpressions'].orValue([])) > 0 || size(term[?'matchFields'].orValue([])) > 0)",
        "an empty term of clusterSelector selects nothing",
        "variables.about + ': an empty term of clusterSelector selects nothing: leave it out, or say what it requires'",
    ),
    wrong(
        "size(variables.oddKeys) == 0",
        "matchExpressions of clusterSelector have keys of labels",
        "variables.about + ': \"' + string(variables.oddKeys[0][0].key) + '\" in clusterSelector is not the key of a label'",
    ),
    wrong(
        "size(variables.oddOperators) == 0",
        "operators of clusterSelector are In, NotIn, Exists, DoesNotExist, Gt and Lt",
        "
variables.about + ': operator \"' + string(variables.oddOperators[0][0].operator) + '\" of ' +
string(variables.oddOperators[0][0].key) + ' is none of In, NotIn, Exists, DoesNotExist, Gt and Lt'",
    ),
    wrong(
        "size(variables.oddNumbers) == 0",
        "In and NotIn need values, Exists and DoesNotExist none, Gt and Lt one",
        "
variables.about + ': operator ' + string(variables.oddNumbers[0][0].operator) + ' of ' +
string(variables.oddNumbers[0][0].key) +
(variables.oddNumbers[0][0].operator in ['In', 'NotIn'] ? ' needs a value' :
 variables.oddNumbers[0][0].operator in ['Exists', 'DoesNotExist'] ? ' takes no values' : ' needs one whole number as value')",
    ),
    wrong(
        "size(variables.oddBounds) == 0",
        "Gt and Lt need a whole number",
        "
variables.about + ': operator ' + string(variables.oddBounds[0][0].operator) + ' of ' +
string(variables.oddBounds[0][0].key) + ' needs one whole number as value'",
    ),
    wrong(
        "size(variables.oddValues) == 0",
        "values in clusterSelector are values of labels",
        "
variables.about + ': a value of ' + string(variables.oddValues[0][0].key) + ' in clusterSelector is not the value of a label'",
    ),
    wrong(
        "size(variables.oddFields) == 0",
        "matchFields of clusterSelector have metadata.name, In or NotIn, and one value",
        "
variables.about + ': matchFields take key metadata.name, operator In or NotIn, and one value, not ' +
string(variables.oddFields[0][0].key) + ' ' + string(variables.oddFields[0][0].operator) + ' with ' +
string(size(variables.oddFields[0][0][?'values'].orValue([])))",
    ),
];

const fn wrong(holds: &'static str, rule: &'static str, says: &'static str) -> Check {
    Check { holds, refused: Refused::Invalid, rule, says }
}

/// The policy and its binding.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(OFFLOADING, VERSIONS, RESOURCES, &["CREATE", "UPDATE"])],
        conditions: &[("says-something-new", SAYS_SOMETHING_NEW)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::{label, offload::namespace};

    use super::*;
    use crate::objects::SYSTEM;

    #[test]
    fn it_knows_names_as_the_daemon_does() {
        assert!(CHECKS[0].holds.ends_with(&format!("== '{}'", namespace::NAME)));
        for word in [SYSTEM, label::COMMON_AREA] {
            assert!(CHECKS[1].holds.contains(&format!("'{word}'")), "{word}");
        }
    }
}
