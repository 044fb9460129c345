//! Who wrote what: the API servers' audit logs, which hold every request that writes.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
};

use serde_json::Value;

use crate::fixture::{AREA, CLUSTERS, World};

/// A point in all audit logs.
#[derive(Clone)]
pub struct Mark(Vec<u64>);

pub fn mark(world: &World) -> Mark {
    Mark(CLUSTERS.iter().map(|cluster| complete_lines(world, cluster, 0).len() as u64).collect())
}

/// Those after so many bytes.
fn complete_lines(world: &World, cluster: &str, from: u64) -> String {
    let log = world.fleet.cluster(cluster).unwrap().audit_log();
    let mut text = Vec::new();
    if let Ok(mut log) = File::open(log) {
        log.seek(SeekFrom::Start(from)).unwrap();
        log.read_to_end(&mut text).unwrap();
    }
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    String::from_utf8(text).unwrap()
}

/// A request that writes.
pub struct Written {
    pub cluster: &'static str,
    event: Value,
}

impl Written {
    /// Whether one of our daemons made it, that it was no renewal of a Lease, no dry run, and no
    /// question.
    pub fn is_ours(&self) -> bool {
        let members = format!("system:serviceaccount:{AREA}:freeport-member-");
        let user = self.text("/user/username");
        let ours = user.starts_with("system:serviceaccount:freeport-system:freeport-")
            || user.ends_with(":kube-binder")
            || user.starts_with(&members);
        let uri = self.text("/requestURI");
        let stays = !uri.contains("dryRun=All")
            && !uri.split('?').next().is_some_and(|path| path.ends_with("reviews"));
        ours && stays && !uri.contains("/leases")
    }

    /// Of what it is about.
    pub fn namespace(&self) -> &str {
        self.text("/objectRef/namespace")
    }

    /// Verb and kind: `patch serviceexports/status`.
    pub fn what(&self) -> String {
        let (verb, kind) = (self.text("/verb"), self.text("/objectRef/resource"));
        match self.text("/objectRef/subresource") {
            "" => format!("{verb} {kind}"),
            part => format!("{verb} {kind}/{part}"),
        }
    }

    fn text(&self, pointer: &str) -> &str {
        self.event.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// The requests of anybody that write, since then, refused ones too.
pub fn written(world: &World, since: &Mark) -> Vec<Written> {
    let of = |(cluster, from): (&&'static str, &u64)| {
        let events = complete_lines(world, cluster, *from);
        let cluster: &'static str = cluster;
        let events: Vec<_> = events
            .lines()
            .map(|line| Written { cluster, event: serde_json::from_str(line).unwrap() })
            .collect();
        events
    };
    CLUSTERS.iter().zip(&since.0).flat_map(of).collect()
}

/// The requests of our daemons that write, since then, refused ones too; without Leases and dry runs. Each is
/// `time cluster user verb uri code`.
pub fn writes(world: &World, since: &Mark) -> Vec<String> {
    let ours = written(world, since).into_iter().filter(Written::is_ours);
    let line = |Written { cluster, event }: Written| {
        let (user, uri) =
            (event["user"]["username"].as_str().unwrap(), event["requestURI"].as_str().unwrap());
        let (verb, code, time) = (&event["verb"], &event["responseStatus"]["code"], &event["stageTimestamp"]);
        format!("{time} {cluster} {user} {verb} {uri} {code}")
    };
    ours.map(line).collect()
}
