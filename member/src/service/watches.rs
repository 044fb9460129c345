//! Everything that Services watch, in this cluster and in the Common Area.

use api::{
    ServiceName, label,
    membership::Wire,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
};
use kit::{
    index::Part,
    watch::{Source, Watches},
};
use kube::{Api, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::{
    ServicesRun,
    antrea::{leader::AntreaImport, peers::PeerRecord},
    index::{
        entry::ServiceEntry,
        view::{Derived, Export, Import, LeaderImport, Namespace, OwnRecord, PeerSlice, Service, Slice},
    },
};
use crate::feature::Access;

impl ServicesRun {
    pub(super) fn watch_local(&self, tasks: &mut JoinSet<()>) {
        let env = &self.access.env;
        let client = || env.client.clone();
        let knowledge = self.knowledge.clone();
        let source = local("Service");
        let (api, config) = (Api::<Service>::all(client()), watcher::Config::default());
        tasks.spawn(self.local.watch(api, config, source, env.metrics.clone(), move |change| {
            let derived = change.clone().map(Derived::from);
            knowledge.services.change(derived);
            knowledge.services.change(change);
        }));
        let knowledge = self.knowledge.clone();
        let source = local("Namespace");
        let (api, config) = (Api::<Namespace>::all(client()), watcher::Config::default());
        tasks.spawn(self.local.watch(api, config, source, env.metrics.clone(), move |change| {
            knowledge.change_namespaces(change);
        }));
        let watches = &self.local;
        self.index(tasks, watches, Api::<Export>::all(client()), local("ServiceExport"), "");
        self.index(tasks, watches, Api::<Slice>::all(client()), local("EndpointSlice"), label::SERVICE_NAME);
        self.index(tasks, watches, Api::<Import>::all(client()), local("ServiceImport"), "");
    }

    pub(super) fn watch_leader(&self, tasks: &mut JoinSet<()>) {
        let Access { us, leader, antrea, wire, .. } = &self.access;
        let (us, area, watches) = (&us.cluster, &us.common_area, &self.leader);
        let own = format!("{}={us}", label::SOURCE_CLUSTER_ID);
        let records = Api::<OwnRecord>::namespaced(leader.clone(), area);
        self.index(tasks, watches, records, common_area("own ResourceExport"), &own);
        // In a Common Area of Antrea's everybody writes as its controllers do.
        if *wire == Wire::Antrea {
            let imports = Api::<AntreaImport>::namespaced(leader.clone(), area);
            self.index(tasks, watches, imports, common_area("ResourceImport"), "");
            self.watch_peers_of_antrea(tasks, "");
            return;
        }
        let peers = format!("{}!={us},{}={ENDPOINT_SLICE}", label::SOURCE_CLUSTER_ID, label::SOURCE_KIND);
        let records = Api::<PeerSlice>::namespaced(leader.clone(), area);
        self.index(tasks, watches, records, common_area("ResourceExport"), &peers);
        let imports = Api::<LeaderImport>::namespaced(leader.clone(), area);
        self.index(tasks, watches, imports, common_area("ResourceImport"), "");
        if !antrea.is_empty() {
            let members: Vec<_> = antrea.into_iter().map(String::as_str).collect();
            let members = format!(",{} in ({})", label::SOURCE_CLUSTER_ID, members.join(","));
            self.watch_peers_of_antrea(tasks, &members);
        }
    }

    /// Records of the kinds that Antrea's controllers write, of other clusters that `also` selects.
    fn watch_peers_of_antrea(&self, tasks: &mut JoinSet<()>, also: &str) {
        let Access { us, leader, .. } = &self.access;
        let selector = format!(
            "{}!={},{} in ({SERVICE},{ENDPOINTS}){also}",
            label::SOURCE_CLUSTER_ID,
            us.cluster,
            label::SOURCE_KIND,
        );
        let records = Api::<PeerRecord>::namespaced(leader.clone(), &us.common_area);
        self.index(tasks, &self.leader, records, common_area("ResourceExport of Antrea"), &selector);
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
        tasks.spawn(watches.watch(api, config, source, self.access.env.metrics.clone(), move |change| {
            knowledge.services.change(change);
        }));
    }
}

fn local(kind: &'static str) -> Source {
    Source { cluster: "local", kind }
}

fn common_area(kind: &'static str) -> Source {
    Source { cluster: "leader", kind }
}
