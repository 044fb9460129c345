//! Everything a link watches, here and in the Common Area.

use std::time::Instant;

use api::{ServiceName, label, resource_export::ENDPOINT_SLICE};
use jiff::Timestamp;
use kit::{index::Part, lease::LeaseView, watch::Source};
use kube::{Api, Client, runtime::watcher};
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
                let known = &link.knowledge.known;
                link.knowledge.mark(known.with(|known| known.services.change(derived)));
                link.knowledge.mark(known.with(|known| known.services.change(change)));
            },
        ));
        let link = self.clone();
        tasks.spawn(self.local.watch(
            Api::<Namespace>::all(ours.clone()),
            watcher::Config::default(),
            here("Namespace"),
            self.env.metrics.clone(),
            move |change| {
                link.knowledge.mark(link.knowledge.known.with(|known| {
                    let namespaces = known.namespaces.change(change);
                    known.within(&namespaces)
                }));
            },
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
        self.index(tasks, Scope::Own, records, there("own ResourceExport"), &own);
        let records = Api::<PeerSlice>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Foreign, records, there("ResourceExport"), &peers);
        let imports = Api::<HubImport>::namespaced(client.clone(), area);
        self.index(tasks, Scope::Foreign, imports, there("ResourceImport"), "");
        let link = self.clone();
        tasks.spawn(self.hub.watch(
            Api::<LeaseView>::namespaced(client.clone(), area),
            watcher::Config::default(),
            there("Lease"),
            self.env.metrics.clone(),
            move |change| {
                link.heard.with(|heard| heard.change(&change, Instant::now(), Timestamp::now()));
                link.told.notify_one();
                link.knowledge.imports.mark(link.vouching.with(|vouching| vouching.change(change)));
            },
        ));
    }

    /// Watches what `selector` selects of a kind into the index.
    fn index<P>(&self, tasks: &mut JoinSet<()>, scope: Scope, api: Api<P>, source: Source, selector: &str)
    where
        P: Part<ServiceName, ServiceEntry> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync,
    {
        let knowledge = self.knowledge.clone();
        let config = watcher::Config::default().labels(selector);
        let watches = if scope == Scope::Local { &self.local } else { &self.hub };
        tasks.spawn(watches.watch(api, config, source, self.env.metrics.clone(), move |change| {
            let dirty = knowledge.known.with(|known| known.services.change(change));
            if scope == Scope::Foreign { knowledge.mark_foreign(dirty) } else { knowledge.mark(dirty) }
        }));
    }
}

/// What a watch tells about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// This cluster.
    Local,
    /// Our own records in the Common Area.
    Own,
    /// What others say there.
    Foreign,
}

fn here(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

fn there(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}
