//! The report: a line for each thing that was looked at.

use std::fmt;

use crate::{code::Code, finding::Finding};

/// What belongs together, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The API server.
    Api,
    /// The CustomResourceDefinitions.
    Crds,
    /// The daemons.
    Daemons,
    /// Membership, and the connection with the leader.
    Link,
    /// ServiceExports.
    Exports,
    /// ServiceImports.
    Imports,
    /// CoreDNS.
    Dns,
    /// Several clusters.
    Set,
}

impl Group {
    /// Those of one cluster.
    pub const OF_CLUSTER: [Self; 7] =
        [Self::Api, Self::Crds, Self::Daemons, Self::Link, Self::Exports, Self::Imports, Self::Dns];

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Crds => "crds",
            Self::Daemons => "daemons",
            Self::Link => "link",
            Self::Exports => "exports",
            Self::Imports => "imports",
            Self::Dns => "dns",
            Self::Set => "set",
        }
    }
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Well.
    Ok,
    /// May be meant, or may become a problem.
    Warn,
    /// Broken.
    Failed,
    /// Not looked at, or it follows from something else.
    Skipped,
}

impl Mark {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its ID, or its context without one.
    pub title: String,
    /// How commands name it.
    pub context: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { title, context } = self;
        match title == context {
            true => f.write_str(title),
            false => write!(f, "{title} (context {context})"),
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The cluster; none for what is between clusters.
    pub place: Option<Place>,
    /// What it is about.
    pub group: Group,
    /// How it is.
    pub mark: Mark,
    /// What is so.
    pub text: String,
    /// What was found, unless it is well or skipped.
    pub finding: Option<Finding>,
}

/// All lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Clusters in the order in which they were asked for, and what is between them at the end.
    pub lines: Vec<Line>,
    /// Number of clusters that could be looked at.
    pub seen: usize,
}

impl Report {
    /// Number of lines with this mark.
    pub fn count(&self, mark: Mark) -> usize {
        self.lines.iter().filter(|line| line.mark == mark).count()
    }

    /// Whether nothing is FAILED.
    pub fn is_well(&self) -> bool {
        self.count(Mark::Failed) == 0
    }

    /// Whether something is FAILED that another look may find well.
    pub fn may_mend(&self) -> bool {
        let failed = self.lines.iter().filter(|line| line.mark == Mark::Failed);
        failed.filter_map(|line| line.finding.as_ref()).any(|finding| finding.code.may_mend())
    }

    /// Keeps what was found with one of the codes `only`, unless there are none, and skips what was found with one of `skip`.
    pub fn narrowed(mut self, only: &[Code], skip: &[Code]) -> Self {
        let code = |line: &Line| line.finding.as_ref().map(|finding| finding.code);
        if !only.is_empty() {
            self.lines.retain(|line| code(line).is_some_and(|code| only.contains(&code)));
        }
        for line in &mut self.lines {
            if let Some(code) = code(line).filter(|code| skip.contains(code)) {
                *line = Line {
                    mark: Mark::Skipped,
                    text: format!("{code} is not to be found"),
                    finding: None,
                    ..line.clone()
                };
            }
        }
        self
    }
}
