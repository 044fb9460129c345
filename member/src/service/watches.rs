//! Everything that Services watch, in this cluster and in the Common Area.

use api::{
    ServiceName, label,
    membership::Wire,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
};
use kit::{
    drive::drive,
    index::{Part, Shared},
    objects::Streamed,
    quota::{Counted, Shares},
    watch::{Source, Watches},
};
use kube::{Api, Resource, core::NamespaceResourceScope, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    ServicesRun,
    antrea::{leader::AntreaImport, peers::PeerRecord},
    copies::{is_renamed_service, is_renamed_slice},
    families,
    here::Here,
    index::{
        endpoints::CoreEndpoints,
        entry::ServiceEntry,
        view::{Derived, Export, Import, LeaderImport, Namespace, OwnRecord, PeerSlice, Slice},
    },
    knowledge::Knowledge,
    leave, machines,
    reading::Reading,
};
use crate::feature::Access;

/// Kinds that say which Services matter.
const EXPORTS: &str = "ServiceExport";
const IMPORTS: &str = "ServiceImport";

impl Here {
    /// Begins to watch this cluster.
    pub(super) fn watch(&self, tasks: &mut JoinSet<()>) {
        let env = &self.local.env;
        let client = || env.client.clone();
        let watches = &self.watches;
        self.index(tasks, watches, Api::<Export>::all(client()), local(EXPORTS), "");
        self.index(tasks, watches, Api::<Import>::all(client()), local(IMPORTS), "");
        let events = self.local.env.events.clone();
        self.watch_many(tasks, "Service", move |knowledge: &Knowledge, streamed| {
            knowledge.hear_copies("Service", &streamed, is_renamed_service, &events);
            if let Some(derived) = streamed.select(Derived::of) {
                knowledge.services.stream(derived);
            }
            knowledge.services.stream(streamed);
        });
        // All of them: one of ours whose labels somebody changed is to be put right.
        let events = self.local.env.events.clone();
        self.watch_many(tasks, "EndpointSlice", move |knowledge: &Knowledge, streamed: Streamed<Slice>| {
            knowledge.hear_copies("EndpointSlice", &streamed, is_renamed_slice, &events);
            knowledge.services.stream(streamed);
        });
        let knowledge = self.knowledge.clone();
        let source = local("Namespace");
        let (api, config) = (Api::<Namespace>::all(client()), watcher::Config::default());
        tasks.spawn(self.watches.watch(api, config, source, env.metrics.clone(), move |change| {
            knowledge.change_namespaces(change);
        }));
        let reading = Reading { knowledge: self.knowledge.clone(), client: client() };
        let (queue, metrics) = (self.knowledge.services.queue(3), env.metrics.clone());
        tasks.spawn(drive("read", queue, metrics, CancellationToken::new(), move |service| {
            reading.clone().reconcile(service)
        }));
        tasks.spawn(families::learn(env.clone(), self.knowledge.clone(), self.families.clone()));
        tasks.spawn(machines::learn(env.clone(), self.knowledge.clone(), self.addresses.clone()));
        if self.choices.endpoints_objects {
            let endpoints = Api::<CoreEndpoints>::all(client());
            self.index(tasks, watches, endpoints, local("Endpoints"), &leave::imported());
        } else {
            tasks.spawn(leave::forget_endpoints(env.clone()));
        }
    }

    /// Watches a kind of which most objects matter to nobody, once it is known which do: of the others only names are kept.
    fn watch_many<P>(
        &self,
        tasks: &mut JoinSet<()>,
        kind: &'static str,
        mut sink: impl FnMut(&Knowledge, Streamed<P>) + Send + 'static,
    ) where
        P: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        let (env, knowledge, watches) = (&self.local.env, self.knowledge.clone(), self.watches.clone());
        let all = Api::<P>::all(env.client.clone());
        let watch = watches.watch_many(all, local(kind), env.metrics.clone(), move |streamed| {
            sink(&knowledge, streamed);
        });
        tasks.spawn(async move {
            watches.have_listed(&[EXPORTS, IMPORTS]).await;
            watch.await;
        });
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
