//! Belonging to a ClusterSet, by the daemons as users run them: what is wrong is said where the user looks and mended without
//! a restart; who leaves leaves nothing behind; and nothing is left because something vanished.
//!
//! Each test breaks something that the others need, and mends it.

mod about;
mod claim;
mod copies;
mod crd;
mod credential;
mod evicted;
mod failure;
mod leave;
mod moments;
mod odd_lease;
mod present;
mod proxied;
mod refused_writes;
mod shares;
mod traces;
