//! What is wrong with links.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What is wrong with the link of a process to an API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Connections break, and new ones are reset.
    Cut,
    /// Nothing gets through until it ends, and nobody is told; clients give connections up after [`SILENCE`].
    Silent,
    /// Everything takes longer, in each direction.
    Slow(Duration),
    /// Requests are refused with this code.
    Refused(u16),
    /// Watches break, also new ones.
    NoWatches,
}

/// Until a client takes a connection on which nothing comes for dead: two pings.
pub(super) const SILENCE: Duration = Duration::from_secs(12);

/// Which links are out of order.
#[derive(Default)]
pub(super) struct Faults {
    /// By process and cluster.
    links: BTreeMap<(String, String), Fault>,
    /// Clusters whose API servers answer nobody.
    down: BTreeSet<String>,
}

impl Faults {
    pub(super) fn set(&mut self, process: &str, cluster: &str, fault: Option<Fault>) {
        let link = (process.to_owned(), cluster.to_owned());
        match fault {
            Some(fault) => drop(self.links.insert(link, fault)),
            None => drop(self.links.remove(&link)),
        }
    }

    pub(super) fn set_down(&mut self, cluster: &str, is_down: bool) {
        if is_down {
            self.down.insert(cluster.to_owned());
        } else {
            self.down.remove(cluster);
        }
    }

    pub(super) fn of(&self, process: &str, cluster: &str) -> Option<Fault> {
        if self.down.contains(cluster) {
            return Some(Fault::Cut);
        }
        if self.links.is_empty() {
            return None;
        }
        self.links.get(&(process.to_owned(), cluster.to_owned())).copied()
    }
}
