//! The Leases of a Common Area: one table of all that was heard of their holders. Pure: clocks come in as arguments.
//!
//! Silence counts only as long as something is heard: our own Lease comes by the same watch. A watch that has ended makes nobody
//! absent, and when it goes on everybody gets the time anew. So who is silent can change only when a Lease is heard, and no
//! timer is needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{
    lease::{LeaseView, Pace, Settled},
    name,
    quota::Quota,
};
use jiff::Timestamp;
use kit::objects::Change;
use kube::ResourceExt;

use crate::{
    heartbeat::{Announce, Heartbeats},
    skew::Skew,
    standing::Standing,
};

/// Renewals to wait for until a writer has vouched. The first may have been on its way when a record vanished; before the second
/// a live writer has had a whole period to notice and put the record back.
pub(crate) const RENEWALS: u64 = 2;

/// After a restore, a writer that sees everything for so many renewals has put right what it can, though it goes on
/// writing: a single record that is refused again and again must not keep all its others out of date.
const LONG_ENOUGH: u64 = 6;

/// What the Leases of a Common Area say about their holders.
pub struct Leases {
    pace: Pace,
    /// By the names of their Leases. A holder whose Lease is gone stays, for what it said before.
    holders: BTreeMap<String, Heard>,
    /// When any Lease was heard last.
    last: Option<Instant>,
    /// Since when Leases are heard without a long break.
    since: Option<Instant>,
    /// Members without a Lease, whose heartbeats stand for one.
    heartbeats: Heartbeats,
    /// The Common Area was restored from a backup: what a writer says there is old, until it has vouched for it.
    restored: bool,
    leader_clock: Skew,
    /// Seconds by which the leader's clock is ahead of ours.
    skew: Option<i64>,
    /// What the leader's Lease said of the CRDs of the records last, if it was heard.
    schemas: Option<Option<String>>,
}

/// What was heard of the holder of a Lease.
#[derive(Default)]
pub(crate) struct Heard {
    uid: Option<String>,
    /// Who holds it.
    holder: Option<String>,
    renewed: Option<Timestamp>,
    /// Number of its renewals that said what of its word counts.
    pub(crate) renewals: u64,
    /// How many of those excepted what has this name. Counted until its word counts as a whole, after a restore.
    excepted: BTreeMap<String, u64>,
    /// Number of its renewals that said it sees everything.
    seeing: u64,
    /// It was removed from the set for good.
    pub(crate) left: bool,
    /// Version of the wire contract that it speaks, if it says one.
    pub(crate) wire: Option<String>,
    /// Since when it is silent, and after how long it counts as silent; `None` without a Lease.
    silence: Option<(Instant, Duration)>,
    /// `None` without a Lease.
    pub(crate) standing: Option<Standing>,
    /// When its Lease went.
    lost: Option<Instant>,
}

impl Heard {
    /// Whether what the writer says of what has this name is true now, if it was old when it was first heard.
    fn is_current(&self, name: &str) -> bool {
        let excepted = self.excepted.get(name).copied().unwrap_or_default();
        self.left || self.renewals - excepted >= RENEWALS || self.seeing >= LONG_ENOUGH
    }

    fn count(&mut self, settled: &Settled, restored: bool) {
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

/// What a change of Leases means for those who wait for a writer's word.
#[derive(Debug, Default)]
pub struct News {
    /// Leases that were renewed, and how settled their holders are.
    pub renewed: Vec<(String, Settled)>,
    /// Leases whose holders left for good or came back, and Leases that are gone.
    pub turned: BTreeSet<String>,
    /// A CRD of the records is another one, and lacks nothing: the records read differently, and no watch tells of that.
    pub schemas: bool,
    /// What the leader takes in of a member, if its Lease was heard to say it.
    pub quota: Option<Quota>,
}

impl Leases {
    /// Nothing heard. `pace` is that of our own Lease; `restored`: the Common Area was just restored from a backup.
    pub fn new(pace: Pace, heartbeats: Heartbeats, restored: bool) -> Self {
        Self {
            pace,
            holders: BTreeMap::new(),
            last: None,
            since: None,
            heartbeats,
            restored,
            leader_clock: Skew::default(),
            skew: None,
            schemas: None,
        }
    }

    /// Takes in what a watch of Leases told at `now`, `clock` by the wall.
    pub fn change(&mut self, change: Change<LeaseView>, now: Instant, clock: Timestamp) -> News {
        let mut news = News::default();
        if let Some(change) = self.heartbeats.among(change) {
            self.fold(change, now, clock, &mut news);
        }
        news
    }

    /// Takes in what a watch of announces told at `now`, `clock` by the wall.
    pub fn announced(&mut self, change: Change<Announce>, now: Instant, clock: Timestamp) -> News {
        let mut news = News::default();
        for change in self.heartbeats.change(change) {
            self.fold(change, now, clock, &mut news);
        }
        news
    }

    /// Seconds by which the leader's clock is ahead of ours, if that is too much.
    pub fn skew(&self) -> Option<i64> {
        self.skew
    }

    /// Whether the Common Area is heard: our own Lease comes by the same watch, so that it is never quiet for long.
    pub fn is_heard(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) < self.pace.stale())
    }

    /// For how long this Lease has not been there, as far as that was seen; `None` while it is there, and while nothing is heard.
    pub fn missing_for(&self, lease: &str, now: Instant) -> Option<Duration> {
        let heard = self.holders.get(lease);
        if !self.is_heard(now) || heard.is_some_and(|heard| heard.standing.is_some()) {
            return None;
        }
        let since = heard.and_then(|heard| heard.lost).max(self.since)?;
        Some(now.saturating_duration_since(since))
    }

    /// Whether the Common Area was restored from a backup while it was watched.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// uid of a writer's Lease.
    pub fn uid(&self, writer: &str) -> Option<String> {
        self.holders.get(writer)?.uid.clone()
    }

    /// uid of the cluster that holds a Lease and renews it, as far as that was heard.
    pub fn cluster_uid(&self, lease: &str) -> Option<&str> {
        let heard = self.holders.get(lease).filter(|heard| heard.standing == Some(Standing::Present))?;
        heard.holder.as_ref()?.split('/').next()
    }

    pub(crate) fn heard(&self, writer: &str) -> Option<&Heard> {
        self.holders.get(writer)
    }

    /// Those that have a Lease.
    pub(crate) fn standings(&self) -> impl Iterator<Item = (&str, &Heard)> {
        let there = self.holders.iter().filter(|(_, heard)| heard.standing.is_some());
        there.map(|(name, heard)| (name.as_str(), heard))
    }

    /// Whether what `writer` says of what has this name is true now: when the Common Area was restored, not before the writer has
    /// vouched for it. A live writer has had the time then to put its records right.
    pub(crate) fn is_current(&self, writer: &str, name: &str) -> bool {
        !self.restored || self.holders.get(writer).is_some_and(|heard| heard.is_current(name))
    }

    fn fold(&mut self, change: Change<LeaseView>, now: Instant, clock: Timestamp, news: &mut News) {
        match change {
            Change::Apply(lease) => {
                self.hear_clock(&lease, true, now, clock);
                self.hear_leader(&lease, news);
                self.hear(&lease, now, Standing::Present, news);
            }
            Change::Remove(lease) => {
                self.time(now);
                self.lose(&lease.name_any(), now, news);
            }
            Change::Reset(leases) => {
                let there: BTreeSet<_> = leases.iter().map(ResourceExt::name_any).collect();
                let lost = self.holders.keys().filter(|name| !there.contains(*name)).cloned();
                for name in lost.collect::<Vec<_>>() {
                    self.lose(&name, now, news);
                }
                for lease in &leases {
                    self.hear_clock(lease, false, now, clock);
                    self.hear_leader(lease, news);
                    self.hear(lease, now, Standing::Unheard, news);
                }
            }
        }
    }

    /// A Lease of which nothing was known is `new`.
    fn hear(&mut self, lease: &LeaseView, now: Instant, new: Standing, news: &mut News) {
        self.time(now);
        let (name, renewed) = (lease.name_any(), lease.renew_time());
        let heard = self.holders.entry(name.clone()).or_default();
        (heard.uid, heard.lost) = (lease.uid(), None);
        heard.wire = lease.wire().map(str::to_owned);
        heard.holder = lease.holder().map(str::to_owned);
        if std::mem::replace(&mut heard.left, lease.has_left()) != lease.has_left() {
            news.turned.insert(name.clone());
        }
        let before = std::mem::replace(&mut heard.renewed, renewed);
        match &heard.standing {
            None => (heard.standing, heard.silence) = (Some(new), Some((now, lease.stale()))),
            Some(_) if before == renewed => {}
            Some(_) => {
                (heard.standing, heard.silence) = (Some(Standing::Present), Some((now, lease.stale())))
            }
        }
        if before == renewed {
            return;
        }
        let settled = lease.settled();
        // The Lease as we found it is no renewal.
        if before.is_some() {
            heard.count(&settled, self.restored);
        }
        news.renewed.push((name, settled));
    }

    fn lose(&mut self, name: &str, now: Instant, news: &mut News) {
        let Some(heard) = self.holders.get_mut(name) else { return };
        if heard.standing.take().is_some() {
            (heard.silence, heard.lost) = (None, Some(now));
        }
        if heard.uid.take().is_some() {
            news.turned.insert(name.to_owned());
        }
    }

    /// It is `now`, and something was heard.
    fn time(&mut self, now: Instant) {
        let passed = |since: Instant| now.saturating_duration_since(since);
        let deaf = self.last.replace(now).map(passed).filter(|deaf| *deaf >= self.pace.stale());
        self.since = self.since.filter(|_| deaf.is_none()).or(Some(now));
        for heard in self.holders.values_mut() {
            let Some((since, stale)) = &mut heard.silence else { continue };
            // Heartbeats come less often than short Leases are renewed.
            if deaf.is_some_and(|deaf| deaf >= *stale) {
                *since = now;
            } else if passed(*since) >= *stale {
                heard.standing = Some(Standing::Silent { since: heard.renewed });
            }
        }
    }

    fn hear_clock(&mut self, lease: &LeaseView, live: bool, now: Instant, clock: Timestamp) {
        if let Some(renewed) = lease.renew_time().filter(|_| lease.name_any() == name::LEADER_LEASE) {
            self.skew = self.leader_clock.hear(renewed, live, now, clock);
        }
    }

    /// What was listed is as the CRDs were when the Lease was first heard, and what was said then. A leader that says nothing knows
    /// nothing yet, or is an older one.
    fn hear_leader(&mut self, lease: &LeaseView, news: &mut News) {
        if lease.name_any() != name::LEADER_LEASE {
            return;
        }
        news.quota = lease.quota();
        let now = lease.schemas().map(str::to_owned);
        if now.is_none() && self.schemas.is_some() {
            return;
        }
        let before = self.schemas.replace(now.clone());
        news.schemas |= before.is_some_and(|before| before != now);
    }
}

#[cfg(test)]
mod tests;
