//! What of a binding is kept in step: pure.

use api::bind::{
    binding::APIServiceBinding,
    bound_schema::BoundSchema,
    carried::synced_version,
    export::APIServiceExport,
    label,
    mapping::Strategy,
    resource::{InformerScope, Isolation},
};
use kube::{ResourceExt, api::ApiResource};

use crate::bind::{crd::is_of, local::Crd, sync::Bound};

/// What is kept in step, if the CRD is served and for this binding.
pub(super) fn bound_of(
    binding: &APIServiceBinding,
    export: &APIServiceExport,
    schema: &BoundSchema,
    crd: &Crd,
) -> Option<Bound> {
    let version = synced_version(&schema.spec)?;
    if !crd.is_established() || !is_of(crd, binding) || crd.metadata_is_going() {
        return None;
    }
    let (group, names) = (&schema.spec.group, &schema.spec.names);
    let resource = ApiResource {
        group: group.clone(),
        version: version.name.clone(),
        api_version: format!("{group}/{}", version.name),
        kind: names.kind.clone(),
        plural: names.plural.clone(),
    };
    Some(Bound {
        binding: binding.name_any(),
        resource,
        strategy: strategy(schema.spec.scope, export.spec.isolation),
        informer_scope: schema.spec.informer_scope,
        has_status: version.subresources.as_ref().is_some_and(|has| has.status.is_some()),
        orphan: leaves_copies(binding),
    })
}

/// Whether copies stay when their objects go.
pub(crate) fn leaves_copies(binding: &APIServiceBinding) -> bool {
    binding.annotations().get(label::DELETION_POLICY).is_some_and(|policy| policy == label::ORPHAN)
}

/// Objects in Namespaces always go by Namespaces.
fn strategy(scope: InformerScope, isolation: Isolation) -> Strategy {
    match (scope, isolation) {
        (InformerScope::Namespaced, _) => Strategy::Namespaced,
        (InformerScope::Cluster, Isolation::Prefixed) => Strategy::Prefixed,
        (InformerScope::Cluster, Isolation::Namespaced) => Strategy::Converted,
        (InformerScope::Cluster, Isolation::None) => Strategy::Shared,
    }
}
