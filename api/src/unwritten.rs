//! What the holder of a Lease has left to write, by name: for all else it vouches.
//!
//! Who does not know of this reads [`WRITING`](crate::label::WRITING) beside it, and takes the holder's word for nothing.

use std::{collections::BTreeSet, fmt::Display};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The feature of Services, in the names of what is left to write.
pub const SERVICES: &str = "Services";

/// The feature of offloading, whose keys are the IDs of hosts.
pub const OFFLOADING: &str = "Offloading";

/// An annotation names no more than so many keys, in no more than so many bytes. With more, everything may be left to write.
const KEYS: usize = 100;
const BYTES: usize = 8 << 10;

/// What is left to write; `None` if that is not known, or more than can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten(Option<BTreeSet<String>>);

impl Unwritten {
    /// Nothing.
    pub fn nothing() -> Self {
        Self(Some(BTreeSet::new()))
    }

    /// Perhaps everything.
    pub fn unknown() -> Self {
        Self(None)
    }

    /// These keys of a feature.
    pub fn of(feature: &str, keys: impl IntoIterator<Item = String>) -> Self {
        let keys: BTreeSet<_> = keys.into_iter().take(KEYS + 1).map(|key| named(feature, key)).collect();
        Self(Some(keys)).bounded()
    }

    /// What is left of either.
    pub fn and(self, other: Self) -> Self {
        let both = self.0.zip(other.0);
        Self(both.map(|(mut all, more)| {
            all.extend(more);
            all
        }))
        .bounded()
    }

    /// Whether it is nothing.
    pub fn is_nothing(&self) -> bool {
        self.0.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Whether something may be left of what has this name: see [`named`].
    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(name))
    }

    /// The names, if they are known.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().flatten()
    }

    /// Annotation [`UNWRITTEN`](crate::label::UNWRITTEN) of a Lease that is renewed at that time. A daemon that does not know the
    /// annotation leaves it as it is, so the time says whether it is of this renewal.
    pub(crate) fn annotation(&self, at: Timestamp) -> String {
        let Some(names) = &self.0 else { return String::new() };
        names.iter().fold(time(at), |said, name| said + " " + name)
    }

    /// What the annotation of a Lease says that was renewed at that time.
    pub(crate) fn said(annotation: Option<&str>, renewed: Option<Timestamp>) -> Self {
        let mut words = annotation.unwrap_or_default().split(' ');
        let (at, renewed) = (words.next().unwrap_or_default(), renewed.map(time));
        if renewed.as_deref() != Some(at) {
            return Self::unknown();
        }
        Self(Some(words.take(KEYS + 1).map(str::to_owned).collect())).bounded()
    }

    fn bounded(self) -> Self {
        let fits = |names: &BTreeSet<String>| {
            names.len() <= KEYS && names.iter().map(|name| name.len() + 1).sum::<usize>() <= BYTES
        };
        Self(self.0.filter(fits))
    }
}

/// A key of a feature, so that those of several do not mix. Neither has spaces.
pub fn named(feature: &str, key: impl Display) -> String {
    format!("{feature}/{key}")
}

/// As `renewTime` says it.
pub(crate) fn time(at: Timestamp) -> String {
    let time = serde_json::to_value(MicroTime(at)).ok();
    time.as_ref().and_then(|time| time.as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn keys(count: usize) -> Unwritten {
        Unwritten::of(SERVICES, (0..count).map(|n| format!("shop/web-{n}")))
    }

    #[test]
    fn what_is_said_with_a_renewal_is_read_with_that_renewal_alone() {
        for unwritten in [Unwritten::nothing(), keys(1), keys(KEYS)] {
            let said = unwritten.annotation(at(7));
            assert_eq!(Unwritten::said(Some(&said), Some(at(7))), unwritten);
            assert!(!Unwritten::said(Some(&said), Some(at(8))).is_known(), "of an older daemon's renewal");
            assert!(!Unwritten::said(Some(&said), None).is_known());
        }
        assert!(keys(3).has("Services/shop/web-2") && !keys(3).has("Services/shop/web-3"));
        assert!(!keys(3).has("Other/shop/web-2"), "another feature's");
    }

    #[test]
    fn too_much_is_not_said_and_may_be_everything() {
        let long = Unwritten::of(SERVICES, (0..KEYS).map(|n| format!("{}/{n}", "n".repeat(126))));
        for much in [keys(KEYS + 1), keys(KEYS).and(Unwritten::of("Other", ["a".into()])), long] {
            assert!(!much.is_known() && !much.is_nothing() && much.has("Services/any/thing"), "{much:?}");
            assert!(!Unwritten::said(Some(&much.annotation(at(7))), Some(at(7))).is_known());
        }
        let written_by_others = format!("{}{}", time(at(7)), " x".repeat(100_000));
        assert!(Unwritten::said(Some(&written_by_others), Some(at(7))).has("x"));
        let many: String = (0..=KEYS).map(|n| format!(" {n}")).collect();
        assert!(!Unwritten::said(Some(&(time(at(7)) + &many)), Some(at(7))).is_known());
    }
}
