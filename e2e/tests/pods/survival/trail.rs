//! What the audit logs say of daemons that wrote beside each other.

use std::collections::BTreeMap;

use e2e::{
    audit::{self, Mark, Written},
    chaos::traces::{Trace, by_deposed},
    fixture::AREA,
    world::World,
};

/// What daemons wrote, since then.
pub(super) struct Trail(Vec<Written>);

impl Trail {
    pub(super) fn of(world: &World, since: &Mark) -> Self {
        let written = audit::written(world, since).into_iter();
        Self(written.filter(|written| written.changes_something() && written.is_done()).collect())
    }

    /// What was written by a replica while another one of its daemon held the Lease of the active one.
    pub(super) fn by_deposed(&self) -> Vec<String> {
        let named = |written: &Written| {
            let replica = replica(written).and_then(|pod| pod.rsplit('-').next());
            let agent = replica.map(|replica| format!("({}-{replica})", daemon(written)));
            Trace { agent: agent.unwrap_or_default(), ..Trace::from(written) }
        };
        by_deposed(&self.0.iter().map(named).collect::<Vec<_>>())
    }

    /// What was written by a daemon that was not told that there are others, after one of these had become active.
    pub(super) fn by_the_one_before(&self) -> Vec<String> {
        let mut elected = BTreeMap::<String, &str>::new();
        for written in self.0.iter().filter(|written| written.name().ends_with("-active")) {
            let first = elected.entry(daemon(written)).or_insert(written.at());
            *first = (*first).min(written.at());
        }
        let is_late = |written: &&Written| {
            replica(written).is_none()
                && elected.get(&daemon(written)).is_some_and(|first| written.at() >= *first)
        };
        let said = |written: &Written| format!("{} {} {}", written.at(), written.what(), written.name());
        assert!(!elected.is_empty(), "replicas elect");
        self.0.iter().filter(is_late).map(said).collect()
    }
}

/// Which daemon wrote it: cluster and name, also of what a member writes at the leader.
fn daemon(written: &Written) -> String {
    let member = written.user().strip_prefix(&format!("system:serviceaccount:{AREA}:freeport-member-"));
    let here = || (written.cluster.as_str(), written.user().rsplit(':').next().unwrap_or_default());
    let (cluster, daemon) = member.map_or_else(here, |cluster| (cluster, "freeport-member"));
    format!("{cluster}/{daemon}")
}

/// The Pod that wrote it, where there are several.
fn replica(written: &Written) -> Option<&str> {
    written.agent().rsplit_once('(')?.1.strip_suffix(')')
}
