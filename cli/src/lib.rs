//! cli
pub mod manifests;
pub mod objects;
