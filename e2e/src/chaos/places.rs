//! Names of what users have, in Namespaces of a run.

use std::fmt;

/// Those who export; the leader's cluster only imports.
pub const EXPORTERS: [&str; 2] = ["east", "west"];
/// Ports of Services: name, number, and the number that endpoints listen on. All endpoints have all of them.
pub const PORTS: [(&str, i32, i32); 2] = [("http", 80, 8080), ("admin", 81, 8081)];
/// Namespaces in which users do as they like, and Services in each.
pub(crate) const NAMESPACES: usize = 3;
pub(crate) const SERVICES: usize = 4;

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

/// The Namespaces of a run: those that begin with a name of its own.
#[derive(Clone, Debug)]
pub struct Places {
    pub prefix: String,
}

impl Places {
    pub fn new(prefix: &str) -> Self {
        Self { prefix: format!("{prefix}-") }
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
