//! A ClusterSet by the daemons as users run them. One program, so that tests that wait for Leases wait side by side.

#![cfg(test)]

mod antrea;
mod antrea_leader;
mod membership;
mod schema;
mod service;
mod vanish;
