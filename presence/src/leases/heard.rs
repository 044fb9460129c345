//! What was heard of the holder of a Lease.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::lease::Settled;
use jiff::Timestamp;
use kit::planted::Defect;

use crate::standing::Standing;

/// Renewals to wait for until a writer has vouched. The first may have been on its way when a record vanished; before the second
/// a live writer has had a whole period to notice and put the record back. Of one that the leader tells of, the second may be as old
/// as the leader's own renewal.
const RENEWALS: u64 = 2;
const RENEWALS_TOLD: u64 = 3;

/// After a restore, a writer that sees everything for so many renewals has put right what it can, though it goes on
/// writing: a single record that is refused again and again must not keep all its others out of date.
const LONG_ENOUGH: u64 = 6;

/// What was heard of the holder of a Lease.
#[derive(Default)]
pub(crate) struct Heard {
    /// uid of its Lease, if that is watched.
    pub(super) uid: Option<String>,
    /// Who holds it, if it is watched.
    pub(super) holder: Option<String>,
    pub(super) renewed: Option<Timestamp>,
    /// resourceVersion of its Lease as it was heard last; 0 if that is no number.
    pub(crate) version: u64,
    /// Number of its renewals that said what of its word counts.
    pub(crate) renewals: u64,
    /// The last of these, by its own clock.
    pub(super) counted: Option<Timestamp>,
    /// Whether the leader's Lease tells of it.
    pub(super) told: bool,
    /// How many of those excepted what has this name. Counted until its word counts as a whole, after a restore.
    excepted: BTreeMap<String, u64>,
    /// Number of its renewals that said it sees everything.
    pub(super) seeing: u64,
    /// It was removed from the set for good.
    pub(crate) left: bool,
    /// Clusters without renewals whose endpoints answer it, as it says.
    pub(super) answering: BTreeSet<String>,
    /// Version of the wire contract that it speaks, if it says one.
    pub(crate) wire: Option<String>,
    /// Since when it is silent, and after how long it counts as silent; `None` without a Lease.
    pub(super) silence: Option<(Instant, Duration)>,
    /// `None` without a Lease.
    pub(crate) standing: Option<Standing>,
    /// When its Lease went.
    pub(super) lost: Option<Instant>,
}

impl Heard {
    /// Whether what the writer says of what has this name is true now, if it was old when it was first heard.
    pub(super) fn is_current(&self, name: &str) -> bool {
        let excepted = self.excepted.get(name).copied().unwrap_or_default();
        self.left || self.renewals - excepted >= self.needed() || self.seeing >= LONG_ENOUGH
    }

    /// How many renewals it takes until its word is believed.
    pub(crate) fn needed(&self) -> u64 {
        match self.told {
            _ if Defect::OneRenewal.is_planted() => 1,
            true => RENEWALS_TOLD,
            false => RENEWALS,
        }
    }

    /// It was renewed. A leader renews its Lease before it is time where it has to tell of members: that does not count.
    pub(super) fn count(&mut self, settled: &Settled, restored: bool, stale: Duration) {
        let apart =
            self.renewed.zip(self.counted).map(|(now, before)| now.duration_since(before).unsigned_abs());
        if apart.is_some_and(|apart| apart < stale / 4) {
            return;
        }
        self.counted = self.renewed;
        self.seeing += u64::from(*settled != Settled::No);
        self.renewals += u64::from(settled.is_known());
        match settled {
            Settled::Writing(unwritten) if restored && self.seeing < LONG_ENOUGH => {
                for name in unwritten.names() {
                    *self.excepted.entry(name.clone()).or_default() += 1;
                }
            }
            _ if self.seeing >= LONG_ENOUGH => self.excepted.clear(),
            _ => {}
        }
    }
}
