//! What is to be done about a Lease, by what was seen of it. Pure.

use std::time::{Duration, Instant};

use api::{
    label,
    lease::{LeaseView, STALE},
};
use jiff::Timestamp;
use kit::holder::Holder;
use kube::ResourceExt;

use crate::kin::Relation;

/// What to do next about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Create,
    Renew,
    Take,
    /// Another process of our cluster does what we did.
    StandBy,
    /// It is another cluster's, or a copy's.
    KeepOut,
}

/// The Lease as last seen, and since when it looks like that.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) lease: Option<LeaseView>,
    since: Option<Instant>,
    /// Whether its holder was seen to renew it: one that has crashed does not.
    pub(super) renewed: bool,
    /// A request failed, and what we think of the Lease may be why. It keeps its age: silence is not broken by our failures.
    pub(super) doubtful: bool,
    /// When the annotation that somebody waits for our Lease changed last: as we found it, it may be old.
    rival: Option<Instant>,
    /// When we last said on it that we wait.
    pub(super) said: Option<Instant>,
}

impl Seen {
    pub(super) fn see(&mut self, lease: Option<LeaseView>, now: Instant) {
        // Whoever waits for it writes to it, too: that is no renewal.
        let renewal = |lease: &Option<LeaseView>| {
            let lease = lease.as_ref()?;
            Some((lease.uid(), lease.holder().map(str::to_owned), lease.renew_time()))
        };
        if self.since.is_none() || renewal(&self.lease) != renewal(&lease) {
            self.since = Some(now);
            let had = self.lease.as_ref().map(LeaseView::holder);
            self.renewed = had.is_some() && had == lease.as_ref().map(LeaseView::holder);
        }
        if self.lease.is_some() && rival(self.lease.as_ref()) != rival(lease.as_ref()) {
            self.rival = Some(now);
        }
        self.lease = lease;
        self.doubtful = false;
    }

    pub(super) fn holder(&self) -> Option<&str> {
        self.lease.as_ref()?.holder()
    }

    /// Its holder, if that is another process with our cluster's uid.
    pub(super) fn kin(&self, us: &Holder) -> Option<&str> {
        let lease = self.lease.as_ref().filter(|lease| lease.holder_cluster() == Some(&us.cluster_uid))?;
        lease.holder().filter(|holder| *holder != us.to_string())
    }

    /// Who waits for the Lease that we hold, if anybody lately said so.
    pub(super) fn rival(&self, us: &Holder, now: Instant) -> Option<&str> {
        self.rival.filter(|at| now.saturating_duration_since(*at) < self.stale())?;
        let (holder, _) = rival(self.lease.as_ref())?.split_once(' ')?;
        Some(holder).filter(|holder| *holder != us.to_string())
    }

    /// After how long without a renewal the Lease is stale.
    pub(super) fn stale(&self) -> Duration {
        self.lease.as_ref().map_or(STALE, LeaseView::stale)
    }

    /// `relation`: who the holder is, if it has our cluster's uid.
    pub(super) fn step(&self, us: &Holder, relation: Option<Relation>, now: Instant) -> Step {
        if self.lease.is_none() {
            return Step::Create;
        }
        let Some(holder) = self.holder() else {
            return Step::Take;
        };
        if holder == us.to_string() {
            return Step::Renew;
        }
        let age = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        match relation {
            _ if age >= self.stale() => Step::Take,
            Some(Relation::Predecessor | Relation::Newcomer) => Step::Take,
            Some(Relation::Successor | Relation::Unknown) => Step::StandBy,
            Some(Relation::Elder) | None => Step::KeepOut,
        }
    }
}

/// What `us` says at `now` on a Lease that it waits for: each time something else, since otherwise nobody would notice.
pub(super) fn waiting(us: &Holder, now: Timestamp) -> String {
    format!("{us} {}", now.strftime("%Y-%m-%dT%H:%M:%S%.fZ"))
}

fn rival(lease: Option<&LeaseView>) -> Option<&str> {
    lease?.annotations().get(label::WAITING).map(String::as_str)
}

#[cfg(test)]
mod tests;
