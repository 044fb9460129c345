//! What the test of API binding refuses.

use super::Refused;
use crate::daemon::LEADER;

pub const CONSUMER: &str = "freeport-member-east";
/// Resource of the bound API. `freeport bind apiservice` grants its writes, no role of `manifests/`.
pub const BOUND: &str = "walks";

const HERE: (&str, &str) = (CONSUMER, "east");
const THERE: (&str, &str) = (CONSUMER, "leader");
const PROVIDES: (&str, &str) = (LEADER, "leader");

/// The objects are named `<cluster>-<resource>-<operation>`, where the cluster is `no` for the provider and `un` for the consumer, and policies
/// refuse this operation on this resource where the object's name contains that.
pub const REFUSED: &[Refused] = &[
    // Copies are created by apply.
    Refused::new(THERE, "Walks", (BOUND, "create"), "apply"),
    Refused::new(THERE, "Walks", (BOUND, "delete"), "delete"),
    Refused::new(HERE, "Walks", (BOUND, "update"), "finalizers"),
    Refused::new(HERE, "Walks", ("walksstatus", "update"), "status"),
    Refused::new(THERE, "APIServiceNamespace", ("apiservicenamespaces", "create"), "create"),
    Refused::new(THERE, "APIServiceNamespace", ("apiservicenamespaces", "delete"), "delete"),
    Refused::new(THERE, "BoundSchema", ("boundschemasstatus", "update"), "status"),
    Refused::new(THERE, "APIServiceExport", ("apiserviceexportsstatus", "update"), "status"),
    Refused::new(HERE, "CustomResourceDefinition", ("customresourcedefinitions", "create"), "create"),
    Refused::new(HERE, "CustomResourceDefinition", ("customresourcedefinitions", "update"), "replace"),
    Refused::new(HERE, "CustomResourceDefinition", ("customresourcedefinitions", "delete"), "delete"),
    Refused::new(HERE, "APIServiceBinding", ("apiservicebindings", "update"), "finalizers"),
    Refused::new(HERE, "APIServiceBinding", ("apiservicebindingsstatus", "update"), "status"),
    Refused::new(HERE, "Secret", ("secrets", "update"), "patch"),
    Refused::new(PROVIDES, "Namespace", ("namespaces", "create"), "create"),
    Refused::new(PROVIDES, "Namespace", ("namespaces", "delete"), "delete"),
    Refused::new(PROVIDES, "APIServiceNamespace", ("apiservicenamespaces", "update"), "finalizers"),
    Refused::new(PROVIDES, "APIServiceNamespace", ("apiservicenamespacesstatus", "update"), "status"),
    Refused::new(PROVIDES, "BoundSchema", ("boundschemas", "create"), "create"),
    Refused::new(PROVIDES, "BoundSchema", ("boundschemas", "delete"), "delete"),
    Refused::new(PROVIDES, "RoleBinding", ("rolebindings", "delete"), "delete"),
    Refused::new(PROVIDES, "APIServiceExport", ("apiserviceexports", "create"), "create"),
    Refused::new(PROVIDES, "APIServiceExport", ("apiserviceexports", "update"), "finalizers"),
    Refused::new(PROVIDES, "APIServiceExport", ("apiserviceexportsstatus", "update"), "status"),
    Refused::new(PROVIDES, "APIServiceExportRequest", ("apiserviceexportrequestsstatus", "update"), "status"),
    Refused::new(
        PROVIDES,
        "BindableResourcesRequest",
        ("bindableresourcesrequestsstatus", "update"),
        "status",
    ),
    Refused::new(PROVIDES, "BindableResourcesRequest", ("bindableresourcesrequests", "delete"), "delete"),
];

/// What the leader writes for a new contract, and for one with another template.
pub const CONTRACTS: &[Refused] = &[
    Refused::new(PROVIDES, "ServiceAccount", ("serviceaccounts", "create"), "create"),
    Refused::new(PROVIDES, "RoleBinding", ("rolebindings", "create"), "create"),
    Refused::new(PROVIDES, "Secret", ("secrets", "create"), "create"),
    Refused::new(PROVIDES, "ClusterBinding", ("clusterbindings", "create"), "create"),
    Refused::new(PROVIDES, "Namespace", ("namespaces", "update"), "patch"),
];

/// What a consumer's member writes about its contract.
pub const OF_CONSUMERS: &[Refused] = &[
    Refused::new(THERE, "ClusterBinding", ("clusterbindingsstatus", "update"), "status"),
    Refused::new(THERE, "APIServiceNamespace", ("apiservicenamespaces", "update"), "patch"),
];
