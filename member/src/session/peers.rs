//! The Leases and announces in the Common Area: who takes part, and who runs Antrea's controllers. All features need them. Of Leases
//! ours and the leader's are watched, which tells what the others say; all of them, if it does not.

use std::{sync::Arc, time::Instant};

use api::{antrea::Members, lease::LeaseView, membership::Wire, name};
use jiff::Timestamp;
use kit::{
    objects::Change,
    watch::{Source, Watches},
};
use kube::{Api, ResourceExt, runtime::watcher};
use presence::{heartbeat::Announce, leases::News};
use tokio::{sync::watch, task::JoinSet};

use super::{connect::Hearing, table::Table};
use crate::feature::Access;

/// Watches of Leases and announces. Cloning shares it.
#[derive(Clone)]
pub(super) struct Peers {
    pub(super) watches: Watches,
    /// The members that run Antrea's controllers, as the leader's Lease named them last.
    pub(super) named: Arc<watch::Sender<Members>>,
    /// How other members can be heard, once that is known.
    pub(super) hearing: Arc<watch::Sender<Option<Hearing>>>,
}

impl Peers {
    pub(super) fn new(access: &Access) -> Self {
        Self {
            watches: access.guard.clone().map(Watches::guarded).unwrap_or_default(),
            named: Arc::new(watch::Sender::new(access.antrea.clone())),
            hearing: Arc::default(),
        }
    }

    /// Starts the watches. Under a leader of Antrea's there are no Leases; announces matter where Antrea's controllers write them.
    pub(super) fn watch(
        &self,
        access: &Access,
        hearing: Hearing,
        table: &Arc<Table>,
        tasks: &mut JoinSet<()>,
    ) {
        match (access.wire, hearing) {
            (Wire::Antrea, _) => {}
            (Wire::Freeport, Hearing::Directly) => self.watch_leases(access, ("Lease", None), table, tasks),
            (Wire::Freeport, Hearing::ByLeader) => {
                let own = name::member_lease(&access.us.cluster);
                for (kind, lease) in [("Lease", name::LEADER_LEASE), ("own Lease", &own)] {
                    self.watch_leases(access, (kind, Some(lease)), table, tasks);
                }
            }
        }
        if !access.antrea.is_empty() {
            self.watch_announces(access, table, tasks);
        }
    }

    /// Watches the Lease of that name, or all.
    fn watch_leases(
        &self,
        access: &Access,
        (kind, only): (&'static str, Option<&str>),
        table: &Arc<Table>,
        tasks: &mut JoinSet<()>,
    ) {
        let (peers, access, table) = (self.clone(), access.clone(), table.clone());
        let only = only.map(str::to_owned);
        let config = watcher::Config::default();
        tasks.spawn(self.watches.watch(
            Api::<LeaseView>::namespaced(access.leader.clone(), &access.us.common_area),
            match &only {
                Some(name) => config.fields(&format!("metadata.name={name}")),
                None => config,
            },
            Source { cluster: "leader", kind },
            access.env.metrics.clone(),
            move |change| {
                peers.learn_names(&change);
                let (now, clock) = (Instant::now(), Timestamp::now());
                let news = access.leases.with(|leases| match &only {
                    Some(name) => leases.change_of(name, change, now, clock),
                    None => leases.change(change, now, clock),
                });
                peers.tell(&access, &table, &news);
            },
        ));
    }

    fn watch_announces(&self, access: &Access, table: &Arc<Table>, tasks: &mut JoinSet<()>) {
        let (peers, access, table) = (self.clone(), access.clone(), table.clone());
        tasks.spawn(self.watches.watch(
            Api::<Announce>::namespaced(access.leader.clone(), &access.us.common_area),
            watcher::Config::default(),
            Source { cluster: "leader", kind: "MemberClusterAnnounce" },
            access.env.metrics.clone(),
            move |change| {
                let (now, clock) = (Instant::now(), Timestamp::now());
                let news = access.leases.with(|leases| leases.announced(change, now, clock));
                peers.tell(&access, &table, &news);
            },
        ));
    }

    /// The leader's Lease names the members that run Antrea's controllers. Without it, those that were named stay.
    fn learn_names(&self, change: &Change<LeaseView>) {
        let leases = match change {
            Change::Apply(lease) => std::slice::from_ref(lease),
            Change::Reset(leases) => leases.as_slice(),
            Change::Remove(_) => &[],
        };
        let leader = leases.iter().find(|lease| lease.name_any() == name::LEADER_LEASE);
        if let Some(now) = leader.and_then(LeaseView::antrea_members) {
            self.named.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
        }
    }

    /// Leases were renewed, or are gone: the members that the ClusterSet reports may have changed.
    fn tell(&self, access: &Access, table: &Table, news: &News) {
        // After the table of Leases knows: features may begin with it.
        if let Some(tells) = news.tells {
            let hearing = Some(if tells { Hearing::ByLeader } else { Hearing::Directly });
            self.hearing.send_if_modified(|before| std::mem::replace(before, hearing) != hearing);
        }
        access.changed.notify_one();
        table.hear(news);
        if news.schemas {
            tracing::info!("the CRDs of the records changed: reading the records again");
            self.watches.list_again();
            table.records_again();
        }
    }
}
