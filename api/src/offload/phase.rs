//! Conditions and phase of a NamespaceOffloading, from what its home wants and what the hosts say.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{
    map::{ACCEPTED, CREATION_LOOP_BACK_OFF, ENTRIES_MAX, MappedNamespace, TERMINATING},
    namespace::{OFFLOADING_REQUIRED, READY},
};
use crate::{
    condition::{Status, Verdict, conditions},
    view::{QUOTE_MAX, shortened},
};

/// How far a NamespaceOffloading is, over all clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Each selected cluster has its twin.
    Ready,
    /// No cluster is selected.
    NoClusterSelected,
    /// Twins are missing that may still come.
    InProgress,
    /// Some twins cannot be made.
    SomeFailed,
    /// No twin can be made.
    AllFailed,
    /// Each selected cluster has its twin, and new Pods are not placed as the strategy says.
    PlacementNotEnforced,
    /// It is being deleted.
    Terminating,
}

impl Phase {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::NoClusterSelected => "NoClusterSelected",
            Self::InProgress => "InProgress",
            Self::SomeFailed => "SomeFailed",
            Self::AllFailed => "AllFailed",
            Self::PlacementNotEnforced => "PlacementNotEnforced",
            Self::Terminating => "Terminating",
        }
    }

    /// The phase where this is said of the placement of new Pods: twins alone are not all that is asked for.
    pub fn with_placement(self, placed: Option<&Verdict>) -> Self {
        match self {
            Self::Ready if placed.is_some_and(|placed| placed.status == Status::False) => {
                Self::PlacementNotEnforced
            }
            phase => phase,
        }
    }
}

/// Reason of `Ready` of a cluster that is not heard.
pub const HOST_SILENT: &str = "HostSilent";
/// Reason of `OffloadingRequired` of a host that has a twin, or is to have one.
pub const SELECTED: &str = "ClusterSelected";
const NOT_SELECTED: &str = "ClusterNotSelected";
const CREATING: &str = "Creating";
const CREATED: &str = "NamespaceCreated";
const MAP_FULL: &str = "MapFull";
/// Reason of `Ready` of a host that has not deleted the twin yet, which is withdrawn.
pub const WITHDRAWN: &str = "Withdrawn";

/// What is known of one host, about one Namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host<'a> {
    /// Name of the twin that it shall have; none if it is not selected.
    pub desired: Option<&'a str>,
    /// The twin that it has is withdrawn, and it has not said yet that the twin is gone.
    pub is_withdrawn: bool,
    /// What it says about the Namespace, if anything.
    pub entry: Option<&'a MappedNamespace>,
    /// It is not there, so what it says may not be so any more.
    pub is_silent: bool,
    /// It is selected and was not asked, since the map for it is full.
    pub has_no_room: bool,
}

/// What a NamespaceOffloading says about its clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Over all clusters.
    pub phase: Phase,
    /// For each cluster, by its ID: `OffloadingRequired` first, then perhaps `Ready`. Of one that is being deleted: clusters that still
    /// have something of it; when there are none, it can go.
    pub clusters: BTreeMap<String, Vec<Verdict>>,
}

impl Summary {
    /// Whether there is nothing to say but that some twins are there, and others may come any moment.
    pub fn is_on_the_way(&self) -> bool {
        let mut reasons = self.clusters.values().flatten().map(|verdict| verdict.reason.as_ref());
        self.phase == Phase::InProgress
            && reasons.all(|reason| [SELECTED, NOT_SELECTED, CREATING, CREATED].contains(&reason))
    }

    /// The conditions of each cluster; `have` lends the times of those whose status stays.
    pub fn conditions(
        &self,
        have: &BTreeMap<String, Vec<Condition>>,
        now: &Time,
    ) -> BTreeMap<String, Vec<Condition>> {
        let of = |(cluster, verdicts): (&String, &Vec<Verdict>)| {
            let have = have.get(cluster).map(Vec::as_slice).unwrap_or_default();
            (cluster.clone(), conditions(verdicts, have, None, now))
        };
        self.clusters.iter().map(of).collect()
    }
}

/// What a NamespaceOffloading says about these hosts, by their IDs.
///
/// Only selected hosts count for the phase: what becomes of a twin that nobody wants any more is said in its conditions alone.
pub fn summary(hosts: &BTreeMap<String, Host<'_>>, is_deleting: bool) -> Summary {
    let clusters = hosts
        .iter()
        .filter(|(_, host)| !is_deleting || host.is_about())
        .map(|(cluster, host)| (cluster.clone(), host.verdicts(cluster)))
        .collect();
    let phase = if is_deleting { Phase::Terminating } else { phase(hosts) };
    Summary { phase, clusters }
}

fn phase(hosts: &BTreeMap<String, Host<'_>>) -> Phase {
    let required = || hosts.values().filter(|host| host.desired.is_some());
    let says = |phase: &str| required().filter(|host| !host.is_silent && host.says(phase)).count();
    let (all, ready, failed) = (required().count(), says(ACCEPTED), says(CREATION_LOOP_BACK_OFF));
    if all == 0 {
        Phase::NoClusterSelected
    } else if ready == all {
        Phase::Ready
    } else if failed == all {
        Phase::AllFailed
    } else if failed > 0 {
        Phase::SomeFailed
    } else {
        Phase::InProgress
    }
}

impl Host<'_> {
    /// What it says about the twin that it shall have; one that it need not have any more may have any name.
    fn answer(&self) -> Option<&MappedNamespace> {
        self.entry.filter(|entry| self.desired.is_none_or(|desired| entry.remote_namespace == desired))
    }

    /// Whether it has a twin, or something to do with one.
    fn is_about(&self) -> bool {
        self.desired.is_some() || self.is_withdrawn || self.entry.is_some()
    }

    fn says(&self, phase: &str) -> bool {
        self.answer().is_some_and(|entry| entry.phase == phase)
    }

    fn verdicts(&self, cluster: &str) -> Vec<Verdict> {
        let required = match self.desired {
            Some(twin) => Verdict::new(
                OFFLOADING_REQUIRED,
                Status::True,
                SELECTED,
                format!("the cluster is selected: its twin is called {twin}"),
            ),
            None => {
                Verdict::new(OFFLOADING_REQUIRED, Status::False, NOT_SELECTED, "the cluster is not selected")
            }
        };
        [Some(required), self.is_about().then(|| self.ready(cluster))].into_iter().flatten().collect()
    }

    fn ready(&self, cluster: &str) -> Verdict {
        let answer = self.answer();
        if self.is_silent {
            let last = match answer {
                Some(entry) => format!("the last it said of {}: {}", entry.remote_namespace, in_words(entry)),
                None => "it said nothing of a twin".to_owned(),
            };
            return Verdict::new(
                READY,
                Status::Unknown,
                HOST_SILENT,
                format!("cluster {cluster} is silent; {}", shortened(last, QUOTE_MAX)),
            );
        }
        let (status, reason) = match answer.map(|entry| entry.phase.as_str()) {
            None | Some(ACCEPTED | CREATION_LOOP_BACK_OFF) if self.is_withdrawn => (Status::False, WITHDRAWN),
            None if self.has_no_room => (Status::False, MAP_FULL),
            None => (Status::False, CREATING),
            Some(ACCEPTED) => (Status::True, CREATED),
            Some(CREATION_LOOP_BACK_OFF) => (Status::False, CREATION_LOOP_BACK_OFF),
            Some(TERMINATING) => (Status::False, TERMINATING),
            // Of a version to come. A host's word is quoted, never a reason of ours.
            Some(_) => (Status::Unknown, "UnknownPhase"),
        };
        let message = match answer {
            _ if reason == WITHDRAWN => {
                format!("waiting for cluster {cluster} to delete the twin of this Namespace")
            }
            // What the reason says is not said again.
            Some(entry) if entry.phase == reason => told(&[&entry.remote_namespace], entry),
            Some(entry) => told(&[&entry.remote_namespace, &entry.phase], entry),
            None if self.has_no_room => {
                format!(
                    "the NamespaceMap for cluster {cluster} has {ENTRIES_MAX} Namespaces, which is all it may have; this one waits until \
                     another is not offloaded there any more"
                )
            }
            None => format!("cluster {cluster} has not said anything of it yet"),
        };
        Verdict::new(READY, status, reason, shortened(message, QUOTE_MAX))
    }
}

/// A host's own words.
pub fn in_words(entry: &MappedNamespace) -> String {
    told(&[&entry.phase], entry)
}

/// These words, and why.
fn told(words: &[&str], entry: &MappedNamespace) -> String {
    let why = [entry.reason.as_deref(), entry.message.as_deref()].into_iter().flatten();
    let words: Vec<_> = words.iter().copied().chain(why).filter(|word| !word.is_empty()).collect();
    words.join(": ")
}
