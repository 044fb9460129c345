//! `freeport-offload`: of what offloading needs, the member's ServiceAccount writes only what is its own.
//!
//! Its rights are on all Namespaces and Nodes, since RBAC knows no selectors. Without this policy whoever runs as the member could
//! delete every Namespace, or let a Node that is none take Pods of everybody.
//!
//! - A Namespace is the member's if its labels say that Freeport made it for another cluster. `app.kubernetes.io/managed-by` alone does
//!   not: `freeport-system` and Common Areas have it too. Somebody may take labels off; then the annotation counts that names the
//!   NamespaceMap, if the member wrote it, since on other Namespaces it writes a label alone.
//! - A Node is the member's if its labels say that it is a virtual one of Freeport's, or if the member ever wrote it.
//! - A NamespaceOffloading is its user's, but for its status and the member's finalizer. The member makes and deletes those that a label
//!   of the Namespace asks for.
//! - The Secrets with the webhook's certificate and with the member's key, and the Leases of virtual nodes, have names.
//!
//! - A Pod is the member's in a twin, with the label by which it finds it there, if it had that label before or the member made it. Of a
//!   Pod on a virtual node it says how that is, and deletes it when it has ended there.
//! - The RoleBinding by which it makes Pods has one name, one ClusterRole and one subject, in twins.
//!
//! Pods of a Namespace that is not offloaded never depend on the webhook, so the label by which it is asked goes to no Namespace
//! that never is.

mod variables;

use self::variables::VARIABLES;
use super::{Check, Policy, Refused, member_own::IS_THE_MEMBER, requests, requests_outside};
use crate::objects::{
    Object,
    rights::{COORDINATION, CORE, OFFLOADING, RBAC},
};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-offload";

/// Leases that policy `freeport-member-own` is about are not looked at, nor what other Secrets the member may change, which it has by Roles with
/// their names: its credential for the leader, and in another Namespace those of API binding.
const IS_OF_OFFLOADING: &str = "
(request.resource.resource != 'leases' || request.namespace == 'kube-node-lease') &&
(request.resource.resource != 'secrets' || request.namespace == 'freeport-system' &&
 (request.operation != 'UPDATE' || request.name in ['freeport-webhook-tls', 'freeport-offload-key']))";

const CHECKS: &[Check] = &[
    Check {
        holds: "
!variables.isNamespace || variables.isTheLabel || request.operation == 'CREATE' || variables.wasOurs",
        refused: Refused::Forbidden,
        rule: "of Namespaces that it did not make, the member changes label liqo.io/scheduling-enabled alone",
        says: "
variables.about + 'it did not make it, and changes only label liqo.io/scheduling-enabled of it'",
    },
    Check {
        holds: "
!variables.isOfTheSystem || variables.isTheLabel && !('liqo.io/scheduling-enabled' in variables.labels)",
        refused: Refused::Forbidden,
        rule: "kube-*, freeport-system and Common Areas take no part in offloading",
        says: "variables.about + 'kube-*, freeport-system and Common Areas take no part in offloading'",
    },
    Check {
        holds: "!variables.isNamespace || request.operation != 'CREATE' || variables.objectName != 'default'",
        refused: Refused::Forbidden,
        rule: "default is never a twin",
        says: "variables.about + 'it is never a twin'",
    },
    Check {
        holds: "!variables.isNode || variables.objectName.startsWith('freeport-')",
        refused: Refused::Forbidden,
        rule: "names of virtual nodes begin with freeport-",
        says: "variables.about + 'its Nodes are named freeport-<cluster ID>'",
    },
    Check {
        holds: "!variables.isNode || request.operation == 'CREATE' || variables.wasOurs",
        refused: Refused::Forbidden,
        rule: "the member changes and deletes only Nodes that it made",
        says: "variables.about + 'it did not make it'",
    },
    Check {
        holds: "
!variables.isSecret || variables.objectName in ['freeport-webhook-tls', 'freeport-offload-key'] &&
(request.operation == 'CREATE' || variables.wasOurs)",
        refused: Refused::Forbidden,
        rule: "the member writes only Secrets freeport-webhook-tls and freeport-offload-key, unless somebody else made them",
        says: "
variables.about + 'of Secrets it writes only freeport-webhook-tls and freeport-offload-key, and not if somebody else made them'",
    },
    Check {
        holds: "
!variables.stays || variables.isStatus || variables.isTheLabel && !variables.wasOurs ||
!(variables.isNamespace || variables.isNode || variables.isSecret) || variables.isMarked",
        refused: Refused::Forbidden,
        rule: "what the member makes is marked as its own",
        says: "
request.kind.kind + ' ' + variables.objectName + ' must have the label app.kubernetes.io/managed-by: freeport' +
(variables.isNamespace ? ', and liqo.io/remote-cluster-id with the ID of its home' :
 variables.isNode ? ', and liqo.io/type: virtual-node' : '')",
    },
    // Without it any Pod could be bound there, and show that cluster what it is made of.
    Check {
        holds: "
!variables.isNode || !variables.stays || variables.isStatus ||
variables.written.?spec.?taints.orValue([]).exists(taint,
    taint[?'key'].orValue('') == 'virtual-node.liqo.io/not-allowed' && taint[?'effect'].orValue('') == 'NoExecute')",
        refused: Refused::Forbidden,
        rule: "a virtual node has the taint virtual-node.liqo.io/not-allowed:NoExecute",
        says: "
'Node ' + variables.objectName + ' must have the taint virtual-node.liqo.io/not-allowed with effect NoExecute'",
    },
    Check {
        holds: "variables.resource != 'leases' || variables.objectName.startsWith('freeport-')",
        refused: Refused::Forbidden,
        rule: "of Leases of Nodes the member writes those of virtual nodes",
        says: "variables.about + 'it renews Leases of virtual nodes only, which are named freeport-<cluster ID>'",
    },
    Check {
        holds: "
!variables.isPod ||
(variables.isStatus ? variables.isOnVirtualNode :
 variables.isHosted || request.operation == 'DELETE' && variables.isOnVirtualNode)",
        refused: Refused::Forbidden,
        rule: "the member writes the Pods that it makes in twins, and of those on virtual nodes the status; both it deletes",
        says: "
variables.about + 'it writes Pods with label liqo.io/managed-by: shadowpod in twins, and the status of Pods on virtual nodes; it deletes no others'",
    },
    // What Pod Security of the level privileged would let pass.
    Check {
        holds: "
!variables.isPod || request.operation != 'CREATE' ||
['hostNetwork', 'hostPID', 'hostIPC'].all(field, variables.written.?spec[?field].orValue(false) == false) &&
variables.written.?spec.?nodeName.orValue('') == '' &&
variables.written.?spec.?volumes.orValue([]).all(volume, !('hostPath' in volume)) &&
['containers', 'initContainers'].all(field, variables.written.?spec[?field].orValue([]).all(container,
    container[?'ports'].orValue([]).all(port, port[?'hostPort'].orValue(0) == 0)))",
        refused: Refused::Forbidden,
        rule: "Pods of other clusters get nothing of a node",
        says: "
'Pod ' + variables.objectName + ' of another cluster must not have hostNetwork, hostPID, hostIPC, hostPath, hostPort or nodeName'",
    },
    // What gives a Pod rights here: podCertificate gives it a certificate in the name of its ServiceAccount.
    Check {
        holds: "
!variables.isPod || request.operation != 'CREATE' ||
variables.written.?spec.?automountServiceAccountToken.orValue(true) == false &&
variables.written.?spec.?serviceAccountName.orValue('') in ['', 'default'] &&
variables.written.?spec.?volumes.orValue([]).all(volume,
    volume[?'projected'][?'sources'].orValue([]).all(source,
        !('serviceAccountToken' in source) && !('podCertificate' in source)))",
        refused: Refused::Forbidden,
        rule: "Pods of other clusters have ServiceAccount default, and no token of it",
        says: "
'Pod ' + variables.objectName + ' of another cluster must have ServiceAccount default, automountServiceAccountToken: false, ' +
'and no volume with serviceAccountToken or podCertificate'",
    },
    Check {
        holds: "
!variables.isBinding ||
variables.isInTwin && variables.objectName == 'freeport-offload' &&
variables.written.roleRef.kind == 'ClusterRole' && variables.written.roleRef.name == 'freeport-offload-pods' &&
size(variables.written.?subjects.orValue([])) == 1 && variables.written.subjects.all(subject,
    subject.kind == 'ServiceAccount' && subject.name == 'freeport-member' &&
    subject[?'namespace'].orValue('') == 'freeport-system')",
        refused: Refused::Forbidden,
        rule: "the member binds itself alone to freeport-offload-pods alone, in twins",
        says: "
variables.about + 'it writes only RoleBinding freeport-offload of twins, of itself to ClusterRole freeport-offload-pods'",
    },
    Check {
        holds: "
!variables.isOffloading || variables.isStatus ||
variables.isByLabel && (request.operation == 'CREATE' || variables.wasByLabel) ||
request.operation == 'UPDATE' && variables.written.?spec.orValue({}) == variables.before.?spec.orValue({}) &&
['labels', 'annotations', 'ownerReferences'].all(field,
    variables.metadata[?field].orValue('') == variables.before.metadata[?field].orValue(''))",
        refused: Refused::Forbidden,
        rule: "what users ask for is theirs: the member writes only NamespaceOffloadings that a label asks for",
        says: "
variables.about + 'it writes only those with annotation liqo.io/resource-controlled-by, and of others the status and a finalizer'",
    },
    Check {
        holds: "
!variables.isOffloading || request.operation != 'CREATE' ||
variables.labelsOfNamespace[?'liqo.io/enabled'].orValue('') == 'true'",
        refused: Refused::Forbidden,
        rule: "the member makes a NamespaceOffloading where label liqo.io/enabled of the Namespace asks for it",
        says: "
variables.about + 'Namespace ' + request.namespace + ' does not have the label liqo.io/enabled: true'",
    },
    // A finalizer would keep what it is on from going. That on a NamespaceOffloading waits for the twins.
    Check {
        holds: "
!variables.stays || variables.metadata.?finalizers.orValue([]).all(finalizer,
    finalizer in variables.before.metadata.?finalizers.orValue([]) ||
    variables.isOffloading && finalizer == 'namespaceoffloading-controller.liqo.io/finalizer')",
        refused: Refused::Forbidden,
        rule: "the member adds no finalizers but its own on NamespaceOffloadings",
        says: "request.kind.kind + ' ' + variables.objectName + ' must not get finalizers from freeport-member'",
    },
];

/// Holds in the whole cluster of the member.
pub(crate) fn objects() -> [Object; 2] {
    let all = &["CREATE", "UPDATE", "DELETE"];
    let both = &["v1beta1", "v1alpha1"];
    Policy {
        name: NAME,
        requests: vec![
            requests_outside(CORE, &["v1"], &["namespaces", "nodes", "nodes/status"], all),
            requests(CORE, &["v1"], &["secrets", "pods", "pods/status"], all),
            requests(RBAC, &["v1"], &["rolebindings"], all),
            requests(COORDINATION, &["v1"], &["leases"], all),
            requests(OFFLOADING, both, &["namespaceoffloadings", "namespaceoffloadings/status"], all),
        ],
        conditions: &[("by-the-member", IS_THE_MEMBER), ("of-offloading", IS_OF_OFFLOADING)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::{
        label,
        offload::{label as offload, names, twin},
    };

    use super::*;
    use crate::objects::{
        SYSTEM,
        offload::{daemon, webhook},
    };

    #[test]
    fn it_knows_names_and_labels_as_the_daemon_does() {
        let [policy, _] = objects();
        let text = policy.body.to_string();
        for word in [
            format!("{}'].orValue('') == '{}'", label::MANAGED_BY, label::FREEPORT),
            format!("{}'].orValue('') == '{}'", offload::TYPE, offload::VIRTUAL_NODE),
            format!("'{}'", offload::REMOTE_CLUSTER_ID),
            format!("'{}'", offload::SCHEDULING_ENABLED),
            format!("'f:{}'", offload::MANAGED_BY_NAMESPACE_MAP),
            format!("'{}'", offload::RESOURCE_CONTROLLED_BY),
            format!("'{}'", offload::FINALIZER),
            format!("'{}'", offload::NOT_ALLOWED),
            format!("'{}'", offload::NO_EXECUTE),
            // API servers without that feature drop the field before they ask a policy.
            "!('podCertificate' in source)".to_owned(),
            format!("'{}'", label::COMMON_AREA),
            format!("'{SYSTEM}'"),
            format!("'{}'", webhook::SECRET),
            format!("'{}'", daemon::KEY),
            format!("'{}'", names::virtual_node("")),
            format!("{}'].orValue('') == '{}'", offload::MANAGED_BY, offload::SHADOW_POD),
            format!("{}'].orValue('') == '{}'", offload::ENABLED, label::TRUE),
            format!("'{}'", label::MEMBER),
            format!("'{}'", twin::BINDING),
            format!("'{}'", twin::POD_ROLE),
        ] {
            assert!(text.contains(&word), "{word}");
        }
    }
}
