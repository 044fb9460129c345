//! Several ClusterSets led by one cluster: what befalls one does not concern the others. One fleet serves all tests, one after
//! the other.

#![cfg(test)]

mod fixture;

mod apart;
mod flood;
mod odd;
mod rights;
