//! The kinds a member reads, reduced to what it uses. Those it also writes hold exactly what it owns of them.

mod records;

use api::{label, view::lean};
use k8s_openapi::api::core::v1 as core;
use kube::{Resource, api::ObjectMeta};
pub(crate) use rules::view::{
    Endpoint, Export, Import, OwnRecord, Service, ServiceSpec, Slice, SlicePort, is_imported, is_made,
    is_ours,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::records::{LeaderImport, Offered, PeerSlice};

/// A Namespace of this cluster.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = core::Namespace)]
pub(crate) struct Namespace {
    /// Name, and whether it is going.
    #[serde(deserialize_with = "lean")]
    pub(crate) metadata: ObjectMeta,
}

/// The Service of the import it is named after (`antrea-mc-<name>`), whoever made it.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[resource(inherit = core::Service)]
#[serde(from = "Service", into = "Service")]
pub(crate) struct Derived {
    /// The Service's metadata.
    pub(crate) metadata: ObjectMeta,
    /// The Service.
    pub(crate) service: Service,
}

impl Derived {
    /// The Service as one that stands for an import, if its name says so.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let is_named_so = service.metadata.name.as_deref()?.starts_with(label::IMPORTED_PREFIX);
        is_named_so.then(|| Self::from(service.clone()))
    }
}

impl From<Service> for Derived {
    fn from(service: Service) -> Self {
        Self { metadata: service.metadata.clone(), service }
    }
}

impl From<Derived> for Service {
    fn from(derived: Derived) -> Self {
        derived.service
    }
}

#[cfg(test)]
mod tests;
