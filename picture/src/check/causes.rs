//! One cause gives one line: what follows from it, in the same cluster or in another, is skipped.

use std::collections::BTreeMap;

use super::report::{Group, Line, Mark, Place};
use crate::finding::{Finding, Weight};

/// What a check shows.
#[derive(Debug)]
pub(super) enum Item {
    /// It is well.
    Well(String),
    /// It is not known: why.
    Unknown(String),
    /// Something was found.
    Found(Finding),
    /// Something was found that others find, too. Where several have the same key, the first that is a source counts.
    Shared { finding: Finding, key: String, is_source: bool },
    /// It follows from something that has another key or none: from what.
    Follows(String),
}

impl Item {
    pub(super) fn found(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

/// Codes after which what a cluster's conditions say is old, and its connection is no question.
const STALE: [u16; 12] = [1, 3, 101, 102, 103, 104, 105, 106, 107, 108, 109, 111];
/// Codes after which nothing is to be said of CoreDNS.
const UNSEEN: [u16; 2] = [1, 101];

/// All that was found, in the order of the report.
#[derive(Default)]
pub(super) struct Causes {
    items: Vec<(Option<Place>, Group, Item)>,
}

impl Causes {
    /// Looks at a group of a cluster, unless it follows from what was found there before.
    pub(super) fn look(&mut self, place: &Place, group: Group, look: impl FnOnce() -> Vec<Item>) {
        let items = match self.stale(place, group) {
            Some(cause) => vec![Item::Follows(cause)],
            None => look(),
        };
        self.items.extend(items.into_iter().map(|item| (Some(place.clone()), group, item)));
    }

    /// Adds what is between clusters.
    pub(super) fn look_between(&mut self, items: Vec<Item>) {
        self.items.extend(items.into_iter().map(|item| (None, Group::Set, item)));
    }

    /// What keeps a group of the cluster from being looked at.
    fn stale(&self, place: &Place, group: Group) -> Option<String> {
        let codes: &[u16] = match group {
            Group::Link | Group::Exports | Group::Imports => &STALE,
            Group::Dns => &UNSEEN,
            Group::Api | Group::Set => &[],
            Group::Crds | Group::Daemons => &UNSEEN[..1],
        };
        let mut here = self.items.iter().filter(|(of, ..)| of.as_ref() == Some(place));
        here.find_map(|(_, from, item)| match item {
            Item::Found(finding) | Item::Shared { finding, .. } => {
                let is_broken = finding.weight == Weight::Broken && codes.contains(&finding.code.0);
                is_broken.then(|| finding.code.to_string())
            }
            // A connection that follows from elsewhere makes conditions old as well; a Service that does concerns no other.
            Item::Follows(cause) if *from == Group::Link && group != Group::Dns => Some(cause.clone()),
            Item::Well(_) | Item::Unknown(_) | Item::Follows(_) => None,
        })
    }

    /// The lines of the report.
    pub(super) fn lines(self) -> Vec<Line> {
        let firsts = self.firsts();
        let line = |(at, (place, group, item)): (usize, (Option<Place>, Group, Item))| {
            let (mark, text, finding) = match item {
                Item::Well(text) => (Mark::Ok, text, None),
                Item::Unknown(why) => (Mark::Skipped, why, None),
                Item::Follows(cause) => (Mark::Skipped, format!("follows from {cause}"), None),
                Item::Shared { finding, key, .. } => match firsts.get(&key) {
                    Some((first, of)) if *first != at => {
                        let from = of.as_ref().map_or_else(String::new, |of| format!(" of {}", of.title));
                        (
                            Mark::Skipped,
                            format!("follows from {}{from}: {}", finding.code, finding.what),
                            None,
                        )
                    }
                    _ => found(finding),
                },
                Item::Found(finding) => found(finding),
            };
            Line { place, group, mark, text, finding }
        };
        self.items.into_iter().enumerate().map(line).collect()
    }

    /// The place of the finding that counts of those with the same key, and its cluster.
    fn firsts(&self) -> BTreeMap<String, (usize, Option<Place>)> {
        let mut firsts = BTreeMap::new();
        for wanted in [true, false] {
            for (at, (place, _, item)) in self.items.iter().enumerate() {
                if let Item::Shared { key, is_source, .. } = item
                    && *is_source == wanted
                {
                    firsts.entry(key.clone()).or_insert((at, place.clone()));
                }
            }
        }
        firsts
    }
}

fn found(finding: Finding) -> (Mark, String, Option<Finding>) {
    let mark = if finding.weight == Weight::Broken { Mark::Failed } else { Mark::Warn };
    (mark, finding.what.clone(), Some(finding))
}
