//! Services of other clusters as Pods use them: three clusters with nodes, the daemons deployed in them by `manifests/` and by
//! the commands. One fleet, one test at a time; they need root and some packages, and say so where they have not.

#![cfg(test)]

mod deployed;
mod dns;
mod downtime;
mod families;
mod readiness;
mod routing;
mod stateful;
mod traffic;
mod world;
