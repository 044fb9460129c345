//! The API server: whether it answers, its version, and its clock.

use jiff::SignedDuration;

use super::{
    causes::Item,
    cluster::{Cluster, Server},
    scene::Scene,
};
use crate::{
    age,
    gap::Gap,
    sign::{Sign, sign},
};

/// The first Kubernetes that has what our policies need.
const FIRST: (u32, u32) = (1, 31);
/// Clocks may differ by less: a Lease is stale after 30 s.
const APART: SignedDuration = SignedDuration::from_secs(10);

pub(super) fn look(scene: &Scene<'_>, cluster: &Cluster) -> Vec<Item> {
    let gaps = [cluster.server.as_ref().err(), cluster.uid.as_ref().err()];
    if let Some(Gap::NoAnswer(why)) = gaps.into_iter().flatten().find(|gap| matches!(gap, Gap::NoAnswer(_))) {
        return vec![Item::found(scene.broken(1, cluster, why))];
    }
    let server = match &cluster.server {
        Ok(server) => server,
        Err(gap) => return vec![Item::Unknown(format!("version of the API server: {gap}"))],
    };
    let mut items = vec![version(scene, cluster, server)];
    items.extend(clock(scene, cluster, server));
    items
}

fn version(scene: &Scene<'_>, cluster: &Cluster, server: &Server) -> Item {
    let Server { version, release, ahead } = server;
    match release {
        Some(release) if *release < FIRST => {
            let what = format!("Kubernetes is {version}; the admission policies need 1.{}", FIRST.1);
            Item::found(scene.broken(2, cluster, what))
        }
        _ => {
            let clock = if ahead.is_some() { ", clock as here" } else { "" };
            let clock = if is_apart(server) { "" } else { clock };
            Item::Well(format!("Kubernetes {version}{clock}"))
        }
    }
}

fn is_apart(server: &Server) -> bool {
    server.ahead.is_some_and(|ahead| ahead.abs() >= APART)
}

/// Clocks that differ: that of the API server and ours, or that of a member and ours.
fn clock(scene: &Scene<'_>, cluster: &Cluster, server: &Server) -> Option<Item> {
    let title = cluster.title();
    let lease = cluster.member.lease.as_ref().ok().and_then(Option::as_ref);
    let member = lease.map(|lease| sign(lease, scene.now));
    let what = match (server.ahead.filter(|_| is_apart(server)), member) {
        (Some(ahead), _) => {
            let way = if ahead.is_negative() { "behind" } else { "ahead of" };
            format!(
                "the clock of the API server of {title} is {} {way} the clock here",
                age::text(ahead.abs())
            )
        }
        (None, Some(Sign::Ahead(by))) => {
            format!("freeport-member of {title} renewed its Lease {} in the future", age::text(by))
        }
        (None, _) => return None,
    };
    Some(Item::found(scene.broken(5, cluster, what).degraded()))
}
