//! Everything a link watches, here and in the Common Area.

use std::time::Instant;

use api::{ServiceName, label, lease::LeaseView, membership::Wire, name, resource_export::ENDPOINT_SLICE};
use jiff::Timestamp;
use kit::{index::Part, objects::Change, watch::Source};
use kube::{Api, Client, ResourceExt, runtime::watcher};
use presence::leases::News;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::Link;
use crate::{
    membership::Target,
    service::{
        entry::ServiceEntry,
        view::{Derived, Export, HubImport, Import, Namespace, OwnRecord, PeerSlice, Service, Slice},
    },
};

impl Link {
    pub(super) fn watch_here(&self, tasks: &mut JoinSet<()>) {
        let ours = &self.env.client;
        let link = self.clone();
        tasks.spawn(self.local.watch(
            Api::<Service>::all(ours.clone()),
            watcher::Config::default(),
            here("Service"),
            self.env.metrics.clone(),
            move |change| {
                let derived = change.clone().map(Derived::from);
                link.knowledge.services.change(derived);
                link.knowledge.services.change(change);
            },
        ));
        let link = self.clone();
        tasks.spawn(self.local.watch(
            Api::<Namespace>::all(ours.clone()),
            watcher::Config::default(),
            here("Namespace"),
            self.env.metrics.clone(),
            move |change| link.knowledge.change_namespaces(change),
        ));
        self.index(tasks, Scope::Local, Api::<Export>::all(ours.clone()), here("ServiceExport"), "");
        self.index(
            tasks,
            Scope::Local,
            Api::<Slice>::all(ours.clone()),
            here("EndpointSlice"),
            label::SERVICE_NAME,
        );
        self.index(tasks, Scope::Local, Api::<Import>::all(ours.clone()), here("ServiceImport"), "");
    }

    pub(super) fn watch_there(&self, tasks: &mut JoinSet<()>, client: &Client, target: &Target) {
        let (us, area) = (&target.us.cluster, &target.us.common_area);
        let own = format!("{}={us}", label::SOURCE_CLUSTER_ID);
        let peers = format!("{}!={us},{}={ENDPOINT_SLICE}", label::SOURCE_CLUSTER_ID, label::SOURCE_KIND);
        let records = Api::<OwnRecord>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Leader, records, there("own ResourceExport"), &own);
        if self.wire == Wire::Antrea {
            self.watch_antrea_leader(tasks, client, target);
            return;
        }
        let records = Api::<PeerSlice>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Leader, records, there("ResourceExport"), &peers);
        let imports = Api::<HubImport>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Leader, imports, there("ResourceImport"), "");
        let link = self.clone();
        tasks.spawn(self.hub.watch(
            Api::<LeaseView>::namespaced(client.clone(), area),
            watcher::Config::default(),
            there("Lease"),
            self.env.metrics.clone(),
            move |change| {
                link.learn_who_is_marked(&change);
                let (now, clock) = (Instant::now(), Timestamp::now());
                link.hear(&link.leases.with(|leases| leases.change(change, now, clock)));
            },
        ));
        if !self.antrea.is_empty() {
            let marked: Vec<_> = self.antrea.into_iter().map(String::as_str).collect();
            let marked = format!(",{} in ({})", label::SOURCE_CLUSTER_ID, marked.join(","));
            self.watch_antrea(tasks, client, target, &marked);
        }
    }

    /// Somebody renewed a Lease, or one is gone.
    pub(super) fn hear(&self, news: &News) {
        self.told.notify_one();
        self.knowledge.services.queue(1).enqueue(self.vouching.hear(news));
    }

    /// The leader's Lease says which members run Antrea's controllers. Without it nothing is said.
    fn learn_who_is_marked(&self, change: &Change<LeaseView>) {
        let leases = match change {
            Change::Apply(lease) => std::slice::from_ref(lease),
            Change::Reset(leases) => leases.as_slice(),
            Change::Remove(_) => &[],
        };
        let leader = leases.iter().find(|lease| lease.name_any() == name::LEADER_LEASE);
        if let Some(now) = leader.and_then(LeaseView::antrea_members) {
            self.marked.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
        }
    }

    /// Watches what `selector` selects of a kind into the index.
    pub(super) fn index<P>(
        &self,
        tasks: &mut JoinSet<()>,
        scope: Scope,
        api: Api<P>,
        source: Source,
        selector: &str,
    ) where
        P: Part<ServiceName, ServiceEntry> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync,
    {
        let knowledge = self.knowledge.clone();
        let config = watcher::Config::default().labels(selector);
        let watches = if scope == Scope::Local { &self.local } else { &self.hub };
        tasks.spawn(watches.watch(api, config, source, self.env.metrics.clone(), move |change| {
            knowledge.services.change(change);
        }));
    }
}

/// What a watch tells about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// This cluster.
    Local,
    /// The Common Area.
    Leader,
}

fn here(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

pub(super) fn there(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}
