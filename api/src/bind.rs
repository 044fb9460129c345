//! API binding: an API that one cluster offers, used in another. The kinds and the rules of kube-bind, `kube-bind.io/v1alpha2`.
//!
//! | module | holds |
//! |---|---|
//! | [`offer`] | `APIServiceExportTemplate`, `Collection`, `Cluster`, `BindableResourcesRequest`: what a provider offers, and who asks |
//! | [`export`] | `APIServiceExport`, `APIServiceExportRequest`, `APIServiceNamespace`: what a consumer may use |
//! | [`bound_schema`] | `BoundSchema`: a CRD that travels as data |
//! | [`carried`] | a CRD as a `BoundSchema`, and back |
//! | [`binding`] | `APIServiceBinding`, `APIServiceBindingBundle`, `ClusterBinding`: what a consumer uses |
//! | [`resource`] | APIs, claims, scopes and isolations, in all of these |
//! | [`condition`] | kube-bind's conditions, and `Ready`, which sums them up |
//! | [`duration`] | lengths of time as Go writes them |
//! | [`grant`] | whether a consumer may have what it asks for |
//! | [`identity`] | names that a provider gives what is a consumer's |
//! | [`mapping`] | where an object of the consumer is at the provider, and back |
//! | [`label`] | label and annotation keys, the finalizer |

pub mod binding;
pub mod bound_schema;
pub mod carried;
pub mod condition;
pub mod duration;
pub mod export;
pub mod grant;
pub mod holder;
pub mod identity;
pub mod label;
pub mod mapping;
pub mod offer;
pub mod resource;

#[cfg(test)]
mod tests;
