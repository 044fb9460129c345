//! What is known of one cluster as a whole.

use api::{lease::LeaseView, name, ranges::Ranges, view::Meta};
use jiff::SignedDuration;
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::ResourceExt;

use crate::{
    dns::Dns,
    gap::{Gap, Seen},
    member::Member,
    view::{ClusterSetView, PodView, ServiceExportView, ServiceImportView},
};

/// What is known of one cluster.
#[derive(Debug)]
pub struct Cluster {
    /// How commands name it.
    pub context: String,
    /// uid of its Namespace kube-system.
    pub uid: Seen<String>,
    /// Its API server.
    pub server: Seen<Server>,
    /// Those CRDs of Freeport that are there.
    pub crds: Seen<Vec<Meta<CustomResourceDefinition>>>,
    /// Its member.
    pub member: Member,
    /// Deployment of its leader.
    pub leader: Seen<Option<Deployment>>,
    /// Pods of its leader.
    pub leader_pods: Seen<Vec<PodView>>,
    /// Common Areas of ClusterSets that it leads.
    pub areas: Seen<Vec<Area>>,
    /// All ServiceExports.
    pub exports: Seen<Vec<ServiceExportView>>,
    /// All ServiceImports that its member wrote.
    pub imports: Seen<Vec<ServiceImportView>>,
    /// Addresses of its Pods, as its Nodes have them.
    pub pod_ranges: Seen<Ranges>,
    /// Addresses of its Services, as its ServiceCIDRs have them.
    pub service_ranges: Seen<Ranges>,
    /// Its CoreDNS.
    pub dns: Dns,
}

/// What an API server says of itself.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its version, as in `v1.36.3`.
    pub version: String,
    /// Major and minor version.
    pub release: Option<(u32, u32)>,
    /// How far its clock is ahead of ours, to the second, if it says that.
    pub ahead: Option<SignedDuration>,
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
}

impl Cluster {
    /// A cluster of which nothing is known, and why.
    pub fn unknown(context: impl Into<String>, gap: &Gap) -> Self {
        Self {
            context: context.into(),
            uid: Err(gap.clone()),
            server: Err(gap.clone()),
            crds: Err(gap.clone()),
            member: Member::unknown(gap),
            leader: Err(gap.clone()),
            leader_pods: Err(gap.clone()),
            areas: Err(gap.clone()),
            exports: Err(gap.clone()),
            imports: Err(gap.clone()),
            pod_ranges: Err(gap.clone()),
            service_ranges: Err(gap.clone()),
            dns: Dns::unknown(gap),
        }
    }

    /// Whether its API server answers and accepts the credential.
    pub fn is_reached(&self) -> bool {
        !matches!((&self.server, &self.uid), (Err(Gap::NoAnswer(_)), _) | (_, Err(Gap::NoAnswer(_))))
    }

    /// Whether anything of Freeport could be read.
    pub fn is_seen(&self) -> bool {
        let Self { member: Member { sets, .. }, areas, exports, imports, .. } = self;
        self.is_reached() && (sets.is_ok() || areas.is_ok() || exports.is_ok() || imports.is_ok())
    }

    /// What people call it: its ID, or its context without one.
    pub fn title(&self) -> &str {
        self.member.set().and_then(ClusterSetView::cluster_id).unwrap_or(&self.context)
    }

    /// Name of the ClusterSet that it belongs to, or else leads.
    pub fn set(&self) -> Option<String> {
        let leads = || self.areas.iter().flatten().find_map(Area::set);
        self.member.set().map(ResourceExt::name_any).or_else(leads)
    }
}

impl Area {
    /// Name of its ClusterSet.
    pub fn set(&self) -> Option<String> {
        Some(self.sets.as_ref().ok()?.first()?.name_any())
    }

    /// The Lease of freeport-leader.
    pub fn leader(&self) -> Option<&LeaseView> {
        self.leases.as_ref().ok()?.iter().find(|lease| lease.name_any() == name::LEADER_LEASE)
    }

    /// IDs of members that have not left, with their Leases.
    pub fn members(&self) -> impl Iterator<Item = (String, &LeaseView)> {
        let leases = self.leases.iter().flatten().filter(|lease| !lease.has_left());
        leases.filter_map(|lease| Some((name::member_of_lease(&lease.name_any())?.to_owned(), lease)))
    }
}
