//! The Leases of a Common Area: one table of all that was heard of their holders. Pure: clocks come in as arguments.
//!
//! Silence counts only as long as something is heard: our own Lease comes by the same watch. A watch that has ended makes nobody
//! absent, and when it goes on everybody gets the time anew. So who is silent can change only when a Lease is heard, and no
//! timer is needed.
//!
//! A member hears of the others by the leader's Lease, which tells what theirs say ([`told`]): then their silence counts
//! as long as the leader is heard, and a renewal is as old as the leader's may be.

mod heard;
mod told;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::{
    lacking::Lacking,
    lease::{LeaseView, Pace, Settled, digest::Told},
    name,
    quota::Quota,
    ranges::Bounds,
};
use jiff::Timestamp;
use kit::objects::{Change, version};
use kube::ResourceExt;

pub(crate) use self::heard::Heard;
use crate::{
    contact::Contact,
    heartbeat::{Announce, Heartbeats},
    skew::Skew,
    standing::Standing,
};

/// What the Leases of a Common Area say about their holders.
pub struct Leases {
    /// By the names of their Leases. A holder whose Lease is gone stays, for what it said before.
    holders: BTreeMap<String, Heard>,
    /// By watches of Leases.
    watched: Contact,
    /// What the leader's Lease tells of others, if we do not watch theirs.
    told: Option<Contact>,
    /// Members without a Lease, whose heartbeats stand for one.
    heartbeats: Heartbeats,
    /// Our own Lease, which no leader tells us of.
    us: Option<String>,
    /// The Common Area was restored from a backup: what a writer says there is old, until it has vouched for it.
    restored: bool,
    leader_clock: Skew,
    /// Seconds by which the leader's clock is ahead of ours.
    skew: Option<i64>,
    /// What the leader's Lease said of the CRDs of the records last, if it was heard.
    schemas: Option<Option<String>>,
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
    /// Whether the leader's Lease tells of the Leases of members, if that was heard. Without a Lease in a list it does not.
    pub tells: Option<bool>,
    /// What the leader takes in of a member, if its Lease was heard to say it.
    pub quota: Option<Quota>,
    /// Which addresses the endpoints of members may have, if the leader's Lease was heard to say it.
    pub bounds: Option<Bounds>,
    /// Which members lack Namespaces, if the leader's Lease was heard and its holder knows the members. An older leader says of none.
    pub lacking: Option<Lacking>,
}

impl Leases {
    /// Nothing heard. `pace` is that of our own Lease; `restored`: the Common Area was just restored from a backup.
    pub fn new(pace: Pace, heartbeats: Heartbeats, restored: bool) -> Self {
        Self {
            holders: BTreeMap::new(),
            watched: Contact::new(pace.stale()),
            told: None,
            heartbeats,
            us: None,
            restored,
            leader_clock: Skew::default(),
            skew: None,
            schemas: None,
        }
    }

    /// Takes in what a watch of all Leases told at `now`, `clock` by the wall.
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

    /// Whether it is heard how it stands with the members. Our own Lease comes by the same watch, so that it is never quiet for long.
    /// Where the leader tells of the others, they are not heard while the leader is silent.
    pub fn is_heard(&self, now: Instant) -> bool {
        self.others().hears(now)
    }

    /// By what the other members are heard.
    fn others(&self) -> &Contact {
        self.told.as_ref().unwrap_or(&self.watched)
    }

    /// For how long this Lease has not been there, as far as that was seen; `None` while it is there, and while nothing is heard.
    pub fn missing_for(&self, lease: &str, now: Instant) -> Option<Duration> {
        let heard = self.holders.get(lease);
        if !self.is_heard(now) || heard.is_some_and(|heard| heard.standing.is_some()) {
            return None;
        }
        let since = heard.and_then(|heard| heard.lost).max(self.others().since)?;
        Some(now.saturating_duration_since(since))
    }

    /// Whether the Common Area was restored from a backup while it was watched.
    pub fn is_restored(&self) -> bool {
        self.restored
    }

    /// uid of a writer's Lease, if that is watched.
    pub fn uid(&self, writer: &str) -> Option<String> {
        self.holders.get(writer)?.uid.clone()
    }

    /// uid of the cluster that holds a Lease and renews it, as far as that was heard.
    pub fn cluster_uid(&self, lease: &str) -> Option<&str> {
        let heard = self.holders.get(lease).filter(|heard| heard.standing == Some(Standing::Present))?;
        heard.holder.as_ref()?.split('/').next()
    }

    /// Clusters whose endpoints answer one of those that renew their Leases, though they do not renew theirs; and those of which one said so
    /// of whom it is not known yet whether it does.
    pub fn answering(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let by = |standing: Standing| {
            let said = self.standings().filter(move |(_, heard)| heard.standing.as_ref() == Some(&standing));
            said.filter(|(_, heard)| !heard.left)
                .flat_map(|(_, heard)| heard.answering.iter().cloned())
                .collect()
        };
        (by(Standing::Present), by(Standing::Unheard))
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
                self.time(now, false);
                self.hear(&lease, now, Standing::Present, news);
            }
            Change::Remove(lease) => {
                self.time(now, false);
                self.lose(&lease.name_any(), now, news);
            }
            Change::Reset(leases) => {
                news.tells = Some(false);
                let there: BTreeSet<_> = leases.iter().map(ResourceExt::name_any).collect();
                let lost = self.holders.keys().filter(|name| !there.contains(*name)).cloned();
                for name in lost.collect::<Vec<_>>() {
                    self.lose(&name, now, news);
                }
                for lease in &leases {
                    self.hear_clock(lease, false, now, clock);
                    self.hear_leader(lease, news);
                    self.time(now, false);
                    self.hear(lease, now, Standing::Unheard, news);
                }
            }
        }
    }

    /// A Lease of which nothing was known is `new`.
    fn hear(&mut self, lease: &LeaseView, now: Instant, new: Standing, news: &mut News) {
        let (name, renewed) = (lease.name_any(), lease.renew_time());
        let heard = self.holders.entry(name.clone()).or_default();
        (heard.uid, heard.lost) = (lease.uid(), None);
        heard.version = version(lease);
        heard.wire = lease.wire().map(str::to_owned);
        heard.answering = lease.answering().map(str::to_owned).collect();
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
        match before {
            Some(_) => heard.count(&settled, self.restored, lease.stale()),
            None => heard.counted = renewed,
        }
        news.renewed.push((name, settled));
    }

    fn lose(&mut self, name: &str, now: Instant, news: &mut News) {
        let Some(heard) = self.holders.get_mut(name) else { return };
        heard.uid = None;
        if heard.standing.take().is_some() {
            (heard.silence, heard.lost) = (None, Some(now));
            news.turned.insert(name.to_owned());
        }
    }

    /// It is `now`, and something was heard of those whom the leader tells of (`told`), or of the others.
    fn time(&mut self, now: Instant, told: bool) {
        let Some(contact) = (if told { self.told.as_mut() } else { Some(&mut self.watched) }) else { return };
        let deaf = contact.hear(now);
        for heard in self.holders.values_mut().filter(|heard| heard.told == told) {
            let Some((since, stale)) = &mut heard.silence else { continue };
            // Heartbeats come less often than short Leases are renewed.
            if deaf.is_some_and(|deaf| deaf >= *stale) {
                *since = now;
            } else if now.saturating_duration_since(*since) >= *stale {
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
    /// nothing yet, or is an older one. What it tells of others.
    fn hear_leader(&mut self, lease: &LeaseView, news: &mut News) -> Told {
        if lease.name_any() != name::LEADER_LEASE {
            return Told::Nothing;
        }
        let told = lease.told();
        news.tells = match &told {
            Told::Nothing => Some(false),
            // A leader that has just started knows in a moment.
            Told::NotYet => None,
            Told::Leases(_) => Some(true),
        };
        (news.quota, news.bounds) = (lease.quota(), lease.bounds());
        let is_known = !matches!(told, Told::NotYet);
        news.lacking = lease.lacking().or_else(|| is_known.then(Lacking::default));
        let now = lease.schemas().map(str::to_owned);
        if now.is_none() && self.schemas.is_some() {
            return told;
        }
        let before = self.schemas.replace(now.clone());
        news.schemas |= before.is_some_and(|before| before != now);
        told
    }
}

#[cfg(test)]
mod tests;
