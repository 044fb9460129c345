//! Other processes with the uid of our cluster. Most often they are of this very cluster: a newer one replaces an older one. But a
//! cluster that was copied, as a virtual machine or from a backup of etcd, has the uid, the credential and the note of the other.
//!
//! What tells them apart is the Lease that a member keeps in its own cluster: each copy has an API server of its own, and only
//! processes of one and the same cluster take that Lease over from each other.

use std::collections::BTreeSet;

use kit::index::Shared;

use crate::restore::RestoreDetector;

/// Who the holder of a Lease is that has our cluster's uid and is not this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// A process of this cluster whose place we take.
    Predecessor,
    /// A process of this cluster that has taken our place.
    Successor,
    /// A process of a copy of this cluster that came after us.
    Newcomer,
    /// A process of a copy of this cluster that was there before us.
    Elder,
    /// It cannot be found out now.
    Unknown,
}

/// What this process knows of the others. It outlives sessions. Pure.
#[derive(Default)]
struct Kin {
    /// Who ran in this cluster before this process began.
    predecessors: BTreeSet<String>,
    /// Whose place this process took. One that holds the Lease again lives.
    elders: BTreeSet<String>,
    /// Whether this process has held the Lease, and has not left it to an elder since.
    held: bool,
}

impl Kin {
    /// `replaced`: whether another process has taken our place in our own cluster; `None` about the Lease there itself.
    fn relation(&self, holder: &str, replaced: Option<bool>) -> Relation {
        let is_elder = self.elders.contains(holder);
        match replaced {
            None if self.held && !is_elder => Relation::Successor,
            None => Relation::Predecessor,
            Some(true) => Relation::Successor,
            Some(false) if is_elder => Relation::Elder,
            Some(false) if self.predecessors.contains(holder) => Relation::Predecessor,
            Some(false) if self.held => Relation::Newcomer,
            Some(false) => Relation::Elder,
        }
    }
}

/// What this process knows of others with the uid of its cluster. Cloning shares it.
#[derive(Clone)]
pub struct Kinship {
    kin: Shared<Kin>,
    /// The Lease in our own cluster, unless that is the one to be kept.
    home: Option<RestoreDetector>,
}

impl Kinship {
    /// For a Lease in our own cluster.
    pub fn at_home() -> Self {
        Self { kin: Shared::default(), home: None }
    }

    /// For a Lease in another cluster. `home` is the one that we keep in our own, which `predecessors` have held before.
    pub fn abroad(home: RestoreDetector, predecessors: BTreeSet<String>) -> Self {
        Self { kin: Shared::new(Kin { predecessors, ..Kin::default() }), home: Some(home) }
    }

    /// The same, with another detector for the Lease in our own cluster, which was restored.
    #[must_use]
    pub fn of_home(&self, home: RestoreDetector) -> Self {
        Self { kin: self.kin.clone(), home: Some(home) }
    }

    /// This process comes after that one in our own cluster.
    pub fn follows(&self, predecessor: &str) {
        self.kin.with(|kin| kin.predecessors.insert(predecessor.to_owned()));
    }

    /// Who `holder` is, which has the uid of our cluster and is not `us`.
    pub(crate) async fn relation(&self, holder: &str, us: &str) -> Relation {
        let replaced = match &self.home {
            None => None,
            Some(home) => match home.leases().get_opt(home.name()).await {
                Ok(lease) => Some(lease.is_some_and(|lease| lease.holder().is_some_and(|by| by != us))),
                Err(error) => {
                    tracing::warn!(%error, "cannot read our Lease in this cluster: not known whether this process was replaced");
                    return Relation::Unknown;
                }
            },
        };
        self.kin.with(|kin| kin.relation(holder, replaced))
    }

    /// We leave the Lease to another: whoever holds it after that one comes before us, too.
    pub(crate) fn gave_way(&self) {
        self.kin.with(|kin| kin.held = false);
    }

    /// We hold the Lease; before it was `taken` from somebody, if it was.
    pub(crate) fn held(&self, taken: Option<&str>) {
        self.kin.with(|kin| {
            kin.held = true;
            kin.elders.extend(taken.map(str::to_owned));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(predecessors: &[&str]) -> Kin {
        Kin { predecessors: predecessors.iter().map(|&p| p.to_owned()).collect(), ..Kin::default() }
    }

    #[test]
    fn a8_of_two_copies_the_one_that_was_first_stays() {
        // Both have the note that `u/a` held the Lease; `a` still runs, `b` has just begun in the copy.
        let (mut a, mut b) = (of(&["u/before"]), of(&["u/a"]));
        a.held = true;
        assert_eq!(b.relation("u/a", Some(false)), Relation::Predecessor, "it looks like a restart");
        (b.held, b.elders) = (true, ["u/a".to_owned()].into());
        assert_eq!(a.relation("u/b", Some(false)), Relation::Newcomer, "so it takes its Lease back");
        assert_eq!(b.relation("u/a", Some(false)), Relation::Elder, "it lives");
        b.held = false;
        assert_eq!(b.relation("u/a2", Some(false)), Relation::Elder, "as is who comes after it");
        let after_restart = of(&["u/b"]);
        assert_eq!(after_restart.relation("u/a", Some(false)), Relation::Elder);
        assert_eq!(of(&["u/a"]).relation("u/a", Some(false)), Relation::Predecessor, "restart of the first");
    }

    #[test]
    fn a_process_that_was_replaced_does_not_come_back() {
        let mut old = of(&[]);
        old.held = true;
        for replaced in [None, Some(true)] {
            assert_eq!(old.relation("u/new", replaced), Relation::Successor, "{replaced:?}");
        }
        let mut new = of(&[]);
        assert_eq!(new.relation("u/old", None), Relation::Predecessor);
        (new.held, new.elders) = (true, ["u/old".to_owned()].into());
        assert_eq!(
            new.relation("u/old", None),
            Relation::Predecessor,
            "an older version that does not yield"
        );
    }
}
