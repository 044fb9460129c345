//! A whole ClusterSet in one process and in virtual time: API servers in memory, and the daemons as they are.
//!
//! | module | holds |
//! |---|---|
//! | [`simulation`] | runs a future in virtual time, from a seed |
//! | [`clock`] | clocks and random numbers of the C library, virtual |
//! | [`server`] | an API server in memory |
//! | [`net`] | the network between clients and API servers: latency, faults, a log |
//! | [`world`] | a ClusterSet and its daemons |

mod authority;
pub mod clock;
mod defaults;
mod fields;
mod kinds;
pub mod net;
mod select;
pub mod server;
pub mod simulation;
pub mod world;
