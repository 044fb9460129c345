//! `freeport-bind-objects-<plural>.<group>`: of an API that a provider offers, a consumer writes only objects of its own.
//!
//! RBAC cannot say it: where two consumers share a Namespace, or where objects have none, the names of a consumer's objects are not known
//! before. There is one policy for each API, so that offering one more, or the same one twice, changes nothing about the others.
//!
//! A consumer is a ServiceAccount `kube-binder`, and its cluster namespace is the Namespace of that account. An object is a consumer's if its
//! annotation says so. Somebody at the provider may take that off; then the object is still its consumer's if konnectors applied it and it is
//! where that consumer alone has objects, so that it can put the annotation back. What somebody marked to be adopted is whose
//! who comes first.
//!
//! What a consumer may read, no policy can say: admission knows writes only.

use api::bind::resource::{Isolation, Resource};
use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use super::{Check, Policy, Refused, requests};
use crate::objects::Object;

/// What the names of the policies and of their bindings begin with. Without the binding a policy is off.
const NAME: &str = "freeport-bind-objects";

/// Names of accounts have no colons.
pub(super) const IS_A_CONSUMER: &str = "
request.userInfo.username.startsWith('system:serviceaccount:') && request.userInfo.username.endsWith(':kube-binder')";

const VARIABLES: &[(&str, &str)] = &[
    ("consumer", "request.userInfo.username.split(':')[2]"),
    ("stays", "request.operation != 'DELETE'"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    ("objectName", "string(variables.written.metadata.name)"),
    ("isInNamespace", "has(request.namespace) && request.namespace != ''"),
    (
        "about",
        "
request.kind.kind + ' ' + (variables.isInNamespace ? request.namespace + '/' : '') + variables.objectName",
    ),
    (
        "says",
        "
string(variables.written.metadata.?annotations[?'kube-bind.io/cluster-namespace'].orValue(''))",
    ),
    ("annotationsBefore", "variables.before.metadata.?annotations.orValue({})"),
    ("saidBefore", "string(variables.annotationsBefore[?'kube-bind.io/cluster-namespace'].orValue(''))"),
    // Where no other consumer has objects: in a Namespace of its own that it does not share, or under a name or an owner of its own.
    (
        "isItsPlace",
        "
variables.isInNamespace ?
request.namespace == variables.consumer || request.namespace.startsWith(variables.consumer + '-') ||
namespaceObject.metadata.?annotations[?'multicluster.freeport.dev/shared'].orValue('') != 'true' &&
namespaceObject.metadata.?annotations[?'kube-bind.io/api-service-namespace'].orValue('')
    .startsWith(variables.consumer + '/') :
variables.objectName.startsWith(variables.consumer + '-') ||
variables.before.metadata.?ownerReferences.orValue([]).exists(owner,
    owner.kind == 'Namespace' && owner.name == variables.consumer)",
    ),
    (
        "wasApplied",
        "
variables.before.metadata.?managedFields.orValue([]).exists(entry,
    entry[?'manager'].orValue('') == 'kube-bind.io' && entry[?'operation'].orValue('') == 'Apply' &&
    entry[?'subresource'].orValue('') == '')",
    ),
    (
        "wasIts",
        "
variables.saidBefore == variables.consumer ||
variables.saidBefore == '' &&
(variables.annotationsBefore[?'multicluster.freeport.dev/adopt'].orValue('') == 'true' ||
 variables.isItsPlace && variables.wasApplied)",
    ),
    ("finalizersBefore", "variables.before.metadata.?finalizers.orValue([])"),
];

const CHECKS: &[Check] = &[
    // No request of a konnector; each object would be looked at alone, and those before the first that is refused would be gone.
    Check {
        holds: "variables.stays || has(request.name) && request.name != ''",
        refused: Refused::Forbidden,
        rule: "a consumer deletes its objects one by one",
        says: "
variables.about + ' is not deleted with others: consumer ' + variables.consumer + ' deletes its objects one by one'",
    },
    Check {
        holds: "request.operation == 'CREATE' || variables.wasIts",
        refused: Refused::Forbidden,
        rule: "a consumer changes and deletes only its own objects",
        says: "
variables.about + ' is not for consumer ' + variables.consumer + ': ' +
(variables.saidBefore == '' ? 'no consumer made it, and it is not annotated multicluster.freeport.dev/adopt: true' :
 'it is of another consumer, ' + variables.saidBefore)",
    },
    Check {
        holds: "!variables.stays || variables.says == variables.consumer",
        refused: Refused::Forbidden,
        rule: "what a consumer writes has its cluster namespace in the annotation kube-bind.io/cluster-namespace",
        says: "
variables.about + ' must have the annotation kube-bind.io/cluster-namespace: ' + variables.consumer +
', not \"' + variables.says + '\"'",
    },
    // What it has under another name already was made when the API was offered otherwise.
    Check {
        holds: "
!variables.isPrefixed || variables.isInNamespace || !variables.stays || variables.saidBefore == variables.consumer ||
variables.objectName.startsWith(variables.consumer + '-')",
        refused: Refused::Forbidden,
        rule: "names of a consumer's objects outside of Namespaces begin with its cluster namespace",
        says: "
variables.about + ' must be named ' + variables.consumer +
'-...: this API is offered with isolation Prefixed (freeport bind offer --isolation none offers it without)'",
    },
    // It would keep the object, and the Namespace it is in, from going.
    Check {
        holds: "
!variables.stays || variables.written.metadata.?finalizers.orValue([]).all(finalizer,
    finalizer in variables.finalizersBefore)",
        refused: Refused::Forbidden,
        rule: "a consumer adds no finalizers",
        says: "variables.about + ' must not get finalizers from consumer ' + variables.consumer",
    },
];

/// For one API. Names outside of Namespaces are free where the API is offered without a prefix.
pub(crate) fn objects(api: &Resource, isolation: Isolation) -> [Object; 2] {
    let is_prefixed = if isolation == Isolation::None { "false" } else { "true" };
    Policy {
        name: &format!("{NAME}-{}", api.name()),
        requests: vec![of(api)],
        conditions: &[("by-a-consumer", IS_A_CONSUMER)],
        namespaces: None,
        variables: &[&[("isPrefixed", is_prefixed)], VARIABLES].concat(),
        checks: CHECKS,
    }
    .objects()
}

/// In Namespaces or outside, and of whatever version: one that is served later is no way round.
fn of(api: &Resource) -> NamedRuleWithOperations {
    let plural = api.resource.as_str();
    let (status, scale) = (format!("{plural}/status"), format!("{plural}/scale"));
    let all = requests(&api.group, &["*"], &[plural, &status, &scale], &["CREATE", "UPDATE", "DELETE"]);
    NamedRuleWithOperations { scope: Some("*".into()), ..all }
}

#[cfg(test)]
mod tests {
    use api::bind::label;

    use super::*;

    fn policy(isolation: Isolation) -> Object {
        let api = Resource { group: "example.com".into(), resource: "mangodbs".into(), versions: Vec::new() };
        let [policy, _] = objects(&api, isolation);
        policy
    }

    #[test]
    fn it_knows_annotations_as_the_daemons_do() {
        let policy = policy(Isolation::Prefixed);
        assert_eq!(policy.name, "freeport-bind-objects-mangodbs.example.com");
        let text = policy.body.to_string();
        for word in [label::CLUSTER_NAMESPACE, label::API_SERVICE_NAMESPACE, label::SHARED, label::ADOPT] {
            assert!(text.contains(&format!("'{word}'")), "{word}");
        }
    }

    #[test]
    fn names_need_a_prefix_unless_it_is_offered_without() {
        let first = |isolation| policy(isolation).body["spec"]["variables"][0]["expression"].clone();
        assert_eq!(first(Isolation::Prefixed), "true");
        assert_eq!(first(Isolation::Namespaced), "true");
        assert_eq!(first(Isolation::None), "false");
    }
}
