//! `freeport` as people run it: the built binary, the real kubectl, real clusters. One fleet serves all tests: three clusters
//! are a ClusterSet with its daemons, which tests have for themselves one after the other; two are a pair on which nothing
//! is installed until a test does it.

mod another_backend;
mod clusters;
mod contents;
mod member_set;
pub(crate) mod program;

mod dns;
mod export;
mod force;
mod gather;
mod get;
mod leave;
mod offloading;
mod pair;
mod refusals;
mod removal;
mod revoke;
mod status;
mod uninstall;
mod why;
