//! Namespace replication and Pod placement: one Namespace over several clusters, its Pods where its owner says.
//!
//! | module | holds |
//! |---|---|
//! | [`namespace`] | `NamespaceOffloading`: what a user asks for, and how far it is |
//! | [`map`] | `NamespaceMap`: the twins that a home wants of a host, and what became of them |
//! | [`peer`] | `OffloadPeer`: what an administrator allows another cluster, and wants of it |
//! | [`offer`] | `OffloadOffer`: what a host lets a home use |
//! | [`shadow_pod`] | `ShadowPod`: a Pod of a home that runs at a host |
//! | [`travel`] | what travels of a Pod, and what becomes of it at the host |
//! | [`pod_status`] | what travels of the status of a Pod |
//! | [`address`] | which addresses a Pod of another cluster may have |
//! | [`seal`](mod@seal) | what only one cluster can read |
//! | [`quantity`] | amounts of resources |
//! | [`requests`] | what Pods request of each resource |
//! | [`view`] | the kinds as they are read, whatever others wrote |
//! | [`label`] | label and annotation keys, finalizers, the taint, and their fixed values |
//! | [`names`] | names of records and virtual nodes |
//! | [`twin`] | names of twins, and which Namespaces can never be or have one |
//! | [`consent`] | whether a host's administrator allows a twin, or a Pod |
//! | [`selector`] | which virtual nodes a `clusterSelector` selects |
//! | [`review`](mod@review) | what the webhook changes of a Pod |
//! | [`webhook`] | when API servers ask the webhook |
//! | [`phase`] | conditions and phase of a NamespaceOffloading |
//!
//! The kinds of group `offloading.liqo.io` are Liqo's, with additive fields.

pub mod address;
pub mod consent;
pub mod label;
pub mod map;
pub mod names;
pub mod namespace;
pub mod offer;
pub mod peer;
pub mod phase;
pub mod pod_status;
pub mod quantity;
pub mod requests;
pub mod review;
pub mod seal;
pub mod selector;
pub mod shadow_pod;
#[cfg(test)]
mod tests;
pub mod travel;
pub mod twin;
pub mod view;
pub mod webhook;
