//! Objects of clusters, as far as a plan needs them.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    ServiceName, label,
    lease::LeaseView,
    name,
    report::{ClusterReport, ClusterReportStatus},
    resource_export::{ENDPOINT_SLICE, SERVICE, ServicePayload},
    slice::SlicePayload,
    view::{Lenient, Meta, unlabelled},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use rules::view::{Export, Import, OwnRecord, Service, Slice, is_imported};
use serde::Deserialize;

use super::target_ports::TargetPorts;
use crate::{
    gap::{Gap, Seen},
    view::ClusterSetView,
};

/// Objects of one cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Context of the cluster.
    pub context: String,
    /// uid of its Namespace kube-system.
    pub uid: Seen<String>,
    /// Its ClusterSets as a member.
    pub sets: Seen<Vec<ClusterSetView>>,
    /// Deployment of its member.
    pub deployment: Seen<Option<Deployment>>,
    /// IP families that its Services can have, the preferred one first.
    pub families: Seen<Vec<String>>,
    /// The Namespaces of the Services in question that exist.
    pub namespaces: Seen<Vec<Meta<Namespace>>>,
    /// ServiceExports in these Namespaces.
    pub exports: Seen<Vec<Export>>,
    /// Services in these Namespaces.
    pub services: Seen<Vec<Service>>,
    /// Ports that these Services lead to.
    pub target_ports: Seen<Vec<TargetPorts>>,
    /// EndpointSlices in these Namespaces.
    pub slices: Seen<Vec<Slice>>,
    /// ServiceImports in these Namespaces.
    pub imports: Seen<Vec<Import>>,
    /// Common Areas of ClusterSets that it leads.
    pub areas: Seen<Vec<Area>>,
}

/// Objects of a Common Area.
#[derive(Clone, Debug)]
pub struct Area {
    /// Its Namespace.
    pub namespace: String,
    /// ClusterSets in it.
    pub sets: Seen<Vec<ClusterSetView>>,
    /// Leases of daemons.
    pub leases: Seen<Vec<LeaseView>>,
    /// Records of the Services in question.
    pub records: Seen<Vec<OwnRecord>>,
    /// Reports of members.
    pub reports: Seen<Vec<ReportView>>,
}

/// The report of a member.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ClusterReport)]
pub struct ReportView {
    /// Its name is the ID of the member.
    #[serde(deserialize_with = "unlabelled")]
    pub metadata: ObjectMeta,
    /// Report of the member.
    #[serde(default)]
    pub status: Lenient<ClusterReportStatus>,
}

impl Cluster {
    /// A cluster of which nothing is known, and why.
    pub fn unknown(context: impl Into<String>, gap: &Gap) -> Self {
        Self {
            context: context.into(),
            uid: Err(gap.clone()),
            sets: Err(gap.clone()),
            deployment: Err(gap.clone()),
            families: Err(gap.clone()),
            namespaces: Err(gap.clone()),
            exports: Err(gap.clone()),
            services: Err(gap.clone()),
            target_ports: Err(gap.clone()),
            slices: Err(gap.clone()),
            imports: Err(gap.clone()),
            areas: Err(gap.clone()),
        }
    }

    /// Returns the reason if nothing that a plan needs could be read.
    pub fn unseen(&self) -> Option<&Gap> {
        let is_seen = self.sets.is_ok() || self.exports.is_ok() || self.imports.is_ok() || self.areas.is_ok();
        self.sets.as_ref().err().filter(|_| !is_seen)
    }

    /// Its ClusterSet as a member.
    pub fn set(&self) -> Option<&ClusterSetView> {
        self.sets.as_ref().ok()?.first()
    }

    /// Its ID, as far as it belongs to a ClusterSet.
    pub fn id(&self) -> Option<&str> {
        self.set()?.cluster_id()
    }

    /// Returns its ID, or its context without one.
    pub fn title(&self) -> &str {
        self.id().unwrap_or(&self.context)
    }

    /// The Namespace of this name; none if it does not exist.
    pub(super) fn namespace(&self, name: &str) -> Seen<Option<&Meta<Namespace>>> {
        let all = self.namespaces.as_ref().map_err(Clone::clone)?;
        Ok(all.iter().find(|namespace| namespace.name_any() == name))
    }

    /// Reports whether its administrator excluded this Namespace from exporting.
    pub(super) fn is_excluded(&self, namespace: &str) -> bool {
        let found = self.namespace(namespace).ok().flatten();
        found.is_some_and(|found| {
            found.labels().get(label::EXPORT).is_some_and(|export| export == label::FALSE)
        })
    }

    /// Reports whether the member exports only ClusterIPs, as arguments or environment of its Deployment say.
    pub(super) fn only_cluster_ips(&self) -> bool {
        let spec = self.deployment.iter().flatten().map(|deployment| &deployment.spec).next();
        let containers =
            spec.and_then(|spec| spec.template.spec.as_ref()).map(|pod| pod.containers.as_slice());
        containers.unwrap_or_default().iter().any(|container| {
            let words = || container.command.iter().chain(&container.args).flatten().map(String::as_str);
            let joined = words().find_map(|word| word.strip_prefix("--endpoint-ip="));
            let apart = || {
                words()
                    .zip(words().skip(1))
                    .find_map(|(flag, word)| (flag == "--endpoint-ip").then_some(word))
            };
            let in_env = || {
                let set = container.env.iter().flatten().find(|set| set.name == "FREEPORT_ENDPOINT_IP")?;
                set.value.as_deref()
            };
            joined.or_else(apart).or_else(in_env) == Some("cluster")
        })
    }

    /// Its ServiceExport.
    pub(super) fn export(&self, service: &ServiceName) -> Option<&Export> {
        named(self.exports.as_deref().unwrap_or_default(), service)
    }

    /// Its Service.
    pub(super) fn service(&self, service: &ServiceName) -> Option<&Service> {
        named(self.services.as_deref().unwrap_or_default(), service)
    }

    /// Ports that its Service leads to.
    pub(super) fn target_ports(&self, service: &ServiceName) -> Option<&TargetPorts> {
        named(self.target_ports.as_deref().unwrap_or_default(), service)
    }

    /// Its ServiceImport, whoever made it.
    pub(super) fn import(&self, service: &ServiceName) -> Option<&Import> {
        named(self.imports.as_deref().unwrap_or_default(), service)
    }

    /// The Service that is named like that of the import, whoever made it.
    pub(super) fn derived(&self, service: &ServiceName) -> Option<&Service> {
        self.service(&ServiceName::new(&service.namespace, name::imported_service(&service.name)))
    }

    /// EndpointSlices of its own Service, by name.
    pub(super) fn own_slices(&self, service: &ServiceName) -> BTreeMap<String, Arc<Slice>> {
        let is_own = |slice: &&Slice| {
            slice.namespace().as_ref() == Some(&service.namespace)
                && slice.labels().get(label::SERVICE_NAME) == Some(&service.name)
                && !is_imported(slice)
        };
        let own = self.slices.iter().flatten().filter(is_own);
        own.map(|slice| (slice.name_any(), Arc::new(slice.clone()))).collect()
    }

    /// EndpointSlices that it imported, by name.
    pub(super) fn imported_slices(&self, service: &ServiceName) -> BTreeMap<String, Slice> {
        let is_of = |slice: &&Slice| {
            slice.namespace().as_ref() == Some(&service.namespace)
                && slice.labels().get(label::MCS_SERVICE_NAME) == Some(&service.name)
                && is_imported(slice)
        };
        let imported = self.slices.iter().flatten().filter(is_of);
        imported.map(|slice| (slice.name_any(), slice.clone())).collect()
    }
}

fn named<'a, K: Resource>(all: &'a [K], service: &ServiceName) -> Option<&'a K> {
    all.iter().find(|object| {
        let (namespace, name) = (&object.meta().namespace, &object.meta().name);
        (namespace.as_ref(), name.as_ref()) == (Some(&service.namespace), Some(&service.name))
    })
}

impl Area {
    /// Name of its ClusterSet.
    pub fn set(&self) -> Option<String> {
        Some(self.sets.as_ref().ok()?.first()?.name_any())
    }

    /// IDs of members that have not left, with their Leases.
    pub(super) fn members(&self) -> impl Iterator<Item = (String, &LeaseView)> {
        let leases = self.leases.iter().flatten().filter(|lease| !lease.has_left());
        leases.filter_map(|lease| Some((name::member_of_lease(&lease.name_any())?.to_owned(), lease)))
    }

    /// Records of this kind that a cluster wrote about a Service.
    fn of<'a>(
        &'a self,
        kind: &'a str,
        cluster: &'a str,
        service: &'a ServiceName,
    ) -> impl Iterator<Item = &'a OwnRecord> {
        self.records.iter().flatten().filter(move |record| {
            let Ok(spec) = &record.spec.0 else { return false };
            let words = [&spec.kind, &spec.cluster_id, &spec.namespace, &spec.name];
            words.map(|word| word.as_deref().unwrap_or_default())
                == [kind, cluster, service.namespace.as_str(), service.name.as_str()]
        })
    }

    /// Clusters with a record of this Service.
    pub(super) fn exporters(&self, service: &ServiceName) -> Vec<String> {
        let of = |record: &OwnRecord| {
            let spec = record.spec.0.as_ref().ok()?;
            let is_it = spec.kind.as_deref() == Some(SERVICE)
                && spec.namespace.as_ref() == Some(&service.namespace)
                && spec.name.as_ref() == Some(&service.name);
            spec.cluster_id.clone().filter(|_| is_it)
        };
        self.records.iter().flatten().filter_map(of).collect()
    }

    /// Returns the payload of a cluster's record, unless it is withdrawn or the leader refuses it.
    pub(super) fn payload<'a>(
        &'a self,
        cluster: &'a str,
        service: &'a ServiceName,
    ) -> Option<(&'a ObjectMeta, &'a ServicePayload)> {
        let record = self.of(SERVICE, cluster, service).find(|record| record.failure().is_none())?;
        let payload = record.spec.0.as_ref().ok()?.service.as_ref()?;
        (!payload.withdrawn).then_some((&record.metadata, payload))
    }

    /// Records of slices of a cluster, by name.
    pub(super) fn slices(&self, cluster: &str, service: &ServiceName) -> BTreeMap<String, Arc<OwnRecord>> {
        let records = self.of(ENDPOINT_SLICE, cluster, service);
        records.map(|record| (record.name_any(), Arc::new(record.clone()))).collect()
    }

    /// The report of a member.
    pub(super) fn report(&self, cluster: &str) -> Option<&ClusterReportStatus> {
        let report = self.reports.as_ref().ok()?.iter().find(|report| report.name_any() == cluster)?;
        report.status.0.as_ref().ok()
    }
}

/// Returns the payload of a slice record.
pub(super) fn slice_of(record: &OwnRecord) -> Option<&SlicePayload> {
    record.spec.0.as_ref().ok()?.endpoint_slice.as_ref()
}
