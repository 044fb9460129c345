//! `freeport-member-own`: of what the member's ServiceAccount may write by its rights, it writes only what Freeport makes.
//!
//! RBAC cannot say it: the names of imports are not known before, and `create` knows no names at all. Without this policy whoever
//! runs as the member could change and delete every Service of the cluster, or add endpoints to it.
//!
//! An object is the member's if it has our label (a slice two of them, since Kubernetes copies labels of a Service to slices of its
//! own), or if its field managers name the member: then somebody took the label off, and the member has to be able to put it back.
//! Nobody else's object gets there, because the member never wrote to it. What is there afterwards always has the label. An imported Service whose spec somebody else changed can still be written, but what
//! would reach further than an import (selector, external addresses, another type) is only ever taken away. The same holds for
//! finalizers.
//!
//! A kind that the member writes is a line in [`objects`], and by default falls under the rule for labels; a test in
//! `cli/tests/manifests` finds the one that was forgotten.

use super::{Check, Policy, Refused, requests, requests_outside};
use crate::objects::{
    Object,
    rights::{ABOUT, COORDINATION, CORE, DISCOVERY, EVENTS, MCS},
};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-member-own";

pub(super) const IS_THE_MEMBER: &str =
    "request.userInfo.username == 'system:serviceaccount:freeport-system:freeport-member'";

/// Of those, policy `freeport-offload` says which are the member's.
const IS_NO_NODE_LEASE: &str =
    "request.resource.resource != 'leases' || request.namespace != 'kube-node-lease'";

const VARIABLES: &[(&str, &str)] = &[
    ("resource", "request.resource.resource"),
    ("stays", "request.operation != 'DELETE'"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    ("metadata", "variables.written.metadata"),
    ("objectName", "string(variables.metadata.name)"),
    ("about", "request.kind.kind + ' ' + request.namespace + '/' + variables.objectName"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    // Events, the note and the Lease are told apart by other things than labels.
    ("isEvent", "variables.resource == 'events'"),
    ("isNamed", "variables.resource in ['configmaps', 'leases']"),
    ("isLabelled", "!variables.isEvent && !variables.isNamed"),
    // Whose objects others find by name: a ServiceImport is named as its Service.
    ("isDerived", "variables.isLabelled && !(variables.resource in ['serviceimports', 'clusterproperties'])"),
    // A dry run of this name asks the API server for its IP families; nothing comes of it.
    (
        "isQuestion",
        "
variables.resource == 'services' && has(request.dryRun) && request.dryRun &&
variables.objectName.startsWith('freeport-families-')",
    ),
    ("labels", "variables.metadata.?labels.orValue({})"),
    (
        "wasOurs",
        "
variables.before.metadata.?labels[?'app.kubernetes.io/managed-by'].orValue('') == 'freeport' &&
(variables.resource != 'endpointslices' ||
 variables.before.metadata.?labels[?'endpointslice.kubernetes.io/managed-by'].orValue('') == 'freeport') ||
variables.before.metadata.?managedFields.orValue([]).exists(entry,
    entry[?'manager'].orValue('') == 'freeport-member')",
    ),
    ("service", "variables.resource == 'services' ? variables.written.?spec.orValue({}) : dyn({})"),
    ("serviceBefore", "variables.resource == 'services' ? variables.before.?spec.orValue({}) : dyn({})"),
];

const CHECKS: &[Check] = &[
    // The Lease of API binding is that of kube-bind's konnectors; a Role in its Namespace lets the member have it.
    Check {
        holds: "
!variables.isNamed ||
variables.objectName in (variables.resource == 'leases' ? ['freeport-member', 'freeport-member-active'] : ['freeport-membership']) ||
variables.resource == 'leases' && request.namespace == 'kube-bind' && variables.objectName == 'kube-bind'",
        refused: Refused::Forbidden,
        rule: "the member writes only ConfigMap freeport-membership and Leases freeport-member and freeport-member-active",
        says: "
variables.about + ' is not for freeport-member: it writes only ConfigMap freeport-membership and Leases freeport-member and freeport-member-active'",
    },
    Check {
        holds: "
!variables.isEvent ||
variables.written.?reportingController.orValue('') == 'freeport-member' &&
(request.operation == 'CREATE' || variables.before.?reportingController.orValue('') == 'freeport-member')",
        refused: Refused::Forbidden,
        rule: "the member writes only Events that it reports itself",
        says: "variables.about + ' is not for freeport-member: it writes only Events whose reportingController it is'",
    },
    Check {
        holds: "
!variables.isDerived || variables.objectName.startsWith('antrea-mc-') || variables.isQuestion",
        refused: Refused::Forbidden,
        rule: "names of Services, EndpointSlices and Endpoints that the member writes begin with antrea-mc-",
        says: "variables.about + ' is not for freeport-member: what it writes of this kind is named antrea-mc-...'",
    },
    Check {
        holds: "
variables.resource != 'clusterproperties' ||
variables.objectName in ['cluster.clusterset.k8s.io', 'clusterset.k8s.io']",
        refused: Refused::Forbidden,
        rule: "the member writes only ClusterProperties cluster.clusterset.k8s.io and clusterset.k8s.io",
        says: "
variables.about + ' is not for freeport-member: it writes only ClusterProperties cluster.clusterset.k8s.io and clusterset.k8s.io'",
    },
    Check {
        holds: "!variables.isLabelled || request.operation == 'CREATE' || variables.wasOurs",
        refused: Refused::Forbidden,
        rule: "the member changes and deletes only what it made",
        says: "
variables.about + ' is not for freeport-member: it has no label app.kubernetes.io/managed-by: freeport, and freeport-member never wrote it'",
    },
    Check {
        holds: "
!variables.isLabelled || !variables.stays ||
variables.labels[?'app.kubernetes.io/managed-by'].orValue('') == 'freeport'",
        refused: Refused::Forbidden,
        rule: "what the member writes has the label app.kubernetes.io/managed-by: freeport",
        says: "variables.about + ' must have the label app.kubernetes.io/managed-by: freeport'",
    },
    // kube-proxy sends the clients of a Service to all slices with its name, whoever wrote them.
    Check {
        holds: "
variables.resource != 'endpointslices' || !variables.stays ||
variables.labels[?'kubernetes.io/service-name'].orValue('').startsWith('antrea-mc-') &&
variables.labels[?'endpointslice.kubernetes.io/managed-by'].orValue('') == 'freeport'",
        refused: Refused::Forbidden,
        rule: "the member writes EndpointSlices of imported Services only",
        says: "
variables.about + ' must have the labels endpointslice.kubernetes.io/managed-by: freeport and kubernetes.io/service-name: antrea-mc-..., not \"' +
variables.labels[?'kubernetes.io/service-name'].orValue('') + '\"'",
    },
    Check {
        holds: "
['ClusterIP', string(variables.serviceBefore[?'type'].orValue('ClusterIP'))].exists(kept,
    variables.service[?'type'].orValue('ClusterIP') == kept) &&
['selector', 'externalIPs', 'externalName'].all(field,
    !(field in variables.service) || variables.service[field] == variables.serviceBefore[?field].orValue(''))",
        refused: Refused::Forbidden,
        rule: "an imported Service is of type ClusterIP, without selector, externalIPs and externalName",
        says: "
variables.about + ' must be of type ClusterIP, without selector, externalIPs and externalName: it is an imported Service'",
    },
    // A finalizer would keep a Namespace from going.
    Check {
        holds: "
!variables.stays || variables.metadata.?finalizers.orValue([]).all(finalizer,
    finalizer in variables.before.metadata.?finalizers.orValue([]))",
        refused: Refused::Forbidden,
        rule: "the member adds no finalizers",
        says: "variables.about + ' must not get finalizers from freeport-member'",
    },
];

/// Holds in all Namespaces of the member's cluster.
pub(crate) fn objects() -> [Object; 2] {
    let all = &["CREATE", "UPDATE", "DELETE"];
    Policy {
        name: NAME,
        requests: vec![
            requests(CORE, &["v1"], &["services", "endpoints", "configmaps"], all),
            requests(DISCOVERY, &["v1"], &["endpointslices"], all),
            requests(MCS, &["v1alpha1", "v1beta1"], &["serviceimports", "serviceimports/status"], all),
            requests_outside(ABOUT, &["v1alpha1", "v1beta1"], &["clusterproperties"], all),
            requests(COORDINATION, &["v1"], &["leases"], all),
            requests(EVENTS, &["v1"], &["events"], all),
        ],
        conditions: &[("by-the-member", IS_THE_MEMBER), ("no-lease-of-a-node", IS_NO_NODE_LEASE)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::{about, label, membership, name};

    use super::*;
    use crate::objects::SYSTEM;

    #[test]
    fn it_knows_names_and_labels_as_the_daemon_does() {
        let account = format!("'system:serviceaccount:{SYSTEM}:{}'", label::MEMBER);
        assert!(IS_THE_MEMBER.ends_with(&account), "{account}");
        let [policy, _] = objects();
        let text = policy.body.to_string();
        for word in [
            format!("'{}'", label::IMPORTED_PREFIX),
            format!("{}'].orValue('') == '{}'", label::MANAGED_BY, label::FREEPORT),
            format!("{}'].orValue('') == '{}'", label::SLICE_MANAGED_BY, label::FREEPORT),
            format!("'{}'", label::SERVICE_NAME),
            format!("['{}', '{}']", about::CLUSTER_ID, about::CLUSTER_SET),
            format!("'manager'].orValue('') == '{}'", label::MEMBER),
            format!(
                "['{}', '{}'] : ['{}']",
                label::MEMBER,
                name::active_lease(label::MEMBER),
                membership::NAME
            ),
        ] {
            assert!(text.contains(&word), "{word}");
        }
        for service in ["web", &"w".repeat(63)] {
            assert!(name::imported_slice(service, "record").starts_with(label::IMPORTED_PREFIX));
        }
    }
}
