//! Who wrote what: the API servers' audit logs, which hold every request that writes.

use std::fs;

use serde_json::Value;

use crate::fixture::{CLUSTERS, World};

/// A point in all audit logs.
pub struct Mark(Vec<u64>);

pub fn mark(world: &World) -> Mark {
    Mark(CLUSTERS.iter().map(|cluster| fs::metadata(log(world, cluster)).map_or(0, |m| m.len())).collect())
}

fn log(world: &World, cluster: &str) -> std::path::PathBuf {
    world.fleet.cluster(cluster).unwrap().audit_log()
}

/// What our daemons have written since, Leases apart: `cluster user verb uri code`.
pub fn writes(world: &World, since: &Mark) -> Vec<String> {
    let mut writes = Vec::new();
    for (cluster, from) in CLUSTERS.iter().zip(&since.0) {
        let text = fs::read_to_string(log(world, cluster)).unwrap();
        for line in text[usize::try_from(*from).unwrap()..].lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let (user, uri) =
                (event["user"]["username"].as_str().unwrap(), event["requestURI"].as_str().unwrap());
            let ours = user.starts_with("system:serviceaccount:freeport-system:freeport-")
                || user.starts_with("system:serviceaccount:clusterset-demo:freeport-member-");
            if ours && !uri.contains("/leases") {
                let code = &event["responseStatus"]["code"];
                writes.push(format!("{cluster} {user} {} {uri} {code}", event["verb"]));
            }
        }
    }
    writes
}
