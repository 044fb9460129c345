//! Which API is kept in step, and how.

use api::bind::{mapping::Strategy, resource::InformerScope};
use kube::api::ApiResource;

/// What is kept in step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    /// Name of the APIServiceBinding, and of the export.
    pub(crate) binding: String,
    /// uid of the APIServiceBinding: another one of its name has other copies.
    pub(crate) binding_uid: String,
    pub(crate) resource: ApiResource,
    pub(crate) strategy: Strategy,
    pub(crate) informer_scope: InformerScope,
    /// Whether the version has the subresource `status`.
    pub(crate) has_status: bool,
    /// Copies stay when their objects go.
    pub(crate) orphan: bool,
}

impl Bound {
    /// The name of the API, `<plural>.<group>`.
    pub(crate) fn api(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }
}
