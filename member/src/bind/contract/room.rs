//! How much of each kind in a cluster namespace is taken in.

use std::time::Instant;

use api::bind::{
    binding::ClusterBinding,
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
};
use k8s_openapi::api::core::v1::Secret;
use kit::quota::Shares;

use super::told::{QUOTA, Told};

/// What of each kind there is room for.
pub(super) struct Room {
    pub(super) exports: Shares<Told<APIServiceExport>>,
    pub(super) requests: Shares<Told<APIServiceExportRequest>>,
    pub(super) schemas: Shares<Told<BoundSchema>>,
    pub(super) namespaces: Shares<Told<APIServiceNamespace>>,
    pub(super) cluster_bindings: Shares<Told<ClusterBinding>>,
    pub(super) secrets: Shares<Told<Secret>>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            exports: Shares::new(QUOTA),
            requests: Shares::new(QUOTA),
            schemas: Shares::new(QUOTA),
            namespaces: Shares::new(QUOTA),
            cluster_bindings: Shares::new(QUOTA),
            secrets: Shares::new(QUOTA),
        }
    }
}

impl Room {
    /// Number of objects that are not taken in.
    pub(super) fn left_out(&self) -> usize {
        self.exports.left_out()
            + self.requests.left_out()
            + self.schemas.left_out()
            + self.namespaces.left_out()
            + self.cluster_bindings.left_out()
            + self.secrets.left_out()
    }

    /// Whether all is to be listed again, since there is room for something that was left out.
    pub(super) fn wants_list(&mut self, now: Instant) -> bool {
        self.exports.wants_list(now)
            || self.requests.wants_list(now)
            || self.schemas.wants_list(now)
            || self.namespaces.wants_list(now)
            || self.cluster_bindings.wants_list(now)
            || self.secrets.wants_list(now)
    }
}
