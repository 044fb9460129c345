//! `freeport-bind-crds`: which CRDs a provider may bring into the cluster of a consumer.
//!
//! What a provider exports says which CRD the member installs. So the list of what may come is kept here: the member needs the right to create
//! objects of that API, which `freeport bind apiservice` gives when somebody agrees to it. Without this policy a provider, or whoever
//! runs as the member, could change every CRD of the cluster, and delete it with all its objects.
//!
//! A CRD is the member's if an APIServiceBinding controls it. Those of Services and of binding itself an administrator installs.

use super::{Check, Policy, Refused, member_own::IS_THE_MEMBER, requests_outside};
use crate::objects::{Object, rights::EXTENSIONS};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-bind-crds";

const VARIABLES: &[(&str, &str)] = &[
    ("stays", "request.operation != 'DELETE'"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    ("about", "'CustomResourceDefinition ' + string(variables.written.metadata.name)"),
    ("group", "string(variables.written.spec.group)"),
    ("plural", "string(variables.written.spec.names.plural)"),
    (
        "wasBound",
        "
variables.before.metadata.?ownerReferences.orValue([]).exists(owner,
    owner.kind == 'APIServiceBinding' && owner.apiVersion.startsWith('kube-bind.io/') &&
    owner[?'controller'].orValue(false))",
    ),
    (
        "isBound",
        "
variables.written.metadata.?ownerReferences.orValue([]).exists(owner,
    owner.kind == 'APIServiceBinding' && owner.apiVersion.startsWith('kube-bind.io/') &&
    owner[?'controller'].orValue(false))",
    ),
];

const CHECKS: &[Check] = &[
    Check {
        holds: "request.operation == 'CREATE' || variables.wasBound",
        refused: Refused::Forbidden,
        rule: "the member changes and deletes only CRDs that an APIServiceBinding controls",
        says: "variables.about + ' is not for freeport-member: no APIServiceBinding controls it'",
    },
    Check {
        holds: "variables.isBound",
        refused: Refused::Forbidden,
        rule: "CRDs that the member writes are controlled by an APIServiceBinding",
        says: "variables.about + ' must be controlled by an APIServiceBinding (metadata.ownerReferences)'",
    },
    Check {
        holds: "
!variables.stays ||
authorizer.group(variables.group).resource(variables.plural).check('create').allowed()",
        refused: Refused::Forbidden,
        rule: "the member installs only CRDs of APIs whose objects it may create",
        says: "
variables.about + ' is not agreed to: freeport-member may not create ' + variables.plural + '.' + variables.group +
' (freeport bind apiservice lets it)'",
    },
];

/// Holds in the whole cluster of a consumer.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests_outside(
            EXTENSIONS,
            &["v1"],
            &["customresourcedefinitions"],
            &["CREATE", "UPDATE", "DELETE"],
        )],
        conditions: &[("by-the-member", IS_THE_MEMBER)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::bind::binding::APIServiceBinding;
    use kube::Resource;

    use super::*;

    #[test]
    fn it_knows_bindings_as_the_daemon_does() {
        let [policy, _] = objects();
        let text = policy.body.to_string();
        assert!(text.contains(&format!("'{}'", APIServiceBinding::kind(&()))));
        assert!(text.contains(&format!("'{}/'", APIServiceBinding::group(&()))));
    }
}
