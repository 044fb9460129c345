//! A whole ClusterSet in one process and in virtual time: API servers in memory, and the daemons as they are.
//!
//! | module | holds |
//! |---|---|
//! | [`simulation`] | runs a future in virtual time, from a seed |
//! | [`clock`] | clocks and random numbers of the C library, virtual |
//! | [`api`] | an API server in memory |
//! | `controllers` | controllers of Kubernetes that every cluster has |
//! | `memory` | what these remember |
//! | [`invariant`] | what always holds, checked at every write |
//! | [`random`] | numbers by a seed |
//! | [`net`] | the network between clients and API servers: latency, faults, a log |
//! | [`world`] | a ClusterSet and its daemons |

pub mod api;
mod authority;
pub mod clock;
mod controllers;
pub mod invariant;
mod memory;
pub mod net;
pub mod random;
pub mod simulation;
pub mod world;
