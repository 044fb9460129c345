//! Which members lack a Namespace that Services are exported from: an exporter reads it on its ServiceExports.
//!
//! A member names on its Lease the Namespaces that it lacks ([`LACKS`](crate::label::LACKS)). The leader's Lease says of each of these
//! Namespaces which members lack it ([`LACKING`](crate::label::LACKING)). Leases are renewed anyway, so nothing is written for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::words::NAMED;

/// Number of Namespaces that a member names on its Lease.
pub const NAMESPACES: usize = 100;

/// Limit of what the leader's Lease says of all Namespaces, in bytes. Of the rest nothing is said.
const BYTES_MAX: usize = 8 << 10;

/// The members that lack one Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lack {
    /// How many they are.
    count: usize,
    /// The first of their IDs.
    first: Vec<String>,
}

/// As in `north, south, west and 2 more`.
impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.count.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// The members that lack a Namespace, by Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking(BTreeMap<String, Lack>);

impl Lacking {
    /// By the Namespaces that each member lacks.
    pub fn of<'a>(members: impl IntoIterator<Item = (&'a String, &'a BTreeSet<String>)>) -> Self {
        let mut all = BTreeMap::<String, Lack>::new();
        for (cluster, namespaces) in members {
            for namespace in namespaces {
                let lack = all.entry(namespace.clone()).or_default();
                lack.count += 1;
                if lack.first.len() < NAMED {
                    lack.first.push(cluster.clone());
                }
            }
        }
        Self(all)
    }

    /// Reads `NAMESPACE=COUNT,ID,ID NAMESPACE=...`. What cannot be read is left out.
    pub(crate) fn said<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let lack = |word: &str| {
            let (namespace, members) = word.split_once('=')?;
            let mut members = members.split(',');
            let count = members.next()?.parse().ok().filter(|count| *count > 0)?;
            let first: Vec<_> = members.take(NAMED).map(str::to_owned).collect();
            (!first.is_empty()).then(|| (namespace.to_owned(), Lack { count, first }))
        };
        Self(words.filter_map(lack).collect())
    }

    /// The words that [`said`](Self::said) reads, as many as there is room for.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let mut room = BYTES_MAX;
        let word = |(namespace, lack): (&String, &Lack)| {
            format!("{namespace}={},{}", lack.count, lack.first.join(","))
        };
        self.0.iter().map(word).take_while(move |word| {
            let taken = room.checked_sub(word.len() + 1);
            room = taken.unwrap_or_default();
            taken.is_some()
        })
    }

    /// The members that lack this Namespace; none if no member is known to.
    pub fn lack(&self, namespace: &str) -> Option<&Lack> {
        self.0.get(namespace)
    }

    /// The Namespaces of which the two say different things.
    pub fn turned<'a>(&'a self, before: &'a Self) -> BTreeSet<&'a String> {
        let all = self.0.keys().chain(before.0.keys());
        all.filter(|namespace| self.0.get(*namespace) != before.0.get(*namespace)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_first_members_are_named_and_all_are_counted() {
        let members: BTreeMap<_, _> =
            ["a", "b", "c", "d", "e"].map(|id| (id.to_owned(), names(&["shop"]))).into();
        let mut lacking = Lacking::of(&members);
        assert_eq!(lacking.lack("shop").unwrap().to_string(), "a, b, c and 2 more");
        assert!(lacking.lack("web").is_none());
        let before = std::mem::replace(&mut lacking, Lacking::of(&BTreeMap::new()));
        assert_eq!(lacking.turned(&before), [&"shop".to_owned()].into());
        assert!(before.turned(&before).is_empty());
    }

    #[test]
    fn what_cannot_be_read_hides_nothing_else() {
        let words = ["shop=2,a,b", "", "x", "x=", "x=a", "x=0,a", "x=1", "web=1,c"];
        let lacking = Lacking::said(words.into_iter());
        assert_eq!(lacking.0.keys().collect::<Vec<_>>(), ["shop", "web"]);
    }

    #[test]
    fn a_lease_has_room_for_some_and_no_more() {
        let all = (0..5000).map(|n| format!("namespace-{n:04}")).collect();
        let lacking = Lacking::of([(&"east".to_owned(), &all)]);
        let bytes: usize = lacking.words().map(|word| word.len() + 1).sum();
        assert!((BYTES_MAX - 40..=BYTES_MAX).contains(&bytes), "{bytes}");
    }

    proptest! {
        #[test]
        fn what_is_said_is_read(members in prop::collection::btree_map("[a-z]{1,5}", prop::collection::btree_set("[a-z]{1,5}", 0..5), 0..7)) {
            let lacking = Lacking::of(&members);
            let words: Vec<_> = lacking.words().collect();
            let read = Lacking::said(words.iter().map(String::as_str));
            prop_assert_eq!(&read, &lacking);
            for (cluster, namespaces) in &members {
                for namespace in namespaces {
                    let lack = read.lack(namespace).unwrap();
                    let lacks = members.values().filter(|all| all.contains(namespace)).count();
                    prop_assert!(lack.count == lacks && (lack.first.contains(cluster) || lacks > NAMED));
                }
            }
        }
    }
}
