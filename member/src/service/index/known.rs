//! All that a controller reads about one Service name.

use std::sync::Arc;

use api::{ServiceName, membership::Wire, resource_import::Exporter};
use rules::offer::Local;

use super::{
    cluster::{Cluster, EndpointIp},
    entry::{LeaderRecord, NamespaceEntry, ServiceEntry},
};

/// The entry of a Service name, with what holds for its Namespace and for the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    /// The name.
    pub(crate) service: ServiceName,
    /// What is known about it.
    pub(crate) entry: Arc<ServiceEntry>,
    /// Its Namespace.
    pub(crate) namespace: NamespaceEntry,
    /// This cluster.
    pub(crate) cluster: Arc<Cluster>,
    /// What has to be derived where the leader is Antrea's.
    pub(crate) under_antrea: UnderAntrea,
}

/// What an import of Antrea's does not say, derived from other objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UnderAntrea {
    /// Another Service of ours that has the names our records need.
    pub(crate) rival: Option<ServiceName>,
    /// Who takes part in the import.
    pub(crate) exporters: Vec<Exporter>,
}

impl Known {
    /// Our cluster ID.
    pub(crate) fn us(&self) -> &str {
        &self.cluster.us.cluster
    }

    /// Whether the leader is Antrea's.
    pub(crate) fn antrea_leads(&self) -> bool {
        self.cluster.wire == Wire::Antrea
    }

    /// Who takes part in the leader's import, if there is one.
    pub(crate) fn exporters(&self) -> &[Exporter] {
        match &self.entry.leader_import {
            Some(_) if self.antrea_leads() => &self.under_antrea.exporters,
            Some(import) => import.spec.exporters.as_deref().unwrap_or_default(),
            None => &[],
        }
    }

    /// uid of the import that was found to miss nothing. One of Antrea's names nobody, so it is never believed for who is
    /// missing in it.
    pub(crate) fn accepted(&self) -> Option<&String> {
        self.entry.accepted.as_ref().filter(|_| !self.antrea_leads())
    }

    /// Whether what is here was measured by this import, as [`ServiceEntry::is_measured`] says.
    pub(crate) fn is_measured(&self, import: &LeaderRecord) -> bool {
        !self.antrea_leads() && self.entry.is_measured(import)
    }

    /// What matters for the export of the name.
    pub(crate) fn local(&self) -> Local<'_> {
        let entry = &self.entry;
        Local {
            cluster: self.us(),
            name: &self.service,
            is_excluded: self.namespace.excluded,
            service: entry.service.as_deref(),
            slices: &entry.slices,
            records: &entry.own_slices,
            imported: entry.own_service.is_none().then_some(&entry.imported_slices),
            only_cluster_ips: self.cluster.endpoint_ip == EndpointIp::Cluster,
            antrea_leads: self.antrea_leads(),
            families: &self.cluster.families,
        }
    }
}
