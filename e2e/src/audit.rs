//! Who wrote what: the API servers' audit logs, which hold every request that writes.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::fixture::{AREA, CLUSTERS, World};

/// A point in all audit logs.
pub struct Mark(Vec<usize>);

pub fn mark(world: &World) -> Mark {
    Mark(CLUSTERS.iter().map(|cluster| complete_lines(world, cluster).len()).collect())
}

fn complete_lines(world: &World, cluster: &str) -> String {
    let log: PathBuf = world.fleet.cluster(cluster).unwrap().audit_log();
    let mut text = fs::read_to_string(log).unwrap_or_default();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

/// The requests of our daemons that write, since then, refused ones too; without Leases and dry runs. Each is
/// `time cluster user verb uri code`.
pub fn writes(world: &World, since: &Mark) -> Vec<String> {
    let members = format!("system:serviceaccount:{AREA}:freeport-member-");
    let mut writes = Vec::new();
    for (cluster, from) in CLUSTERS.iter().zip(&since.0) {
        for line in complete_lines(world, cluster)[*from..].lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let (user, uri) =
                (event["user"]["username"].as_str().unwrap(), event["requestURI"].as_str().unwrap());
            let ours = user.starts_with("system:serviceaccount:freeport-system:freeport-")
                || user.ends_with(":kube-binder")
                || user.starts_with(&members);
            if ours && !uri.contains("/leases") && !uri.contains("dryRun=All") {
                let (verb, code, time) =
                    (&event["verb"], &event["responseStatus"]["code"], &event["stageTimestamp"]);
                writes.push(format!("{time} {cluster} {user} {verb} {uri} {code}"));
            }
        }
    }
    writes
}
