//! Services of other clusters as Pods use them: three clusters with nodes, the daemons deployed in them by `manifests/` and by
//! the commands. One fleet; who stops what others use has it for itself.

mod certificates;
mod client;
mod deployed;
mod dns;
mod downtime;
mod families;
mod offload;
mod outage;
mod placement;
mod places;
mod readiness;
mod routing;
mod stateful;
mod survival;
mod traffic;
mod world;
