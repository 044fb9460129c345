//! Names of what users have, in Namespaces of a run.

use std::fmt;

use sim::random::Random;

/// Those who export, as far as they are in the ClusterSet; the leader's cluster only imports.
const EXPORTERS: [&str; 4] = ["east", "west", "north", "south"];
/// How many of them there are at least: anchors need them.
const LEAST_EXPORTERS: usize = 2;
const MOST_EXPORTERS: usize = EXPORTERS.len();
/// The cluster that leads.
pub(crate) const LEADER: &str = "leader";
/// Ports of Services: name, number, and the number that endpoints listen on. All endpoints have all of them.
pub const PORTS: [(&str, i32, i32); 2] = [("http", 80, 8080), ("admin", 81, 8081)];
/// Namespaces in which users do as they like, and Services in each.
pub(crate) const NAMESPACES: usize = 3;
pub(crate) const SERVICES: usize = 4;

/// Second number of the addresses of a cluster that exports.
pub(crate) fn network(exporter: &str) -> usize {
    1 + EXPORTERS.iter().position(|other| *other == exporter).unwrap_or_default()
}

/// What a Service is called in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub cluster: &'static str,
    pub namespace: String,
    pub service: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} of {}", self.namespace, self.service, self.cluster)
    }
}

/// A Service that is imported all along.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    pub service: &'static str,
    /// Who exports it from the first to the last moment, with endpoints.
    pub always: &'static [&'static str],
    /// Who joins them now and then.
    pub sometimes: Option<&'static str>,
}

/// The anchors: one cluster's, two clusters', and one that a second cluster exports now and then.
pub const ANCHORS: [Anchor; 3] = [
    Anchor { service: "lonely", always: &["east"], sometimes: None },
    Anchor { service: "both", always: &["east", "west"], sometimes: None },
    Anchor { service: "joined", always: &["east"], sometimes: Some("west") },
];

/// What somebody made who is not us, under names as ours have; in the Namespace of the anchors.
pub const FOREIGN: &str = "foreign";

/// Where a run is: its Namespaces, which begin with a name of its own, and its clusters.
#[derive(Clone, Debug)]
pub struct Places {
    pub prefix: String,
    exporters: usize,
}

impl Places {
    /// In clusters `leader`, `east` and `west`.
    pub fn new(prefix: &str) -> Self {
        Self::among(prefix, LEAST_EXPORTERS)
    }

    /// In cluster `leader` and so many that export, from [`LEAST_EXPORTERS`] to [`MOST_EXPORTERS`].
    fn among(prefix: &str, exporters: usize) -> Self {
        Self { prefix: format!("{prefix}-"), exporters: exporters.clamp(LEAST_EXPORTERS, MOST_EXPORTERS) }
    }

    /// In cluster `leader` and as many that export as this seed says.
    pub fn drawn(prefix: &str, seed: u64) -> Self {
        let more = Random::new(seed ^ 0xC105_7E25).below(MOST_EXPORTERS - LEAST_EXPORTERS + 1);
        Self::among(prefix, LEAST_EXPORTERS + more)
    }

    /// Those that export.
    pub fn exporters(&self) -> &'static [&'static str] {
        &EXPORTERS[..self.exporters]
    }

    /// All clusters.
    pub fn clusters(&self) -> Vec<&'static str> {
        [LEADER].into_iter().chain(self.exporters().iter().copied()).collect()
    }

    /// Where the anchors are, and nobody deletes anything.
    pub fn anchors(&self) -> String {
        format!("{}anchors", self.prefix)
    }

    pub(crate) fn namespace(&self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    pub fn all(&self) -> Vec<String> {
        (0..NAMESPACES).map(|number| self.namespace(number)).chain([self.anchors()]).collect()
    }
}
