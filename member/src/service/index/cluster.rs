//! What holds for this cluster as a whole, in one session.

use api::{lacking::Lacking, membership::Wire};
use clap::ValueEnum;

use super::{limits::Limits, links::Links, reports::Reports};
use crate::identity::Identity;

/// What of a Service is exported.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EndpointIp {
    /// The addresses of its Pods, which other clusters have to have a route to.
    #[default]
    Pod,
    /// Its ClusterIP as the one endpoint, for gateways that have a route to nothing else.
    Cluster,
}

/// This cluster, and the leader it exchanges Services with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cluster {
    /// Who we are.
    pub(crate) us: Identity,
    /// What of a Service is exported.
    pub(crate) endpoint_ip: EndpointIp,
    /// Whether an import has core Endpoints beside its slices.
    pub(crate) endpoints_objects: bool,
    /// How the leader speaks.
    pub(crate) wire: Wire,
    /// IP families that Services of this cluster can have, the preferred one first; none while they are not known.
    pub(crate) families: Vec<String>,
    /// How it stands with the other clusters.
    pub(crate) links: Links,
    /// Which addresses their endpoints may have here.
    pub(crate) limits: Limits,
    /// Which clusters lack Namespaces, once the leader has told it.
    pub(crate) lacking: Option<Lacking>,
    /// What the clusters report of their imports.
    pub(crate) reports: Reports,
}
