//! Requests, events and bytes that passed while something happened, as rows of a table.

use sim::net::Traffic;

/// Traffic at the leader's API server, and at those of all other members together.
pub(crate) struct Passed {
    pub(crate) leader: Traffic,
    pub(crate) others: Traffic,
    /// Number of the others.
    pub(crate) count: usize,
}

impl Passed {
    pub(crate) fn writes(&self) -> u64 {
        self.leader.writes + self.others.writes
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let (leader, others) = (self.leader.since(earlier.leader), self.others.since(earlier.others));
        Self { leader, others, count: self.count }
    }

    /// Cells of a row for one of `changes` changes: the leader's API server, and one of the others.
    pub(crate) fn cells(&self, changes: f64) -> String {
        let cells = |traffic: Traffic, by: f64| {
            let cell = |count: u64| format!("{:.1}", count as f64 / by);
            [
                cell(traffic.reads),
                cell(traffic.writes),
                cell(traffic.events),
                format!("{:.1}", traffic.bytes as f64 / by / 1000.0),
            ]
            .join(" | ")
        };
        let members = cells(self.others, changes * self.count as f64);
        format!("{} | {members}", cells(self.leader, changes))
    }

    /// Bytes at all API servers for one of `changes` changes and one cluster, in kB.
    pub(crate) fn kilobytes_each(&self, changes: f64) -> f64 {
        let bytes = (self.leader.bytes + self.others.bytes) as f64;
        bytes / changes / (self.count + 1) as f64 / 1000.0
    }
}
