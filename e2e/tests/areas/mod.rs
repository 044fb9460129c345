//! Several ClusterSets led by one cluster: what befalls one does not concern the others. One fleet serves all tests.

mod fixture;

mod apart;
mod flood;
mod odd;
mod rights;
