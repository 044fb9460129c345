//! `freeport-exports`: a ServiceExport is refused where the administrator does not want any (rule R-7), and with labels or annotations
//! that no ServiceImport could have.
//!
//! Deletions, the status and updates that change nothing are not checked: an existing export can always end. The
//! member itself exports nothing from an excluded Namespace either, so an export that was there before is withdrawn.

use super::{Check, Policy, Refused, requests};
use crate::objects::{Object, rights::MCS};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-exports";

/// Labels, annotations and finalizers of an export that was there before may still change.
const SAYS_SOMETHING_NEW: &str = "
!has(object.metadata.deletionTimestamp) &&
(request.operation == 'CREATE' || dyn(object).?spec.orValue({}) != dyn(oldObject).?spec.orValue({}))";

/// As an API server wants the keys of labels and annotations: `api::name::is_qualified_name`. It compares those of annotations in
/// lower case.
const VARIABLES: &[(&str, &str)] = &[
    ("about", "'ServiceExport ' + request.namespace + '/' + string(dyn(object).metadata.name)"),
    ("spec", "dyn(object).?spec.orValue({})"),
    ("labels", "variables.spec[?'exportedLabels'].orValue({})"),
    ("annotations", "variables.spec[?'exportedAnnotations'].orValue({})"),
    ("keys", "variables.labels.map(key, string(key)) + variables.annotations.map(key, string(key).lowerAscii())"),
    (
        "oddKeys",
        "
variables.keys.filter(key, key.indexOf('/') > 253 || !key.matches(
    '^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
    ),
    (
        "oddValues",
        "
variables.labels.map(key, string(variables.labels[key]))
    .filter(value, value != '' && !value.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",
    ),
];

const CHECKS: &[Check] = &[
    Check {
        holds: "
dyn(namespaceObject).metadata.?labels[?'multicluster.freeport.dev/export'].orValue('') != 'false'",
        refused: Refused::Forbidden,
        rule: "nothing is exported from a Namespace with the label multicluster.freeport.dev/export: \"false\"",
        says: "
variables.about + ' is refused: the administrator excluded Namespace ' + request.namespace +
' from exporting, by its label multicluster.freeport.dev/export: \"false\"'",
    },
    Check {
        holds: "size(variables.oddKeys) == 0",
        refused: Refused::Invalid,
        rule: "exportedLabels and exportedAnnotations have keys of labels and annotations",
        says: "
variables.about + ': \"' + variables.oddKeys[0] +
'\" in exportedLabels or exportedAnnotations is no key that an object could have'",
    },
    Check {
        holds: "size(variables.oddValues) == 0",
        refused: Refused::Invalid,
        rule: "exportedLabels have values of labels",
        says: "
variables.about + ': \"' + variables.oddValues[0] + '\" in exportedLabels is no value that a label could have'",
    },
];

/// The policy and its binding.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(MCS, &["v1alpha1", "v1beta1"], &["serviceexports"], &["CREATE", "UPDATE"])],
        conditions: &[("says-something-new", SAYS_SOMETHING_NEW)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::label;

    use super::*;

    #[test]
    fn the_label_is_the_one_the_member_looks_at() {
        assert!(CHECKS[0].holds.contains(&format!("[?'{}']", label::EXPORT)));
        assert!(CHECKS[0].says.contains(&format!("{}: \"{}\"", label::EXPORT, label::FALSE)));
    }
}
