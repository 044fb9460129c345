//! How much is kept of what other members write into the Common Area. The leader refuses what is too much; until it has, and where it
//! does not run, no member fills our memory all the same.

use std::time::Instant;

use api::quota::Quota;
use kit::{
    index::Shared,
    metrics::Metrics,
    objects::Change,
    quota::{Counted, Shares},
};

use super::{antrea::peers::PeerRecord, index::view::PeerSlice};

/// What each other member has of our memory: in slices, and in records as Antrea's controllers write them. Cloning shares it.
#[derive(Clone)]
pub(super) struct Allowance {
    pub(super) slices: Shared<Shares<PeerSlice>>,
    pub(super) antrea: Shared<Shares<PeerRecord>>,
}

impl Default for Allowance {
    fn default() -> Self {
        let quota = Quota::default();
        Self { slices: Shared::new(Shares::new(quota)), antrea: Shared::new(Shares::new(quota)) }
    }
}

impl Allowance {
    /// Takes in what the leader's Lease says; whether all is to be listed again.
    pub(super) fn hear(&self, quota: Option<Quota>, now: Instant) -> bool {
        fn hear<P: Counted>(shares: &mut Shares<P>, quota: Option<Quota>, now: Instant) -> bool {
            quota.into_iter().for_each(|quota| shares.set_quota(quota));
            shares.wants_list(now)
        }
        let slices = self.slices.with(|shares| hear(shares, quota, now));
        self.antrea.with(|shares| hear(shares, quota, now)) || slices
    }

    /// What is to be known of what a watch told.
    pub(super) fn admit<P: Counted>(
        &self,
        shares: &Shared<Shares<P>>,
        change: Change<P>,
        metrics: &Metrics,
    ) -> Option<Change<P>> {
        let change = shares.with(|shares| shares.change(change));
        metrics.left_out(self.left_out());
        change
    }

    /// How many records are not kept.
    pub(super) fn left_out(&self) -> usize {
        self.slices.with(|of| of.left_out()) + self.antrea.with(|of| of.left_out())
    }
}
