//! Belonging to a ClusterSet, on two real clusters, by the daemons as users run them: what is wrong is said where the user
//! looks and mended without a restart; who leaves leaves nothing behind; and nothing is left because something vanished.
//!
//! One fleet serves all tests, one at a time: each breaks something that the others need, and mends it.

#![cfg(test)]

mod claim;
mod failure;
mod fixture;
mod leave;
mod present;
