//! Paths that `freeport gather` asks for: all that `freeport status`, `get`, `check` and `why` read, and Events.

use api::{
    about::ClusterProperty,
    announce::MemberClusterAnnounce,
    bind::{
        binding::{APIServiceBinding, ClusterBinding},
        bound_schema::BoundSchema,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
        offer::{APIServiceExportTemplate, BindableResourcesRequest, Collection},
    },
    cluster_claim::ClusterClaim,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
    membership,
    offload::{
        map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer,
        shadow_pod::ShadowPod,
    },
    report::ClusterReport,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
        },
        apps::v1::Deployment,
        coordination::v1::Lease,
        core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount},
        discovery::v1::EndpointSlice,
        networking::v1::ServiceCIDR,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource;
use picture::dns;

use crate::objects::SYSTEM;

/// Path of all objects of a kind.
pub(super) fn all<K: Resource<DynamicType = ()>>() -> String {
    K::url_path(&(), None)
}

/// Path of the objects of a kind in a Namespace.
pub(super) fn within<K: Resource<DynamicType = ()>>(namespace: &str) -> String {
    K::url_path(&(), Some(namespace))
}

/// Lists of kinds without Namespaces.
pub(super) fn of_cluster() -> Vec<String> {
    vec![
        all::<Namespace>(),
        all::<Node>(),
        all::<ServiceCIDR>(),
        all::<CustomResourceDefinition>(),
        all::<ValidatingAdmissionPolicy>(),
        all::<ValidatingAdmissionPolicyBinding>(),
        all::<MutatingWebhookConfiguration>(),
        all::<ClusterRole>(),
        all::<ClusterRoleBinding>(),
        all::<ClusterProperty>(),
        all::<OffloadPeer>(),
        all::<APIServiceBinding>(),
        all::<APIServiceExportTemplate>(),
        all::<Collection>(),
    ]
}

/// A kind in Namespaces: the path of its objects in one, or in all.
pub(super) type Paths = (fn() -> String, fn(&str) -> String);

/// Kinds that are listed in all Namespaces.
pub(super) const EVERYWHERE: [Paths; 11] = [
    (all::<Service>, within::<Service>),
    (all::<EndpointSlice>, within::<EndpointSlice>),
    (all::<Event>, within::<Event>),
    (all::<ServiceExport>, within::<ServiceExport>),
    (all::<ServiceImport>, within::<ServiceImport>),
    (all::<NamespaceOffloading>, within::<NamespaceOffloading>),
    (all::<ClusterBinding>, within::<ClusterBinding>),
    (all::<BoundSchema>, within::<BoundSchema>),
    (all::<APIServiceExport>, within::<APIServiceExport>),
    (all::<APIServiceExportRequest>, within::<APIServiceExportRequest>),
    (all::<APIServiceNamespace>, within::<APIServiceNamespace>),
];

/// Lists in the Namespace of the daemons.
pub(super) fn of_system() -> Vec<String> {
    vec![
        within::<ClusterSet>(SYSTEM),
        within::<ClusterClaim>(SYSTEM),
        within::<Deployment>(SYSTEM),
        within::<Lease>(SYSTEM),
        within::<Pod>(SYSTEM),
        within::<ServiceAccount>(SYSTEM),
        within::<Secret>(SYSTEM),
        within::<BindableResourcesRequest>(SYSTEM),
    ]
}

/// Lists in a Common Area.
pub(super) fn of_area(area: &str) -> Vec<String> {
    vec![
        within::<ClusterSet>(area),
        within::<ClusterClaim>(area),
        within::<MemberClusterAnnounce>(area),
        within::<ResourceExport>(area),
        within::<ResourceImport>(area),
        within::<ClusterReport>(area),
        within::<OffloadOffer>(area),
        within::<NamespaceMap>(area),
        within::<ShadowPod>(area),
        within::<Lease>(area),
        within::<ServiceAccount>(area),
        within::<Secret>(area),
    ]
}

/// Objects that are read by their names.
pub(super) fn named() -> [String; 3] {
    [config_map(SYSTEM, membership::NAME), config_map(dns::NAMESPACE, dns::NAME), dns_deployment()]
}

/// Path of the Deployment of CoreDNS.
pub(super) fn dns_deployment() -> String {
    format!("{}/{}", within::<Deployment>(dns::NAMESPACE), dns::NAME)
}

/// Path of a ConfigMap.
pub(super) fn config_map(namespace: &str, name: &str) -> String {
    format!("{}/{name}", within::<ConfigMap>(namespace))
}
