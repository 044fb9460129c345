//! What passes between clients and an API server, counted. Virtual time tells nothing about speed; counts tell how work grows.

use std::collections::BTreeMap;

use crate::api;

/// Requests and events of watches. Those of Leases are counted apart, since their number depends on how much time passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that read, watches included.
    pub reads: u64,
    /// Requests that write, refused ones included.
    pub writes: u64,
    /// Events of watches that arrived.
    pub events: u64,
    /// Bytes of all bodies, in both directions.
    pub bytes: u64,
}

impl Traffic {
    /// Counts what passed since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            events: self.events - earlier.events,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

impl std::ops::Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            events: self.events + other.events,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Traffic by cluster, and whether it is about Leases.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<(String, bool), Traffic>);

impl Counts {
    pub(super) fn request(&mut self, cluster: &str, ask: &api::Request, answered: usize) {
        let traffic = self.entry(cluster, is_of_leases(ask));
        match ask.method.as_str() {
            "GET" => traffic.reads += 1,
            _ => traffic.writes += 1,
        }
        traffic.bytes += (ask.body.len() + answered) as u64;
    }

    pub(super) fn events(&mut self, cluster: &str, is_of_leases: bool, events: u64, bytes: usize) {
        let traffic = self.entry(cluster, is_of_leases);
        traffic.events += events;
        traffic.bytes += bytes as u64;
    }

    pub(super) fn of(&self, cluster: &str, is_of_leases: bool) -> Traffic {
        self.0.get(&(cluster.to_owned(), is_of_leases)).copied().unwrap_or_default()
    }

    pub(super) fn requests(&self) -> u64 {
        self.0.values().map(|traffic| traffic.reads + traffic.writes).sum()
    }

    fn entry(&mut self, cluster: &str, is_of_leases: bool) -> &mut Traffic {
        self.0.entry((cluster.to_owned(), is_of_leases)).or_default()
    }
}

pub(super) fn is_of_leases(ask: &api::Request) -> bool {
    ask.path.starts_with("/apis/coordination.k8s.io/")
}
