//! How it stands with the other clusters as seen from here: two questions kept apart. Whether a cluster is there, its Lease says; whether
//! its endpoints answer, only a connection does.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// Of a cluster that is not named nothing is known to be wrong. The times are only said: nothing is decided by them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Links {
    /// No endpoint of these answers from here any more; since when, by our clock.
    pub(crate) unreached: BTreeMap<String, Timestamp>,
    /// Endpoints of these do.
    pub(crate) reached: BTreeSet<String>,
    /// These do not renew their Leases; when they last did, by their own clocks.
    pub(crate) silent: BTreeMap<String, Option<Timestamp>>,
    /// Of these it is not known yet whether they do, since this process has only just begun: what was said of them stands.
    pub(crate) unheard: BTreeSet<String>,
}

impl Links {
    /// Clusters with which it stands otherwise in `other`. That they were heard for the first time is no news, nor that they answer
    /// where there is nobody whose place they can take.
    pub(crate) fn turned(&self, other: &Self) -> BTreeSet<String> {
        let unreached = turned(&self.unreached, &other.unreached);
        let is_any_lost = !self.unreached.is_empty() && !other.unreached.is_empty();
        let reached = self.reached.symmetric_difference(&other.reached).filter(|_| is_any_lost);
        unreached.chain(turned(&self.silent, &other.silent)).chain(reached).cloned().collect()
    }
}

fn turned<'a, T: PartialEq>(
    a: &'a BTreeMap<String, T>,
    b: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = &'a String> {
    a.keys().chain(b.keys()).filter(|cluster| a.get(*cluster) != b.get(*cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_come_go_or_change_are_named() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let had = Links {
            unreached: [("east".to_owned(), at(1)), ("north".to_owned(), at(1))].into(),
            silent: [("south".to_owned(), None)].into(),
            ..Links::default()
        };
        let has = Links { unreached: [("north".to_owned(), at(1))].into(), ..Links::default() };
        assert_eq!(had.turned(&has), ["east", "south"].map(str::to_owned).into());
        assert_eq!(has.turned(&had), had.turned(&has));
        assert!(had.turned(&had).is_empty());
        let answering = |links: &Links| Links { reached: ["west".to_owned()].into(), ..links.clone() };
        assert_eq!(
            has.turned(&answering(&has)),
            ["west".to_owned()].into(),
            "it can take the place of north"
        );
        assert!(Links::default().turned(&answering(&Links::default())).is_empty());
    }
}
