//! A ClusterSet by the daemons as users run them. One program, so that tests that wait for Leases wait side by side.

mod antrea;
mod antrea_leader;
mod chaos;
mod faults;
mod membership;
mod odd;
mod offload;
mod offload_webhook;
mod policies;
mod replicas;
mod schema;
mod service;
mod vanish;
