//! What the API server answered, reduced to what is judged. An object that does not decode, because somebody else or an older
//! version wrote it, hides no other.

mod binding;

use std::collections::BTreeMap;

use api::{
    condition::AntreaCondition,
    label,
    lease::LeaseView,
    name,
    offload::{
        map::DELETION_REFUSED,
        phase::Phase,
        view::{NamespaceOffloadingView, OffloadPeerView},
    },
    resource_export::SERVICE,
    resource_import::SERVICE_IMPORT,
};
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Condition};
use kube::api::ObjectMeta;

pub(super) use self::binding::{
    Asked, Binding, Consumer, Contract, Exported, Left, Offered, Provider, refused_ask, refused_namespace,
    refused_request, unanswered_ask, unanswered_request,
};
pub(super) use crate::part::{Gap, Part, Why};
use crate::{
    deletion::Deletion,
    objects::Object,
    offload::{
        progress::{Progress, progress},
        refused::keeps_twin_at_host,
        unmapped::Unmapped,
        vanished::Vanished,
    },
    view::{ClusterSetView, Note, RecordView, ResourceImportView, ServiceExportView, ServiceImportView},
};

/// Everything that was asked for.
#[derive(Debug)]
pub(super) struct Found {
    /// Context of the cluster.
    pub(super) cluster: String,
    /// Version of this command.
    pub(super) version: String,
    /// The only ClusterSet that was asked for.
    pub(super) asked: Option<String>,
    /// Common Areas.
    pub(super) areas: Part<Vec<Area>>,
    /// ClusterSets of the member.
    pub(super) sets: Part<Vec<ClusterSetView>>,
    /// What the member noted of its membership; none when it belongs to no set, or never reached the leader.
    pub(super) noted: Part<Option<Note>>,
    /// What keeps members to their own records, and its binding, as far as they are there; none unless the cluster leads.
    pub(super) records_policy: Option<Part<[Option<Object>; 2]>>,
    /// What keeps users from writing ServiceImports, likewise; none unless the cluster belongs to a set.
    pub(super) imports_policy: Option<Part<[Option<Object>; 2]>>,
    /// What keeps the member to what Freeport makes, likewise.
    pub(super) own_policy: Option<Part<[Option<Object>; 2]>>,
    /// What refuses mistakes, as [`checks`](crate::objects::member::checks) lists it; likewise, each.
    pub(super) checks: Vec<Option<Part<[Option<Object>; 2]>>>,
    /// Deployment of freeport-leader, if it has one; none unless the cluster leads or provides.
    pub(super) leader: Option<Part<Option<Deployment>>>,
    /// Deployment of freeport-member, likewise; none unless the cluster belongs to a set.
    pub(super) member: Option<Part<Option<Deployment>>>,
    /// Lease that freeport-member renews in its own cluster, if there is one; likewise.
    pub(super) life: Option<Part<Option<LeaseView>>>,
    /// Leases of the replicas of each daemon, where they are `needed` likewise.
    pub(super) active: [(&'static str, Option<Part<Option<LeaseView>>>); 2],
    /// ServiceExports; none if the cluster is known to belong to no set.
    pub(super) exports: Option<Part<Vec<Entry>>>,
    /// ServiceImports of ours; none if the cluster is known to belong to no set.
    pub(super) imports: Option<Part<Vec<Entry>>>,
    /// Offloading; none where it is not set up.
    pub(super) offloading: Option<Offloading>,
    /// CRDs of the records of offloading that are missing and were there.
    pub(super) lost_records: Part<Vec<String>>,
    /// API binding; none where it is not set up.
    pub(super) binding: Option<Binding>,
}

/// What is there of offloading.
#[derive(Debug)]
pub(super) struct Offloading {
    /// What keeps the member to its own Namespaces and Nodes, and its binding, as far as they are there.
    pub(super) policy: Part<[Option<Object>; 2]>,
    /// What refuses mistakes, as [`checks`](crate::objects::offload::checks) lists it.
    pub(super) checks: Vec<Option<Part<[Option<Object>; 2]>>>,
    /// OffloadPeers.
    pub(super) peers: Part<Vec<Entry>>,
    /// NamespaceOffloadings.
    pub(super) namespaces: Part<Vec<Entry>>,
    /// Twins of Namespaces whose NamespaceOffloading vanished.
    pub(super) vanished: Vanished,
    /// Twins here that no NamespaceMap of their home names.
    pub(super) unmapped: Vec<Unmapped>,
    /// Namespaces of other clusters that have a twin here: ID of the home, and name here.
    pub(super) twins_here: Part<Vec<(String, String)>>,
    /// Namespaces that have a twin in another cluster: its ID, and name here.
    pub(super) twins_elsewhere: Vec<(String, String)>,
    /// Namespaces of whose Pods the webhook is asked.
    pub(super) placed: Part<Vec<String>>,
    /// When the API server asks the webhook, if it does.
    pub(super) webhook: Part<Option<Object>>,
    /// Deployment of the webhook, if it has one.
    pub(super) server: Option<Part<Option<Deployment>>>,
}

/// A Common Area.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) namespace: String,
    pub(super) sets: Part<Vec<ClusterSetView>>,
    /// Leases of daemons by name.
    pub(super) leases: Part<BTreeMap<String, LeaseView>>,
    /// IDs of clusters that may take part.
    pub(super) joined: Part<Vec<String>>,
    /// Those of them that replace their tokens, and have one yet that counts for ever, as far as that may be read.
    pub(super) long_lived: Vec<String>,
    pub(super) records: Part<Vec<Record>>,
    /// Number of merged Services.
    pub(super) imports: Part<usize>,
}

/// A ResourceExport.
#[derive(Debug)]
pub(super) struct Record {
    /// Cluster that wrote it, as it says.
    pub(super) cluster: String,
    /// Whether it offers a Service, and is not withdrawn.
    pub(super) offers_service: bool,
    pub(super) entry: Entry,
}

/// An object with conditions.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) conditions: Vec<AntreaCondition>,
    /// Whether somebody deletes it.
    pub(super) deletion: Option<Deletion>,
}

impl From<RecordView> for Record {
    fn from(record: RecordView) -> Self {
        let spec = record.spec.0.unwrap_or_default();
        let conditions = record.status.0.map(|status| status.conditions).unwrap_or_default();
        let offers_service = spec.kind.as_deref() == Some(SERVICE) && !spec.is_withdrawn();
        Self {
            cluster: spec.cluster_id.unwrap_or_default(),
            offers_service,
            entry: Entry::of(&record.metadata, conditions),
        }
    }
}

impl From<ServiceExportView> for Entry {
    fn from(export: ServiceExportView) -> Self {
        Self::of(&export.metadata, export.status.0.unwrap_or_default().conditions())
    }
}

impl From<ServiceImportView> for Entry {
    fn from(import: ServiceImportView) -> Self {
        Self::of(&import.metadata, import.status.0.unwrap_or_default().conditions)
    }
}

impl From<OffloadPeerView> for Entry {
    fn from(peer: OffloadPeerView) -> Self {
        let conditions = peer.status.0.unwrap_or_default().conditions;
        Self::of(&peer.metadata, conditions.into_iter().map(antrea).collect())
    }
}

/// Type of a condition that stands for the phase of a NamespaceOffloading, which has none of its own.
pub(super) const OFFLOADED: &str = "Offloaded";

impl From<NamespaceOffloadingView> for Entry {
    fn from(offloading: NamespaceOffloadingView) -> Self {
        let progress = progress(Some(&offloading));
        let status = offloading.status.0.unwrap_or_default();
        let refused = keeps_twin_at_host(&status);
        let phase = status.offloading_phase.unwrap_or_default();
        let (is_there, message) = match progress {
            // That no cluster is selected may change by itself. Until then nothing is offloaded.
            Progress::Done(message) if phase == Phase::NoClusterSelected.as_str() => ("False", message),
            Progress::Done(message) => ("True", message),
            // Of the placement there is a condition.
            Progress::Waits(_)
                if [Phase::Ready, Phase::PlacementNotEnforced]
                    .map(Phase::as_str)
                    .contains(&phase.as_str()) =>
            {
                ("True", String::new())
            }
            Progress::Waits(message) | Progress::Failed(message) => ("False", message),
        };
        let (is_there, reason, message) = match refused {
            // The words of all clusters are in it already.
            Some(_) if message.contains(DELETION_REFUSED) => ("False", DELETION_REFUSED.to_owned(), message),
            Some(refused) => ("False", DELETION_REFUSED.to_owned(), format!("{message}; {refused}")),
            None => (is_there, phase, message),
        };
        let offloaded = AntreaCondition {
            type_: Some(OFFLOADED.into()),
            status: Some(is_there.into()),
            reason: Some(reason),
            message: Some(message),
            last_transition_time: None,
        };
        let conditions = status.conditions.into_iter().map(antrea).chain([offloaded]).collect();
        Self::of(&offloading.metadata, conditions)
    }
}

fn antrea(condition: Condition) -> AntreaCondition {
    AntreaCondition {
        type_: Some(condition.type_),
        status: Some(condition.status),
        reason: Some(condition.reason),
        message: Some(condition.message),
        last_transition_time: Some(condition.last_transition_time),
    }
}

impl Entry {
    fn of(metadata: &ObjectMeta, conditions: Vec<AntreaCondition>) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
        Self { namespace, name, conditions, deletion: Deletion::of(metadata) }
    }
}

/// Whether a ResourceImport holds a merged Service.
pub(super) fn is_merged_service(import: &ResourceImportView) -> bool {
    matches!(&import.spec.0, Ok(spec) if spec.kind.as_deref() == Some(SERVICE_IMPORT))
}

/// ID of the cluster whose daemon holds the Lease `lease`, if it is a member's.
pub(super) fn member_of(lease: &str) -> Option<&str> {
    let id = lease.strip_prefix(label::MEMBER)?.strip_prefix('-')?;
    (name::member_lease(id) == lease && !id.is_empty()).then_some(id)
}
