//! What is known of one cluster, as far as one Service is concerned.

use api::{lease::LeaseView, view::Meta};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;

use crate::{
    dns::Dns,
    gap::{Gap, Seen},
    member::Member,
    view::{
        ClusterSetView, MergedView, RecordView, ServiceExportView, ServiceImportView, ServiceView, SliceView,
    },
};

/// What is known of one cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// How commands name it.
    pub context: String,
    /// uid of its Namespace kube-system.
    pub uid: Seen<String>,
    /// Its member.
    pub member: Member,
    /// The Namespace of the Service.
    pub namespace: Seen<Option<Meta<Namespace>>>,
    /// ServiceExports in that Namespace.
    pub exports: Seen<Vec<ServiceExportView>>,
    /// Services in that Namespace.
    pub services: Seen<Vec<ServiceView>>,
    /// The ServiceImport of that name.
    pub import: Seen<Option<ServiceImportView>>,
    /// EndpointSlices in that Namespace, of the Service and of its import.
    pub slices: Seen<Vec<SliceView>>,
    /// Common Areas of ClusterSets that it leads.
    pub areas: Seen<Vec<Area>>,
    /// Its CoreDNS.
    pub dns: Dns,
}

/// What is known of a Common Area.
#[derive(Clone, Debug)]
pub struct Area {
    /// Its Namespace.
    pub namespace: String,
    /// ClusterSets in it.
    pub sets: Seen<Vec<ClusterSetView>>,
    /// Leases of daemons.
    pub leases: Seen<Vec<LeaseView>>,
    /// Records about the Service.
    pub records: Seen<Vec<RecordView>>,
    /// The ResourceImport of the Service.
    pub merged: Seen<Option<MergedView>>,
}

impl Cluster {
    /// A cluster of which nothing is known, and why.
    pub fn unknown(context: impl Into<String>, gap: &Gap) -> Self {
        Self {
            context: context.into(),
            uid: Err(gap.clone()),
            member: Member::unknown(gap),
            namespace: Err(gap.clone()),
            exports: Err(gap.clone()),
            services: Err(gap.clone()),
            import: Err(gap.clone()),
            slices: Err(gap.clone()),
            areas: Err(gap.clone()),
            dns: Dns::unknown(gap),
        }
    }

    /// Whether nothing that matters could be read; then why.
    pub fn unseen(&self) -> Option<&Gap> {
        let Self { member: Member { sets, .. }, exports, services, import, areas, .. } = self;
        let is_seen = sets.is_ok() || exports.is_ok() || services.is_ok() || import.is_ok() || areas.is_ok();
        sets.as_ref().err().filter(|_| !is_seen)
    }

    /// Its ClusterSet as a member, if it has one.
    pub fn set(&self) -> Option<&ClusterSetView> {
        self.member.set()
    }

    /// Its ID, as far as it belongs to a ClusterSet.
    pub fn id(&self) -> Option<&str> {
        self.set()?.cluster_id()
    }

    /// What people call it: its ID, or its context without one.
    pub fn title(&self) -> &str {
        self.id().unwrap_or(&self.context)
    }

    /// Its ServiceExport of this name.
    pub fn export(&self, name: &str) -> Option<&ServiceExportView> {
        self.exports.as_ref().ok()?.iter().find(|export| export.name_any() == name)
    }

    /// Its Service of this name.
    pub fn service(&self, name: &str) -> Option<&ServiceView> {
        self.services.as_ref().ok()?.iter().find(|service| service.name_any() == name)
    }
}

impl Area {
    /// Name of its ClusterSet.
    pub fn set(&self) -> Option<String> {
        Some(self.sets.as_ref().ok()?.first()?.name_any())
    }

    /// The Lease of this name.
    pub fn lease(&self, name: &str) -> Option<&LeaseView> {
        self.leases.as_ref().ok()?.iter().find(|lease| lease.name_any() == name)
    }

    /// IDs of members that have a Lease.
    pub fn members(&self) -> impl Iterator<Item = String> {
        let leases = self.leases.as_deref().unwrap_or_default().iter().filter(|lease| !lease.has_left());
        leases.filter_map(|lease| api::name::member_of_lease(&lease.name_any()).map(str::to_owned))
    }
}
