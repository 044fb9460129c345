//! What offloading adds: records of two clusters, the member among Namespaces and Nodes, and what users ask for.

mod content;
mod daemon;
mod nodes;
pub(super) mod pods;
mod records;
