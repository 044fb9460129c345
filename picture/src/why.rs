//! Walks from the exporters of a Service to one importer, step by step, and stops at the first step that is broken.
//!
//! | module | step |
//! |---|---|
//! | `scene` | who takes part: importer, exporters, Common Area |
//! | `set` | importer and exporters are members, and connected with the leader |
//! | `export` | somebody exports the Service, and can |
//! | `record` | the Common Area has the exports |
//! | `merge` | the leader merged them, and they agree |
//! | `import` | the importer has the Service |
//! | `endpoints` | somebody answers |
//! | `dns` | CoreDNS of the importer gives the Service its name |
//! | `walk` | the steps as lines, and the verdict |

mod dns;
mod endpoints;
mod export;
mod import;
mod merge;
mod record;
mod scene;
mod set;
mod walk;

use api::ServiceName;
use jiff::Timestamp;

pub use self::walk::{Line, Mark, Walk};
use crate::{
    cluster::Cluster,
    finding::{Finding, Weight},
    step::Step,
};

/// What is known of one Service in a whole ClusterSet.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The Service.
    pub service: ServiceName,
    /// The clusters that were asked for, each once.
    pub clusters: Vec<Cluster>,
    /// By the clock of whoever asks.
    pub now: Timestamp,
}

/// What a step shows.
#[derive(Debug, Default)]
struct Looked {
    findings: Vec<Finding>,
    /// What is well.
    said: Vec<String>,
    /// What is not known, and why.
    unknown: Vec<String>,
}

impl Looked {
    fn found(finding: Finding) -> Self {
        Self { findings: vec![finding], ..Self::default() }
    }

    fn well(said: impl Into<String>) -> Self {
        Self { said: vec![said.into()], ..Self::default() }
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self { unknown: vec![why.into()], ..Self::default() }
    }

    fn extend(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.said.extend(other.said);
        self.unknown.extend(other.unknown);
    }

    /// All of these clusters' together: what one of them lacks does not break what another one does well.
    fn of_any(all: impl Iterator<Item = Self>) -> Self {
        let all: Vec<_> = all.collect();
        let is_broken = |finding: &Finding| finding.weight == Weight::Broken;
        let some_are_well = all.iter().any(|one| !one.findings.iter().any(is_broken));
        let mut together = Self::default();
        for mut one in all {
            if some_are_well {
                one.findings = one.findings.into_iter().map(Finding::degraded).collect();
            }
            together.extend(one);
        }
        together
    }
}

/// Walks to the cluster `from`, by its ID or its context; without it, to the first one.
///
/// # Errors
/// There is no such cluster, as far as is known: a sentence.
pub fn why(picture: &Picture, from: Option<&str>) -> Result<Walk, String> {
    let scene = scene::Scene::of(picture, from)?;
    let mut walk = walk::Walking::default();
    for step in Step::ALL {
        walk.step(step, |step| match step {
            Step::Set => set::look(&scene),
            Step::Export => export::look(&scene),
            Step::Record => record::look(&scene),
            Step::Merge => merge::look(&scene),
            Step::Import => import::look(&scene),
            Step::Endpoints => endpoints::look(&scene),
            Step::Dns => dns::look(&scene),
        });
    }
    Ok(walk.end(&scene))
}

#[cfg(test)]
mod tests;
