//! What travels between clusters and what users write: kinds, names, labels, conditions.
//!
//! | module | holds |
//! |---|---|
//! | [`about`] | `ClusterProperty`: what a cluster says about itself |
//! | [`cluster_set`] | `ClusterSet`: who belongs, and the leader's and member's view of it |
//! | [`cluster_claim`] | `ClusterClaim`: an older way to say which cluster this is |
//! | [`antrea`] | what members that run Antrea's controllers do otherwise |
//! | [`announce`] | `MemberClusterAnnounce`: a member introduces itself in the Common Area |
//! | [`report`] | `ClusterReport`: how the exports and imports of a cluster are doing |
//! | [`resource_export`] | `ResourceExport`: what one member offers |
//! | [`resource_import`] | `ResourceImport`: what the leader made of all offers |
//! | [`slice`](mod@slice) | the EndpointSlice inside a `ResourceExport` |
//! | [`endpoints`] | the `Endpoints` records of Antrea, and slices |
//! | [`family`] | IP families |
//! | [`port`] | which ports are equal |
//! | [`mcs`] | `ServiceExport` and `ServiceImport` of the Multi-Cluster Services API |
//! | [`membership`] | what a member notes about the ClusterSet it takes part in |
//! | [`name`] | names derived from identities |
//! | [`bind`] | API binding: names, places and conditions of kube-bind |
//! | [`offload`] | Namespace replication and Pod placement: kinds, names and decisions |
//! | [`label`] | label and annotation keys and their fixed values |
//! | [`condition`] | setting a condition without moving its clock for nothing |
//! | [`fairness`] | whose requests an API server runs on the level of members |
//! | [`proxy`] | whether requests use a proxy |
//! | [`quota`] | what a leader takes in of one member |
//! | [`ranges`] | which addresses the endpoints of a member may have |
//! | [`lease`] | the Lease of a member or a leader |
//! | [`lacking`] | which members lack a Namespace, as Leases say it |
//! | [`token`] | what a token of a ServiceAccount says of itself |
//! | [`unwritten`] | what the holder of a Lease has left to write |
//! | [`view`] | decoding only what is used, and keeping what does not decode apart |
//! | [`words`] | how messages name several things |
//! | [`crd`] | the CustomResourceDefinitions of all of the above |
//!
//! No IO and no clock in here: time comes in as an argument.

#![expect(unreachable_pub, reason = "derive(CustomResource) repeats a public struct inside a private scope")]

pub mod about;
pub mod announce;
pub mod antrea;
pub mod bind;
pub mod cluster_claim;
pub mod cluster_set;
pub mod condition;
pub mod crd;
pub mod endpoints;
pub mod fairness;
pub mod family;
#[cfg(test)]
mod golden;
pub mod label;
pub mod lacking;
pub mod lease;
pub mod mcs;
pub mod membership;
pub mod name;
pub mod offload;
pub mod port;
pub mod proxy;
pub mod quota;
pub mod ranges;
pub mod report;
pub mod resource_export;
pub mod resource_import;
mod schema;
pub mod slice;
pub mod token;
pub mod unwritten;
pub mod view;
pub mod words;

/// Name and Namespace of a Service: equal in every cluster of a set, so it identifies the merged Service (rule R-4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// Namespace, the same word in every cluster.
    pub namespace: String,
    /// Name of the Service, its ServiceExport and its ServiceImport.
    pub name: String,
}

impl ServiceName {
    /// Puts the two parts together.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ServiceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
