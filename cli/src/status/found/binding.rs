//! What there is of API binding.

use api::{
    bind::{
        binding::{APIServiceBinding, ClusterBinding},
        condition,
        export::APIServiceExport,
        resource::Resource,
    },
    condition::AntreaCondition,
    view::Tolerant,
};
use k8s_openapi::{
    api::core::v1::Namespace,
    jiff::{SignedDuration, Timestamp},
};

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
    /// What is made for consumers and being deleted, by kind.
    pub(in crate::status) going: Vec<Going>,
}

/// Objects of a kind that somebody deletes.
#[derive(Debug)]
pub(in crate::status) struct Going {
    pub(in crate::status) kind: &'static str,
    pub(in crate::status) objects: Part<Vec<Entry>>,
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

impl From<Tolerant<APIServiceExport>> for Entry {
    fn from(export: Tolerant<APIServiceExport>) -> Self {
        Self::of(&export.metadata, Vec::new())
    }
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
