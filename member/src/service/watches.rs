//! Everything that Services watch, in this cluster and in the Common Area.

use api::{
    ServiceName, label,
    membership::Wire,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
};
use kit::{
    index::{Part, Shared},
    quota::{Counted, Shares},
    watch::{Source, Watches},
};
use kube::{Api, Resource, core::NamespaceResourceScope, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::{
    ServicesRun,
    antrea::{leader::AntreaImport, peers::PeerRecord},
    families,
    here::Here,
    index::{
        endpoints::CoreEndpoints,
        entry::ServiceEntry,
        view::{Derived, Export, Import, LeaderImport, Namespace, OwnRecord, PeerSlice, Service, Slice},
    },
    leave,
};
use crate::feature::Access;

impl Here {
    /// Begins to watch this cluster.
    pub(super) fn watch(&self, tasks: &mut JoinSet<()>) {
        let env = &self.local.env;
        let client = || env.client.clone();
        let knowledge = self.knowledge.clone();
        let source = local("Service");
        let services = Api::<Service>::all(client());
        tasks.spawn(self.watches.watch_many(services, source, env.metrics.clone(), move |change| {
            if let Some(derived) = change.select(Derived::of) {
                knowledge.services.change(derived);
            }
            knowledge.services.change(change);
        }));
        let knowledge = self.knowledge.clone();
        let source = local("Namespace");
        let (api, config) = (Api::<Namespace>::all(client()), watcher::Config::default());
        tasks.spawn(self.watches.watch(api, config, source, env.metrics.clone(), move |change| {
            knowledge.change_namespaces(change);
        }));
        let watches = &self.watches;
        self.index(tasks, watches, Api::<Export>::all(client()), local("ServiceExport"), "");
        // All of them: one of ours whose labels somebody changed is to be put right.
        let knowledge = self.knowledge.clone();
        let slices = Api::<Slice>::all(client());
        tasks.spawn(watches.watch_many(slices, local("EndpointSlice"), env.metrics.clone(), move |change| {
            knowledge.services.change(change);
        }));
        self.index(tasks, watches, Api::<Import>::all(client()), local("ServiceImport"), "");
        tasks.spawn(families::learn(env.clone(), self.knowledge.clone(), self.families.clone()));
        if self.choices.endpoints_objects {
            let endpoints = Api::<CoreEndpoints>::all(client());
            self.index(tasks, watches, endpoints, local("Endpoints"), &leave::imported());
        } else {
            tasks.spawn(leave::forget_endpoints(env.clone()));
        }
    }

    /// Watches what `selector` selects of a kind into the index.
    fn index<P>(
        &self,
        tasks: &mut JoinSet<()>,
        watches: &Watches,
        api: Api<P>,
        source: Source,
        selector: &str,
    ) where
        P: Part<ServiceName, ServiceEntry> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync,
    {
        let knowledge = self.knowledge.clone();
        let config = watcher::Config::default().labels(selector);
        tasks.spawn(watches.watch(api, config, source, self.local.env.metrics.clone(), move |change| {
            knowledge.services.change(change);
        }));
    }
}

impl ServicesRun {
    pub(super) fn watch_leader(&self, tasks: &mut JoinSet<()>) {
        let Access { us, leader, antrea, wire, .. } = &self.access;
        let (us, area, watches) = (&us.cluster, &us.common_area, &self.leader);
        let own = format!("{}={us}", label::SOURCE_CLUSTER_ID);
        let records = Api::<OwnRecord>::namespaced(leader.clone(), area);
        self.here.index(tasks, watches, records, common_area("own ResourceExport"), &own);
        // In a Common Area of Antrea's everybody writes as its controllers do.
        if *wire == Wire::Antrea {
            let imports = Api::<AntreaImport>::namespaced(leader.clone(), area);
            self.here.index(tasks, watches, imports, common_area("ResourceImport"), "");
            self.watch_peers_of_antrea(tasks, "");
            return;
        }
        let peers = format!("{}!={us},{}={ENDPOINT_SLICE}", label::SOURCE_CLUSTER_ID, label::SOURCE_KIND);
        self.watch_slices(tasks, &peers);
        let imports = Api::<LeaderImport>::namespaced(leader.clone(), area);
        self.here.index(tasks, watches, imports, common_area("ResourceImport"), "");
        if !antrea.is_empty() {
            let members: Vec<_> = antrea.into_iter().map(String::as_str).collect();
            let members = format!(",{} in ({})", label::SOURCE_CLUSTER_ID, members.join(","));
            self.watch_peers_of_antrea(tasks, &members);
        }
    }

    /// Slices of other clusters, which `peers` selects.
    fn watch_slices(&self, tasks: &mut JoinSet<()>, peers: &str) {
        let shares = self.allowance.slices.clone();
        self.watch_peers::<PeerSlice>(tasks, peers, common_area("ResourceExport"), shares);
    }

    /// Records of the kinds that Antrea's controllers write, of other clusters that `also` selects.
    fn watch_peers_of_antrea(&self, tasks: &mut JoinSet<()>, also: &str) {
        let selector = format!(
            "{}!={},{} in ({SERVICE},{ENDPOINTS}){also}",
            label::SOURCE_CLUSTER_ID,
            self.access.us.cluster,
            label::SOURCE_KIND,
        );
        let (source, shares) = (common_area("ResourceExport of Antrea"), self.allowance.antrea.clone());
        self.watch_peers::<PeerRecord>(tasks, &selector, source, shares);
    }

    /// Watches records of other clusters into the index: of each no more than its share.
    fn watch_peers<P>(
        &self,
        tasks: &mut JoinSet<()>,
        selector: &str,
        source: Source,
        shares: Shared<Shares<P>>,
    ) where
        P: Part<ServiceName, ServiceEntry>
            + Counted
            + Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + Sync,
    {
        let Access { us, leader, env, .. } = &self.access;
        let records = Api::<P>::namespaced(leader.clone(), &us.common_area);
        let all = (records, watcher::Config::default().labels(selector));
        let (knowledge, allowance, metrics) =
            (self.knowledge.clone(), self.allowance.clone(), env.metrics.clone());
        let kept = shares.clone();
        let sink = move |change| {
            let change = allowance.admit(&kept, change, &metrics);
            change.into_iter().for_each(|change| knowledge.services.change(change));
        };
        tasks.spawn(self.leader.watch_gathering(all, source, env.metrics.clone(), shares, sink));
    }
}

fn local(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

fn common_area(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}
