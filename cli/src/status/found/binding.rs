//! What there is of API binding.

use std::collections::BTreeSet;

use api::{
    bind::{
        binding::{APIServiceBinding, ClusterBinding},
        condition,
        export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace, Phase},
        label,
        offer::BindableResourcesRequest,
        resource::Resource,
    },
    condition::AntreaCondition,
    view::Tolerant,
};
use k8s_openapi::{
    api::core::v1::Namespace,
    jiff::{SignedDuration, Timestamp},
};

use kube::api::ObjectMeta;

use super::{Entry, Part};
use crate::{deletion::Deletion, objects::Object};

/// What is there of API binding.
#[derive(Debug)]
pub(in crate::status) struct Binding {
    pub(in crate::status) provider: Option<Provider>,
    pub(in crate::status) consumer: Option<Consumer>,
}

/// Of a cluster that offers APIs.
#[derive(Debug)]
pub(in crate::status) struct Provider {
    /// What keeps the leader to what is of a contract, and its binding, as far as they are there.
    pub(in crate::status) policy: Part<[Option<Object>; 2]>,
    /// What keeps consumers from holding their cluster namespaces, likewise.
    pub(in crate::status) requests: Part<[Option<Object>; 2]>,
    pub(in crate::status) offers: Vec<Offered>,
    pub(in crate::status) contracts: Part<Vec<Contract>>,
    /// APIServiceExports.
    pub(in crate::status) exports: Part<Vec<Exported>>,
    /// Names of the CRDs that are there.
    pub(in crate::status) crds: Part<BTreeSet<String>>,
    /// Names of those whose APIs may be offered.
    pub(in crate::status) marked: Part<BTreeSet<String>>,
    /// What nobody has answered yet, by kind.
    pub(in crate::status) asked: Vec<Asked>,
    /// Objects for which this API server refuses a write to the leader, by kind.
    pub(in crate::status) refused: Vec<(&'static str, Part<Vec<Entry>>)>,
    /// Namespaces that are made for consumers and being deleted.
    pub(in crate::status) going: Part<Vec<Entry>>,
    /// Those that nobody deletes any more.
    pub(in crate::status) left: Part<Vec<Left>>,
}

/// A Namespace that was made for one of a consumer, of which there is no APIServiceNamespace.
#[derive(Debug)]
pub(in crate::status) struct Left {
    pub(in crate::status) name: String,
    /// `NAMESPACE/NAME` of that APIServiceNamespace.
    pub(in crate::status) made_for: String,
    pub(in crate::status) made: Timestamp,
}

impl Left {
    /// Unless it is being deleted, or was made for nobody.
    pub(in crate::status) fn of(namespace: &ObjectMeta) -> Option<Self> {
        let made_for = namespace.annotations.as_ref()?.get(label::API_SERVICE_NAMESPACE)?.clone();
        let made = namespace.creation_timestamp.as_ref()?.0;
        let name = namespace.name.clone()?;
        namespace.deletion_timestamp.is_none().then_some(Self { name, made_for, made })
    }
}

/// An APIServiceExport.
#[derive(Debug)]
pub(in crate::status) struct Exported {
    pub(in crate::status) entry: Entry,
    /// Its APIs, as CRDs are named.
    pub(in crate::status) apis: Vec<String>,
}

/// Requests of a kind, and since when nobody has said anything about each.
#[derive(Debug)]
pub(in crate::status) struct Asked {
    pub(in crate::status) kind: &'static str,
    pub(in crate::status) unanswered: Part<Vec<(Entry, Timestamp)>>,
}

/// An API in a template.
#[derive(Debug)]
pub(in crate::status) struct Offered {
    pub(in crate::status) api: Resource,
    /// What keeps consumers to their own objects, and its binding, as far as they are there.
    pub(in crate::status) policy: Part<[Option<Object>; 2]>,
}

/// A ClusterBinding, in its cluster namespace.
#[derive(Debug)]
pub(in crate::status) struct Contract {
    pub(in crate::status) entry: Entry,
    pub(in crate::status) last_heartbeat: Option<Timestamp>,
    /// How often there is to be one.
    pub(in crate::status) interval: SignedDuration,
}

/// Of a cluster that uses APIs of others.
#[derive(Debug)]
pub(in crate::status) struct Consumer {
    /// What keeps the member to CRDs of APIs that were agreed to, and its binding, as far as they are there.
    pub(in crate::status) policy: Part<[Option<Object>; 2]>,
    /// APIServiceBindings.
    pub(in crate::status) bindings: Part<Vec<Entry>>,
}

impl From<Tolerant<APIServiceBinding>> for Entry {
    fn from(binding: Tolerant<APIServiceBinding>) -> Self {
        let status = binding.object.ok().and_then(|binding| binding.status).unwrap_or_default();
        Self::of(&binding.metadata, status.conditions.into_iter().map(of_binding).collect())
    }
}

impl From<Tolerant<APIServiceExport>> for Exported {
    fn from(export: Tolerant<APIServiceExport>) -> Self {
        let (resources, status) =
            export.object.map(|export| (export.spec.resources, export.status)).unwrap_or_default();
        let conditions = status.unwrap_or_default().conditions.into_iter().map(of_binding).collect();
        Self {
            entry: Entry::of(&export.metadata, conditions),
            apis: resources.iter().map(Resource::name).collect(),
        }
    }
}

/// A request for a contract, if nobody has said anything about it.
pub(in crate::status) fn unanswered_ask(
    ask: Tolerant<BindableResourcesRequest>,
) -> Option<(Entry, Timestamp)> {
    let status = ask.object.ok()?.status.unwrap_or_default();
    unanswered(&ask.metadata, status.phase == Phase::Pending && status.conditions.is_empty())
}

/// A request for APIs, likewise.
pub(in crate::status) fn unanswered_request(
    request: Tolerant<APIServiceExportRequest>,
) -> Option<(Entry, Timestamp)> {
    let status = request.object.ok()?.status.unwrap_or_default();
    unanswered(&request.metadata, status.phase == Phase::Pending && status.conditions.is_empty())
}

/// Reason of a condition: an API server refuses a write.
const REFUSED: &str = "Refused";

/// An APIServiceNamespace, if what is to be made for it is refused.
pub(in crate::status) fn refused_namespace(asked: Tolerant<APIServiceNamespace>) -> Option<Entry> {
    let conditions = asked.object.ok()?.status.unwrap_or_default().conditions;
    refused(&asked.metadata, conditions.into_iter().map(of_binding))
}

/// A request for APIs, likewise.
pub(in crate::status) fn refused_request(request: Tolerant<APIServiceExportRequest>) -> Option<Entry> {
    let conditions = request.object.ok()?.status.unwrap_or_default().conditions;
    refused(&request.metadata, conditions.into_iter().map(of_binding))
}

/// A request for a contract, likewise.
pub(in crate::status) fn refused_ask(ask: Tolerant<BindableResourcesRequest>) -> Option<Entry> {
    let conditions = ask.object.ok()?.status.unwrap_or_default().conditions;
    let conditions = conditions.into_iter().map(|said| AntreaCondition {
        type_: Some(said.type_),
        status: Some(said.status),
        reason: Some(said.reason),
        message: Some(said.message),
        last_transition_time: Some(said.last_transition_time),
    });
    refused(&ask.metadata, conditions)
}

fn refused(metadata: &ObjectMeta, conditions: impl Iterator<Item = AntreaCondition>) -> Option<Entry> {
    let is_refused = |said: &AntreaCondition| {
        said.status.as_deref() == Some("False") && said.reason.as_deref() == Some(REFUSED)
    };
    let refused: Vec<_> = conditions.filter(is_refused).take(1).collect();
    (!refused.is_empty()).then(|| Entry::of(metadata, refused))
}

fn unanswered(metadata: &ObjectMeta, is_so: bool) -> Option<(Entry, Timestamp)> {
    let made = metadata.creation_timestamp.as_ref().filter(|_| is_so)?;
    Some((Entry::of(metadata, Vec::new()), made.0))
}

impl From<Namespace> for Entry {
    fn from(namespace: Namespace) -> Self {
        Self { deletion: Deletion::of_namespace(&namespace), ..Self::of(&namespace.metadata, Vec::new()) }
    }
}

impl From<Tolerant<ClusterBinding>> for Contract {
    fn from(binding: Tolerant<ClusterBinding>) -> Self {
        let status = binding.object.ok().and_then(|binding| binding.status).unwrap_or_default();
        let conditions = status.conditions.into_iter().map(of_binding).collect();
        let interval =
            status.heartbeat_interval.and_then(|interval| SignedDuration::try_from(interval.0).ok());
        Self {
            entry: Entry::of(&binding.metadata, conditions),
            last_heartbeat: status.last_heartbeat_time.map(|time| time.0),
            interval: interval.unwrap_or(HEARTBEAT_INTERVAL),
        }
    }
}

/// Unless its konnector says otherwise.
const HEARTBEAT_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

fn of_binding(condition: condition::Condition) -> AntreaCondition {
    AntreaCondition {
        type_: Some(condition.type_),
        status: Some(condition.status),
        reason: condition.reason,
        message: condition.message,
        last_transition_time: condition.last_transition_time,
    }
}
