//! Who reads what changed.

use std::collections::BTreeMap;

/// A set of controllers: those that read what changed. The number of a controller is that of its queue in a
/// [`Store`](crate::store::Store).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readers(u8);

impl Readers {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Every controller.
    pub const ALL: Self = Self(u8::MAX);

    /// The controller of this number, less than eight.
    pub const fn one(number: u8) -> Self {
        Self(1 << number)
    }

    /// Those of either set.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those of this set that are not in the other.
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// These if something `changed`, else nobody.
    pub const fn when(self, changed: bool) -> Self {
        if changed { self } else { Self::NONE }
    }

    /// Whether all of `others` are in it.
    pub const fn has(self, others: Self) -> bool {
        others.without(self).0 == 0
    }

    /// Whether nobody is in it.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// Keys whose entries changed, and who reads what changed. No key is in it that nobody has to reconcile.
pub type Dirty<K> = BTreeMap<K, Readers>;

pub(super) fn add<K: Ord>(dirty: &mut Dirty<K>, key: K, readers: Readers) {
    if !readers.is_none() {
        let all = dirty.entry(key).or_default();
        *all = all.and(readers);
    }
}

pub(super) fn without<K: Ord>(dirty: &mut Dirty<K>, others: Readers) {
    dirty.retain(|_, readers| {
        *readers = readers.without(others);
        !readers.is_none()
    });
}
