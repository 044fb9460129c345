//! Who wrote what: the API servers' audit logs, which hold every request that writes.

use std::{
    fmt::Debug,
    fs::File,
    io::{Read, Seek, SeekFrom},
};

use serde_json::Value;

use crate::{
    cluster::Cluster,
    fixture::{AREA, World},
    say::say,
    world::{Ground, Simulated},
};

/// A point in all audit logs.
#[derive(Clone)]
pub struct Mark(Vec<u64>);

pub fn mark(world: &World) -> Mark {
    if let Ground::Simulated(Simulated { world, .. }) = &world.ground {
        return Mark(vec![world.net.audited()]);
    }
    let length = |cluster: &Cluster| complete_lines(world, &cluster.name, 0).len() as u64;
    Mark(world.clusters().iter().map(length).collect())
}

/// Those after so many bytes.
fn complete_lines(world: &World, cluster: &str, from: u64) -> String {
    let log = world.real().fleet.cluster(cluster).unwrap().audit_log();
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
    pub cluster: String,
    event: Value,
}

impl Written {
    /// Whether one of our daemons made it, that it was no renewal of a Lease, no dry run, and no
    /// question.
    pub fn is_ours(&self) -> bool {
        self.changes_something() && !self.text("/requestURI").contains("/leases")
    }

    /// Whether one of our daemons made it, that it was no dry run, and no question.
    pub fn changes_something(&self) -> bool {
        let members = format!("system:serviceaccount:{AREA}:freeport-member-");
        let user = self.text("/user/username");
        let ours = user.starts_with("system:serviceaccount:freeport-system:freeport-")
            || user.ends_with(":kube-binder")
            || user.starts_with(&members);
        let uri = self.text("/requestURI");
        let stays = !uri.contains("dryRun=All")
            && !uri.split('?').next().is_some_and(|path| path.ends_with("reviews"));
        ours && stays
    }

    /// Whether it was carried out.
    pub fn is_done(&self) -> bool {
        let code = self.event.pointer("/responseStatus/code").and_then(Value::as_u64);
        code.is_some_and(|code| code < 300)
    }

    /// When the API server got it: a text that sorts as the times do.
    pub fn at(&self) -> &str {
        self.text("/requestReceivedTimestamp")
    }

    /// The account of who made it.
    pub fn user(&self) -> &str {
        self.text("/user/username")
    }

    /// Name of what it is about.
    pub fn name(&self) -> &str {
        self.text("/objectRef/name")
    }

    /// Who made it, as it says itself: replicas of our daemons say which they are.
    pub fn agent(&self) -> &str {
        self.text("/userAgent")
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
    if let Ground::Simulated(Simulated { world, .. }) = &world.ground {
        let events = world.net.audit_since(since.0[0]);
        return events.into_iter().map(|(cluster, event)| Written { cluster, event }).collect();
    }
    let of = |(cluster, from): (&Cluster, &u64)| {
        let events = complete_lines(world, &cluster.name, *from);
        let event =
            |line| Written { cluster: cluster.name.clone(), event: serde_json::from_str(line).unwrap() };
        events.lines().map(event).collect::<Vec<_>>()
    };
    world.clusters().iter().zip(&since.0).flat_map(of).collect()
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

/// How often it is done again at the most.
const TRIES: usize = 3;

/// What comes of this, which gets the number of the try, while all daemons are heard. Where a machine is so busy that one of them is not heard in
/// time, they write that, and that it is heard again: then it is done again.
pub async fn while_all_are_heard<T: Debug>(world: &World, done: impl AsyncFn(usize) -> T) -> T {
    let mut turn = 0;
    loop {
        turn += 1;
        let since = mark(world);
        let came = done(turn).await;
        if turn == TRIES || !somebody_was_not_heard(world, &since) {
            return came;
        }
        say(&format!("somebody was not heard in time, so this is done again: {came:#?}"));
        world.settled().await;
    }
}

/// What the daemons write while this is done, and all are heard.
pub async fn writes_while(world: &World, done: impl AsyncFn()) -> Vec<String> {
    while_all_are_heard(world, async |_| {
        let since = mark(world);
        done().await;
        writes(world, &since)
    })
    .await
}

/// Whether a daemon has written since then who is heard: that is the status of a ClusterSet.
fn somebody_was_not_heard(world: &World, since: &Mark) -> bool {
    written(world, since).iter().any(|write| write.is_ours() && write.what().ends_with("clustersets/status"))
}
