//! What is kept, and known to be there, of the objects of one cluster namespace.

use std::collections::{BTreeMap, BTreeSet};

use api::quota::Quota;

/// What one cluster namespace has.
#[derive(Default)]
pub(super) struct Share {
    /// Memory of each that is looked at, by name.
    pub(super) kept: BTreeMap<String, usize>,
    pub(super) bytes: usize,
    /// Names of those that are more.
    pub(super) left_out: BTreeSet<String>,
    /// Why some are not read, by name.
    pub(super) odd: BTreeMap<String, String>,
    /// There are others that are not read.
    pub(super) has_more_odd: bool,
    /// There may be others, of which nothing is known.
    pub(super) has_more: bool,
}

impl Share {
    pub(super) fn put(&mut self, name: String, bytes: usize) {
        self.bytes += bytes;
        self.kept.insert(name, bytes);
    }

    pub(super) fn leave_out(&mut self, name: String, quota: Quota) {
        self.left_out.insert(name);
        // Of as many as are looked at it is known that they are there.
        if self.left_out.len() >= quota.records {
            self.has_more = true;
        }
        while self.left_out.len() > quota.records {
            self.left_out.pop_last();
        }
    }

    pub(super) fn put_odd(&mut self, name: String, why: &str, quota: Quota) {
        match self.odd.len() < quota.records {
            true => drop(self.odd.insert(name, why.to_owned())),
            false => self.has_more_odd = true,
        }
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.bytes -= self.kept.remove(name).unwrap_or_default();
        self.left_out.remove(name);
        self.odd.remove(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        let has_more = self.has_more || self.has_more_odd;
        self.kept.is_empty() && self.left_out.is_empty() && self.odd.is_empty() && !has_more
    }

    /// For how many more there is room.
    pub(super) fn room(&self, quota: Quota) -> usize {
        let is_full = self.bytes >= quota.bytes;
        if is_full { 0 } else { quota.records.saturating_sub(self.kept.len()) }
    }
}
