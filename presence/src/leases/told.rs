//! What the leader's Lease tells of the Leases of members, to a member that watches that and its own.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use api::{
    lease::{LeaseView, digest::Told},
    name,
};
use jiff::Timestamp;
use kit::objects::Change;
use kube::{Resource, ResourceExt};

use super::{Leases, News};
use crate::{contact::Contact, standing::Standing};

impl Leases {
    /// Where the leader's Lease tells of all others but that of the member `us`.
    pub fn told_by_leader(self, us: &str) -> Self {
        let contact = Contact::new(self.watched.patience);
        Self { us: Some(name::member_lease(us)), told: Some(contact), ..self }
    }

    /// Takes in what a watch of our own Lease, or of the leader's, told at `now`, `clock` by the wall.
    pub fn change_of(
        &mut self,
        lease: &str,
        change: Change<LeaseView>,
        now: Instant,
        clock: Timestamp,
    ) -> News {
        let mut news = News::default();
        let (is_live, leases) = match change {
            Change::Apply(lease) => (true, vec![lease]),
            Change::Reset(leases) => (false, leases),
            Change::Remove(_) => (true, vec![]),
        };
        self.time(now, false);
        let Some(view) = leases.into_iter().find(|view| view.name_any() == lease) else {
            news.tells = (lease == name::LEADER_LEASE && !is_live).then_some(false);
            self.lose(lease, now, &mut news);
            return news;
        };
        self.hear_clock(&view, is_live, now, clock);
        let told = self.hear_leader(&view, &mut news);
        let new = if is_live { Standing::Present } else { Standing::Unheard };
        let before = self.holders.get(lease).and_then(|heard| heard.renewed);
        self.hear(&view, now, new, &mut news);
        // What was told already tells nothing of whether they are still there.
        if let Told::Leases(others) = told
            && view.renew_time() != before
        {
            let version = view.resource_version();
            let with_version = |mut lease: LeaseView| {
                // An older leader does not report versions. That of its own Lease is not earlier.
                lease.meta_mut().resource_version = lease.resource_version().or_else(|| version.clone());
                lease
            };
            let others = others.into_iter().map(with_version).collect();
            self.hear_told(others, view.stale(), now, &mut news);
        }
        news
    }

    /// The leader tells of these Leases.
    fn hear_told(&mut self, leases: Vec<LeaseView>, patience: Duration, now: Instant, news: &mut News) {
        let Some(contact) = &mut self.told else { return };
        // A member of which the leader told when we began may be there or not.
        let new = if contact.last.is_some() { Standing::Present } else { Standing::Unheard };
        contact.patience = patience;
        self.time(now, true);
        let is_another = |name: &String| Some(name) != self.us.as_ref() && !self.heartbeats.stand_for(name);
        let leases: Vec<_> = leases.into_iter().filter(|lease| is_another(&lease.name_any())).collect();
        let there: BTreeSet<_> = leases.iter().map(ResourceExt::name_any).collect();
        let lost = self.holders.iter().filter(|(name, heard)| heard.told && !there.contains(*name));
        for name in lost.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.lose(&name, now, news);
        }
        for lease in &leases {
            self.holders.entry(lease.name_any()).or_default().told = true;
            self.hear(lease, now, new.clone(), news);
        }
    }
}
