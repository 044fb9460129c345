//! `freeport-records`: what the members of a ClusterSet may write into its Common Area.
//!
//! It looks at requests by ServiceAccounts of the Common Area itself, which are the members. The leader's ServiceAccount
//! lives elsewhere, as do people.
//!
//! Who is which cluster is said by rights: the verb `act-as` on ResourceExports of the name of a cluster ID. So a member
//! is more than a name of a ServiceAccount, and taking `act-as` away takes the cluster away.
//!
//! A ClusterReport is named as the ID of its cluster, which writes all of it.
//!
//! The records of offloading are of two clusters, which their name says uniquely (`api::offload::names`): the first writes the record, the
//! second the status. So whose they are cannot change.
//!
//! Objects are `dyn` here, since every expression is type-checked against every kind. `request.name` is not used: it is
//! missing when a collection is deleted.

use api::label;

use super::{Check, Policy, Refused, requests};
use crate::objects::{
    Object,
    rights::{ANTREA, COORDINATION, FREEPORT, OFFLOADING},
};

/// Name of the policy and of its binding. Without the binding it is off.
pub(crate) const NAME: &str = "freeport-records";

const IS_OF_THE_AREA: &str =
    "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')";

/// A record belongs to the cluster it is named after, and its name is all that cannot change. So what is measured is what is
/// there afterwards: it has to be named as it is, which leaves one cluster, Namespace, name and kind to say. What is stored
/// may be wrong, where somebody with more rights garbled it, and its member has to be able to put it right.
const VARIABLES: &[(&str, &str)] = &[
    ("resource", "request.resource.resource"),
    ("written", "dyn(request.operation == 'DELETE' ? oldObject : object)"),
    ("objectName", "string(variables.written.metadata.name)"),
    ("isReport", "variables.resource == 'clusterreports'"),
    // Whose Lease or announce it is, its name says. It is empty for records, whose spec does, and for reports, which are named as the ID.
    (
        "prefix",
        "
variables.resource == 'leases' ? 'freeport-member-' :
variables.resource == 'memberclusterannounces' ? 'member-announce-from-' : ''",
    ),
    (
        "finalizersBefore",
        "request.operation == 'UPDATE' ? dyn(oldObject).metadata.?finalizers.orValue([]) : []",
    ),
    ("isStatus", "has(request.subResource) && request.subResource == 'status'"),
    // Records of offloading, and the two clusters in their name; empty if it is none of these names.
    ("isPair", "variables.resource in ['namespacemaps', 'offloadoffers', 'shadowpods']"),
    ("labelsOfName", "variables.isPair ? variables.objectName.split('.') : ['']"),
    (
        "first",
        "
variables.labelsOfName[0] == '1' && size(variables.labelsOfName) > 2 ? variables.labelsOfName[1] :
variables.labelsOfName[0] == '2' && size(variables.labelsOfName) > 3 ?
variables.labelsOfName[1] + '.' + variables.labelsOfName[2] : ''",
    ),
    (
        "rest",
        "variables.first == '' ? '' : variables.objectName.substring(size(variables.first) + 3)",
    ),
    (
        "second",
        "
variables.resource == 'shadowpods' ? variables.rest.substring(0, [variables.rest.lastIndexOf('.'), 0].max()) : variables.rest",
    ),
    (
        "uid",
        "
variables.resource == 'shadowpods' ? variables.rest.substring(variables.rest.lastIndexOf('.') + 1) : ''",
    ),
    ("firstField", "variables.resource == 'offloadoffers' ? 'host' : 'origin'"),
    ("secondField", "variables.resource == 'offloadoffers' ? 'home' : 'destination'"),
    (
        "cluster",
        "
variables.isPair ? (variables.isStatus ? variables.second : variables.first) :
variables.isReport ? variables.objectName :
variables.prefix == '' ? string(variables.written.?spec.?clusterID.orValue('')) :
variables.objectName.startsWith(variables.prefix) ?
variables.objectName.substring(size(variables.prefix)) : ''",
    ),
    // A record that is there afterwards; all below is about it.
    ("isRecord", "variables.resource == 'resourceexports' && request.operation != 'DELETE'"),
    ("spec", "variables.written.?spec.orValue({})"),
    ("kind", "string(variables.spec[?'kind'].orValue(''))"),
    ("ofNamespace", "string(variables.spec[?'namespace'].orValue(''))"),
    ("ofName", "string(variables.spec[?'name'].orValue(''))"),
    ("isOurs", "variables.kind in ['Service', 'EndpointSlice']"),
    ("isOfService", "variables.isOurs || variables.kind == 'Endpoints'"),
    // What its name begins with: api::name::service_export and slice_export. What comes after that is the suffix.
    (
        "separator",
        "
variables.kind == 'EndpointSlice' ||
variables.cluster.contains('-') || variables.ofNamespace.contains('-') ? '.' : '-'",
    ),
    (
        "canonical",
        "
!variables.isOfService ? variables.cluster + '-' :
variables.cluster + variables.separator + variables.ofNamespace + variables.separator +
variables.ofName + variables.separator",
    ),
    // Antrea's controllers put dashes everywhere: api::antrea::Members. Not for sentences, which cannot ask the authorizer.
    (
        "stem",
        "
variables.kind in ['Service', 'Endpoints'] &&
authorizer.group('multicluster.crd.antrea.io').resource('resourceexports')
    .namespace(request.namespace).name(variables.cluster).check('speak-antrea').allowed() ?
variables.cluster + '-' + variables.ofNamespace + '-' + variables.ofName + '-' : variables.canonical",
    ),
    (
        "suffix",
        "
variables.objectName.startsWith(variables.stem) ?
variables.objectName.substring(size(variables.stem)) : ''",
    ),
    ("about", "'a record of kind ' + variables.kind + ' of cluster ' + variables.cluster"),
];

const CHECKS: &[Check] = &[
    Check {
        holds: "variables.resource != 'resourceimports'",
        refused: Refused::Forbidden,
        rule: "ResourceImports are written by the leader alone",
        says: "
'ResourceImport ' + variables.objectName + ' is not for ' + request.userInfo.username +
': ResourceImports are written by the leader alone'",
    },
    Check {
        holds: "!variables.isStatus || variables.isPair || variables.isReport",
        refused: Refused::Forbidden,
        rule: "the status of a record is written by the leader alone",
        says: "
'the status of ' + variables.objectName + ' of cluster ' + variables.cluster + ' is written by the leader alone'",
    },
    Check {
        holds: "variables.prefix == '' || variables.cluster != ''",
        refused: Refused::Forbidden,
        rule: "a member writes only the Lease and the announce of its own cluster",
        says: "
variables.objectName + ' is of no cluster: a member writes only ' + variables.prefix + '<its cluster ID>'",
    },
    Check {
        holds: "
authorizer.group('multicluster.crd.antrea.io').resource('resourceexports')
    .namespace(request.namespace).name(variables.cluster).check('act-as').allowed()",
        refused: Refused::Forbidden,
        rule: "what is a cluster's is written by that cluster's member alone",
        says: "
variables.objectName + ' is of cluster \"' + variables.cluster + '\", which ' +
request.userInfo.username + ' may not act as'",
    },
    Check {
        holds: "
!variables.isPair || request.operation == 'DELETE' ||
variables.first != variables.second && [variables.first, variables.second].all(cluster, cluster.matches(
    '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$'))",
        refused: Refused::Invalid,
        rule: "a record of offloading is named after two clusters",
        says: "
request.kind.kind + ' ' + variables.objectName + ' must be named <1 or 2: labels of the first ID>.<' +
variables.firstField + '>.<' + variables.secondField + '>' + (variables.resource == 'shadowpods' ? '.<uid>' : '')",
    },
    Check {
        holds: "
!variables.isPair || request.operation == 'DELETE' ||
string(variables.spec[?variables.firstField].orValue('')) == variables.first &&
string(variables.spec[?variables.secondField].orValue('')) == variables.second &&
(variables.resource != 'shadowpods' || string(variables.spec[?'uid'].orValue('')) == variables.uid)",
        refused: Refused::Invalid,
        rule: "a record of offloading is about the clusters that it is named after",
        says: "
request.kind.kind + ' ' + variables.objectName + ' must have spec.' + variables.firstField + ' ' + variables.first +
' and spec.' + variables.secondField + ' ' + variables.second +
(variables.resource == 'shadowpods' ? ' and spec.uid ' + variables.uid : '')",
    },
    // Kubernetes bounds no number of them, and in memory a short one takes many times what it takes on the wire. What an export carries
    // is in the spec; Antrea's controllers write four labels. What somebody else added must not keep a member from writing.
    Check {
        holds: "
variables.isStatus || request.operation == 'DELETE' ||
['labels', 'annotations'].all(field, size(variables.written.metadata[?field].orValue({})) <=
    [32, request.operation == 'UPDATE' ? size(dyn(oldObject).metadata[?field].orValue({})) : 0].max())",
        refused: Refused::Invalid,
        rule: "what a member writes has at most 32 labels and 32 annotations",
        says: "
request.kind.kind + ' ' + variables.objectName + ' must have at most 32 labels and 32 annotations'",
    },
    // It would keep the leader from sweeping what a member left.
    Check {
        holds: "
!variables.isPair || request.operation == 'DELETE' || size(variables.written.metadata.?finalizers.orValue([])) == 0",
        refused: Refused::Invalid,
        rule: "records of offloading have no finalizers",
        says: "request.kind.kind + ' ' + variables.objectName + ' must not have finalizers'",
    },
    // A record that it holds would never be gone, and the Common Area could not be deleted.
    Check {
        holds: "
variables.isPair || request.operation == 'DELETE' ||
variables.written.metadata.?finalizers.orValue([]).all(finalizer, finalizer in variables.finalizersBefore) ||
authorizer.group('multicluster.crd.antrea.io').resource('resourceexports')
    .namespace(request.namespace).name(variables.cluster).check('speak-antrea').allowed()",
        refused: Refused::Invalid,
        rule: "only members that may speak-antrea add finalizers",
        says: "request.kind.kind + ' ' + variables.objectName + ' must not get finalizers'",
    },
    // Names with dashes everywhere do not split back uniquely: one could be made to speak for another cluster.
    Check {
        holds: "
!variables.isRecord || request.operation != 'UPDATE' || variables.stem == variables.canonical ||
string(dyn(oldObject).?spec.?clusterID.orValue('')) == variables.cluster",
        refused: Refused::Forbidden,
        rule: "a record with dashes everywhere in its name stays of its cluster",
        says: "
variables.objectName + ' is a record of another cluster than \"' + variables.cluster + '\", and cannot become its'",
    },
    Check {
        holds: "
variables.resource != 'memberclusterannounces' || request.operation == 'DELETE' ||
variables.written.?clusterID.orValue('') == variables.cluster",
        refused: Refused::Invalid,
        rule: "an announce names the cluster it is named after",
        says: "'clusterID of ' + variables.objectName + ' must be ' + variables.cluster",
    },
    Check {
        holds: "!variables.isRecord || variables.isOfService || variables.kind in ['ClusterInfo', 'LabelIdentity']",
        refused: Refused::Invalid,
        rule: "members write no records of this kind",
        says: "
variables.about + ' is not taken: kinds are Service, EndpointSlice, Endpoints, ClusterInfo and LabelIdentity'",
    },
    // With a dot in it, a Namespace could make one cluster's canonical name look like another's.
    Check {
        holds: "
!variables.isRecord || !variables.isOfService ||
[variables.ofNamespace, variables.ofName].all(label, label.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'))",
        refused: Refused::Invalid,
        rule: "namespace and name of a record are DNS labels",
        says: "
variables.about + ' must have a namespace and a name that are DNS labels, not \"' +
variables.ofNamespace + '\" and \"' + variables.ofName + '\"'",
    },
    Check {
        holds: "
!variables.isRecord ||
(variables.kind == 'Service' ? variables.suffix == 'service' :
 variables.kind == 'Endpoints' ? variables.suffix == 'endpoints' :
 variables.kind == 'EndpointSlice' ? variables.suffix.matches('^slice[.][0-9a-f]{16}$') :
 variables.kind == 'ClusterInfo' ? variables.suffix == 'clusterinfo' :
 variables.suffix.matches('^[0-9a-f]{16}$'))",
        refused: Refused::Invalid,
        rule: "a record is named after what it is about",
        says: "
variables.about + ' must be named ' + variables.canonical +
(variables.kind == 'Service' ? 'service' :
 variables.kind == 'Endpoints' ? 'endpoints' :
 variables.kind == 'EndpointSlice' ? 'slice.<16 hex digits>' :
 variables.kind == 'ClusterInfo' ? 'clusterinfo' :
 '<16 hex digits>') + ', not ' + variables.objectName +
(variables.kind in ['Service', 'Endpoints'] && variables.canonical.contains('.') ?
 '; with dashes for dots if the cluster may speak-antrea' : '')",
    },
    // Members find records by their labels. Antrea's may lack some, but none may claim to be another's.
    Check {
        holds: "
!variables.isRecord ||
[['sourceClusterID', variables.cluster], ['sourceNamespace', variables.ofNamespace],
 ['sourceName', variables.ofName], ['sourceKind', variables.kind]].all(pair,
    variables.written.metadata.?labels[?pair[0]].orValue(variables.isOurs ? '' : pair[1]) == pair[1])",
        refused: Refused::Invalid,
        rule: "labels sourceClusterID, sourceNamespace, sourceName and sourceKind of a record say what its spec says",
        says: "
variables.about + ' must have the labels sourceClusterID=' + variables.cluster +
', sourceNamespace=' + variables.ofNamespace + ', sourceName=' + variables.ofName + ', sourceKind=' + variables.kind",
    },
    Check {
        holds: "
!variables.isRecord ||
['clusterNetworkPolicy', 'externalEntity', 'raw'].all(field, !(field in variables.spec))",
        refused: Refused::Invalid,
        rule: "clusterNetworkPolicy, externalEntity and raw are not taken from members",
        says: "variables.about + ' must not have clusterNetworkPolicy, externalEntity or raw'",
    },
];

/// Holds in every Common Area of this cluster.
pub(crate) fn objects() -> [Object; 2] {
    let all = &["CREATE", "UPDATE", "DELETE"];
    let records = [
        "resourceexports",
        "resourceexports/status",
        "resourceimports",
        "resourceimports/status",
        "memberclusterannounces",
    ];
    Policy {
        name: NAME,
        requests: vec![
            requests(ANTREA, &["v1alpha1"], &records, all),
            requests(COORDINATION, &["v1"], &["leases"], all),
            requests(OFFLOADING, &["v1beta1"], &["namespacemaps", "namespacemaps/status"], all),
            requests(FREEPORT, &["v1alpha1"], &["offloadoffers", "shadowpods", "shadowpods/status"], all),
            requests(FREEPORT, &["v1alpha1"], &["clusterreports", "clusterreports/status"], all),
        ],
        conditions: &[("by-a-service-account-of-the-common-area", IS_OF_THE_AREA)],
        namespaces: Some((label::COMMON_AREA, label::TRUE)),
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}
