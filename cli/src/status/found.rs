//! What the API server answered, reduced to what is judged. Objects are read loosely: one that somebody else wrote, or an
//! older version, must not hide all others.

use std::collections::BTreeMap;

use api::{condition::AntreaCondition, label, membership, name};
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::ConfigMap},
    jiff::Timestamp,
};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;

use crate::objects::Object;

/// One part of what was asked for, or why it is not there.
pub(super) type Part<T> = Result<T, Gap>;

/// A part that could not be read.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    /// `plural` or `plural in namespace`.
    pub(super) part: String,
    /// Why.
    pub(super) why: Why,
}

/// What stood in the way.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// The API server does not know the kind.
    NoCrd,
    /// We have no right to it; in the server's words.
    Forbidden(String),
    /// Something else; in the server's words.
    Failed(String),
}

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
    pub(super) sets: Part<Vec<Set>>,
    /// What the member noted of its membership; none when it belongs to no set, or never reached the leader.
    pub(super) noted: Part<Option<Noted>>,
    /// What keeps members to their own records, and its binding, as far as they are there; none unless the cluster leads.
    pub(super) records_policy: Option<Part<[Option<Object>; 2]>>,
    /// What keeps users from writing ServiceImports, likewise; none unless the cluster belongs to a set.
    pub(super) imports_policy: Option<Part<[Option<Object>; 2]>>,
    /// What refuses mistakes, as [`checks`](crate::objects::member::checks) lists it; likewise, each.
    pub(super) checks: Vec<Option<Part<[Option<Object>; 2]>>>,
    /// Deployment of freeport-leader, if it has one; none unless the cluster leads.
    pub(super) leader: Option<Part<Option<Deployment>>>,
    /// Deployment of freeport-member, likewise; none unless the cluster belongs to a set.
    pub(super) member: Option<Part<Option<Deployment>>>,
    /// Lease by which freeport-member shows here that it lives, if there is one; likewise.
    pub(super) life: Option<Part<Option<Renewal>>>,
    /// ServiceExports; none when the cluster belongs to no set, as far as can be told.
    pub(super) exports: Option<Part<Vec<Entry>>>,
    /// ServiceImports of ours; none when the cluster belongs to no set, as far as can be told.
    pub(super) imports: Option<Part<Vec<Entry>>>,
}

/// A Common Area.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) namespace: String,
    pub(super) sets: Part<Vec<Set>>,
    /// Leases of daemons by name.
    pub(super) leases: Part<BTreeMap<String, Renewal>>,
    /// IDs of clusters that may take part.
    pub(super) joined: Part<Vec<String>>,
    pub(super) records: Part<Vec<Record>>,
    /// Number of merged Services.
    pub(super) imports: Part<usize>,
}

/// A ClusterSet.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) cluster_id: Option<String>,
    pub(super) server: Option<String>,
    pub(super) conditions: Vec<AntreaCondition>,
    /// The conditions are about the ClusterSet as it is now.
    pub(super) is_of_now: bool,
}

/// What the member noted of its membership. It deletes the note when it has left.
#[derive(Debug)]
pub(super) struct Noted {
    pub(super) cluster_set: String,
    pub(super) cluster_id: Option<String>,
    pub(super) server: Option<String>,
    /// It was told to leave.
    pub(super) leaving: bool,
}

/// What a Lease tells of its holder.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    pub(super) renewed: Option<Timestamp>,
    pub(super) version: Option<String>,
    pub(super) wire: Option<String>,
    pub(super) left: bool,
}

/// A ResourceExport.
#[derive(Debug)]
pub(super) struct Record {
    /// Cluster that wrote it, as it says.
    pub(super) cluster: String,
    /// Whether it offers a Service, and has not taken it back.
    pub(super) offers_service: bool,
    pub(super) entry: Entry,
}

/// An object with conditions.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) conditions: Vec<AntreaCondition>,
}

impl Set {
    pub(super) fn read(object: &DynamicObject) -> Self {
        Self {
            name: object.name_any(),
            cluster_id: text(object, "/spec/clusterID"),
            is_of_now: object.data.pointer("/status/observedGeneration").and_then(serde_json::Value::as_i64)
                == object.metadata.generation,
            server: text(object, "/spec/leaders/0/server"),
            conditions: conditions(object),
        }
    }
}

impl Noted {
    pub(super) fn read(note: &ConfigMap) -> Self {
        let data = note.data.as_ref();
        let text = |key: &str| data?.get(key).cloned();
        Self {
            cluster_set: text("clusterSet").unwrap_or_default(),
            cluster_id: text("clusterID"),
            server: text("server"),
            leaving: data.is_some_and(|data| data.contains_key(membership::LEAVE_KEY)),
        }
    }
}

impl Renewal {
    pub(super) fn read(lease: &Lease) -> Self {
        let says = |annotation: &str| lease.annotations().get(annotation).cloned();
        let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        Self {
            renewed: renewed.map(|time| time.0),
            version: says(label::VERSION),
            wire: says(label::WIRE),
            left: says(label::LEFT).as_deref() == Some(label::TRUE),
        }
    }
}

impl Record {
    pub(super) fn read(object: &DynamicObject) -> Self {
        let is_service = text(object, "/spec/kind").as_deref() == Some(api::resource_export::SERVICE);
        let withdrawn = object.data.pointer("/spec/service/withdrawn").and_then(Value::as_bool);
        Self {
            cluster: text(object, "/spec/clusterID").unwrap_or_default(),
            offers_service: is_service && withdrawn != Some(true),
            entry: Entry::read(object),
        }
    }
}

impl Entry {
    pub(super) fn read(object: &DynamicObject) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            conditions: conditions(object),
        }
    }
}

/// Whether a ResourceImport holds a merged Service.
pub(super) fn is_merged_service(object: &DynamicObject) -> bool {
    text(object, "/spec/kind").as_deref() == Some(api::resource_import::SERVICE_IMPORT)
}

/// ID of the cluster whose daemon holds the Lease `lease`, if it is a member's.
pub(super) fn member_of(lease: &str) -> Option<&str> {
    let id = lease.strip_prefix(label::MEMBER)?.strip_prefix('-')?;
    (name::member_lease(id) == lease && !id.is_empty()).then_some(id)
}

fn text(object: &DynamicObject, path: &str) -> Option<String> {
    let text = object.data.pointer(path)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Kubernetes' conditions and Antrea's are alike in all that is read here.
fn conditions(object: &DynamicObject) -> Vec<AntreaCondition> {
    let list = object.data.pointer("/status/conditions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|one| serde_json::from_value(one.clone()).ok()).collect()
}
