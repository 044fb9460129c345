//! A whole ClusterSet in one process and in virtual time: API servers in memory, and the daemons as they are.
//!
//! | module | holds |
//! |---|---|
//! | [`simulation`] | runs a future in virtual time, from a seed |
//! | [`clock`] | clocks and random numbers of the C library, virtual |
//! | [`api`] | an API server in memory |
//! | `controllers` | controllers of Kubernetes that every cluster has |
//! | [`invariant`] | what always holds, checked at every write |
//! | [`net`] | the network between clients and API servers: latency, faults, a log |
//! | [`world`] | a ClusterSet and its daemons |

pub mod api;
mod authority;
pub mod clock;
mod controllers;
pub mod invariant;
pub mod net;
pub mod simulation;
pub mod world;
