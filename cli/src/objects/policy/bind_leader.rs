//! `freeport-bind-leader`: of what API binding needs, the leader's ServiceAccount writes only what is of a contract.
//!
//! Its rights are on all Namespaces, since RBAC knows no selectors. Without this policy whoever runs as the leader could delete every Namespace,
//! take the token of any ServiceAccount, and give itself or anybody else what it may give to consumers.
//!
//! - A Namespace is the leader's if its label says so: a cluster namespace, or one that stands for a Namespace of a consumer. One that
//!   somebody lets it use (annotation `multicluster.freeport.dev/adopt`) gets RoleBindings and nothing else.
//!   It says of one that it made for several consumers that they share it.
//! - In a cluster namespace it writes the account of the consumer and its kubeconfig, under their names.
//! - It gives rights to that account alone, and of ClusterRoles those that it has the right to `bind`: that of cluster namespaces, nowhere
//!   else, and those of APIs that are offered.
//! - It puts the requests of that account on the level of members, named as the cluster namespace.
//! - In its own Namespace it answers requests by Secrets. Those that Freeport installs, and tokens of accounts, are none.
//!
//! What it may write in Common Areas, Roles say: nothing of these kinds.

use super::{Check, Policy, Refused, requests, requests_outside};
use crate::objects::{
    Object,
    rights::{CORE, FLOW_CONTROL, RBAC},
};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-bind-leader";

const IS_THE_LEADER: &str =
    "request.userInfo.username == 'system:serviceaccount:freeport-system:freeport-leader'";

const VARIABLES: &[(&str, &str)] = &[
    ("resource", "request.resource.resource"),
    ("isNamespace", "variables.resource == 'namespaces'"),
    ("isAccount", "variables.resource == 'serviceaccounts'"),
    ("isSecret", "variables.resource == 'secrets'"),
    ("isBinding", "variables.resource == 'rolebindings'"),
    ("isBindingOfAll", "variables.resource == 'clusterrolebindings'"),
    ("isFlow", "variables.resource == 'flowschemas'"),
    ("stays", "request.operation != 'DELETE'"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    ("metadata", "variables.written.metadata"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    // A request for a token has the name of the account in its path alone.
    (
        "objectName",
        "
has(request.subResource) && request.subResource == 'token' ? request.name : string(variables.metadata.name)",
    ),
    // Only of objects in Namespaces.
    (
        "about",
        "
request.kind.kind + ' ' + (variables.isNamespace || variables.isBindingOfAll || variables.isFlow ? '' : request.namespace + '/') +
variables.objectName + ' is not for freeport-leader: '",
    ),
    ("is", "string(variables.metadata.?labels[?'multicluster.freeport.dev/bind'].orValue(''))"),
    ("was", "string(variables.before.metadata.?labels[?'multicluster.freeport.dev/bind'].orValue(''))"),
    // The Namespace that the object is in.
    (
        "within",
        "
string(namespaceObject.metadata.?labels[?'multicluster.freeport.dev/bind'].orValue(''))",
    ),
    (
        "madeFor",
        "
string(namespaceObject.metadata.?annotations[?'kube-bind.io/api-service-namespace'].orValue(''))",
    ),
    (
        "isAdopted",
        "
namespaceObject.metadata.?annotations[?'multicluster.freeport.dev/adopt'].orValue('') == 'true'",
    ),
    // Several consumers have objects in it.
    (
        "isShared",
        "
variables.within == 'objects' &&
namespaceObject.metadata.?annotations[?'multicluster.freeport.dev/shared'].orValue('') == 'true'",
    ),
    ("subjects", "variables.written.?subjects.orValue([])"),
    // The cluster namespace of the consumer that gets rights; nothing where it is somebody else.
    (
        "consumer",
        "
size(variables.subjects) == 1 && variables.subjects[0].kind == 'ServiceAccount' &&
variables.subjects[0].name == 'kube-binder' ? string(variables.subjects[0][?'namespace'].orValue('')) : ''",
    ),
    (
        "isRoleOfContracts",
        "
variables.written.roleRef.kind == 'ClusterRole' && variables.written.roleRef.name == 'kube-binder'",
    ),
];

const CHECKS: &[Check] = &[
    Check {
        holds: "!variables.isNamespace || request.operation == 'CREATE' || variables.was in ['contract', 'objects']",
        refused: Refused::Forbidden,
        rule: "the leader changes and deletes only Namespaces that it made for consumers",
        says: "
variables.about + 'it has no label multicluster.freeport.dev/bind, so it was not made for a consumer'",
    },
    Check {
        holds: "
!variables.isNamespace || !variables.stays ||
variables.is in ['contract', 'objects'] && (request.operation == 'CREATE' || variables.is == variables.was)",
        refused: Refused::Forbidden,
        rule: "Namespaces that the leader writes have the label multicluster.freeport.dev/bind, and keep its value",
        says: "
'Namespace ' + variables.objectName + ' must have the label multicluster.freeport.dev/bind: ' +
(variables.was == '' ? 'contract or objects' : variables.was)",
    },
    // Among them requests for a token.
    Check {
        holds: "!variables.isAccount || variables.within == 'contract' && variables.objectName == 'kube-binder'",
        refused: Refused::Forbidden,
        rule: "of ServiceAccounts the leader writes kube-binder of cluster namespaces, and takes tokens of them alone",
        says: "
variables.about + 'it writes ServiceAccount kube-binder of cluster namespaces alone, and takes tokens of no other'",
    },
    Check {
        holds: "
!variables.isSecret ||
variables.within == 'contract' && variables.objectName == 'kubeconfig' ||
request.namespace == 'freeport-system' &&
variables.before.metadata.?labels[?'app.kubernetes.io/managed-by'].orValue('') != 'freeport'",
        refused: Refused::Forbidden,
        rule: "the leader writes Secret kubeconfig of cluster namespaces, and answers in freeport-system",
        says: "
variables.about + 'it writes Secret kubeconfig of cluster namespaces, and in freeport-system those that Freeport did not install'",
    },
    // Kubernetes would write the token of whatever account it names into it.
    Check {
        holds: "
!variables.isSecret || variables.written.?type.orValue('Opaque') in ['', 'Opaque']",
        refused: Refused::Forbidden,
        rule: "Secrets that the leader writes are of type Opaque",
        says: "
variables.about + 'it writes Secrets of type Opaque, not ' + string(variables.written.?type.orValue(''))",
    },
    Check {
        holds: "!variables.isBinding && !variables.isBindingOfAll || variables.consumer != ''",
        refused: Refused::Forbidden,
        rule: "the leader gives rights to ServiceAccount kube-binder of one consumer",
        says: "variables.about + 'it gives rights to ServiceAccount kube-binder of one cluster namespace, and to nobody else'",
    },
    Check {
        holds: "
!variables.isBinding || !variables.stays ||
(variables.within == 'contract' ? variables.consumer == request.namespace :
 variables.isAdopted || variables.isShared || variables.madeFor.startsWith(variables.consumer + '/'))",
        refused: Refused::Forbidden,
        rule: "the leader gives a consumer rights in its cluster namespace, and in Namespaces that are for it",
        says: "variables.about + 'Namespace ' + request.namespace + ' is not for consumer ' + variables.consumer",
    },
    // Those it did not make have other names.
    Check {
        holds: "
!variables.isBinding && !variables.isBindingOfAll ||
variables.objectName.startsWith('kube-binder-' + variables.consumer + '-') ||
variables.isBinding && variables.within == 'contract' && variables.objectName == 'kube-binder'",
        refused: Refused::Forbidden,
        rule: "what gives a consumer rights is named after it",
        says: "variables.about + 'what gives a consumer rights is named kube-binder-' + variables.consumer + '-<API>'",
    },
    // Elsewhere it would be the right to read all Secrets.
    Check {
        holds: "
!variables.isBinding && !variables.isBindingOfAll || !variables.stays ||
(variables.isRoleOfContracts ? variables.isBinding && variables.within == 'contract' :
 variables.written.roleRef.kind == 'ClusterRole' &&
 authorizer.group('rbac.authorization.k8s.io').resource('clusterroles').name(variables.written.roleRef.name)
     .check('bind').allowed())",
        refused: Refused::Forbidden,
        rule: "the leader gives ClusterRole kube-binder in cluster namespaces, and elsewhere those of offered APIs",
        says: "
variables.about + variables.written.roleRef.kind + ' ' + variables.written.roleRef.name +
' is not one that it gives here: in cluster namespaces that is kube-binder, and elsewhere those of APIs that are offered'",
    },
    Check {
        holds: "
!variables.isBindingOfAll || !variables.stays ||
variables.metadata.?ownerReferences.orValue([]).exists(owner,
    owner.kind == 'Namespace' && owner.name == variables.consumer)",
        refused: Refused::Forbidden,
        rule: "what a consumer may do everywhere goes with its cluster namespace",
        says: "
variables.about + 'it must be owned by Namespace ' + variables.consumer + ' (metadata.ownerReferences)'",
    },
    // On another level, or before others, requests could wait for nobody, or everybody for them.
    Check {
        holds: "
!variables.isFlow || !variables.stays ||
variables.written.spec.priorityLevelConfiguration.name == 'freeport-members' &&
variables.written.spec.?matchingPrecedence.orValue(1000) >= 8000 &&
variables.written.spec.?rules.orValue([]).all(rule, rule.subjects.all(subject,
    subject.kind == 'ServiceAccount' && subject.serviceAccount.name == 'kube-binder' &&
    subject.serviceAccount.namespace == variables.objectName))",
        refused: Refused::Forbidden,
        rule: "the leader puts ServiceAccount kube-binder of a cluster namespace on level freeport-members",
        says: "
variables.about + 'it puts requests of ServiceAccount ' + variables.objectName + '/kube-binder on level freeport-members, after precedence 8000'",
    },
    // A finalizer would keep what it is on from going.
    Check {
        holds: "
!variables.stays || variables.metadata.?finalizers.orValue([]).all(finalizer,
    finalizer == 'multicluster.freeport.dev/bind' ||
    finalizer in variables.before.metadata.?finalizers.orValue([]))",
        refused: Refused::Forbidden,
        rule: "the leader adds no finalizers but its own",
        says: "variables.about + 'it adds no finalizer but multicluster.freeport.dev/bind'",
    },
];

/// Holds in the whole cluster of a provider.
pub(crate) fn objects() -> [Object; 2] {
    let all = &["CREATE", "UPDATE", "DELETE"];
    Policy {
        name: NAME,
        requests: vec![
            requests_outside(CORE, &["v1"], &["namespaces"], all),
            requests(CORE, &["v1"], &["serviceaccounts", "serviceaccounts/token", "secrets"], all),
            requests(RBAC, &["v1"], &["rolebindings"], all),
            requests_outside(RBAC, &["v1"], &["clusterrolebindings"], all),
            requests_outside(FLOW_CONTROL, &["*"], &["flowschemas"], all),
        ],
        conditions: &[("by-the-leader", IS_THE_LEADER)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::{bind::label as bind, label};

    use super::*;
    use crate::objects::SYSTEM;

    #[test]
    fn it_knows_names_and_labels_as_the_daemon_does() {
        let account = format!("'system:serviceaccount:{SYSTEM}:{}'", label::LEADER);
        assert!(IS_THE_LEADER.ends_with(&account), "{account}");
        let [policy, _] = objects();
        let text = policy.body.to_string();
        for word in [
            format!("'{}'", bind::BIND),
            format!("['{}', '{}']", bind::CONTRACT, bind::OBJECTS),
            format!("'{}'", bind::API_SERVICE_NAMESPACE),
            format!("'{}'", bind::ADOPT),
            format!("'{}'", bind::SHARED),
            format!("finalizer == '{}'", bind::BIND_FINALIZER),
            format!("'{}'].orValue('') != '{}'", label::MANAGED_BY, label::FREEPORT),
        ] {
            assert!(text.contains(&word), "{word}");
        }
    }
}
