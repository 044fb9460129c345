//! The metadata of objects, reduced to what is used of it: everyone who may write an object may put times into its managedFields that
//! we cannot hold.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::label;

/// Decodes metadata without managedFields, annotations and owners: `#[serde(deserialize_with = "lean")]`.
pub fn lean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Lean::<BTreeMap<String, String>, Vec<String>>::deserialize(deserializer).map(Lean::into_meta)
}

/// [`lean`] of a record: of its labels those that say whose it is. Kubernetes bounds neither how many labels an object has nor their size
/// together, and in memory they take many times what they take on the wire.
pub fn sourced<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Lean::<SourceLabels, Vec<String>>::deserialize(deserializer).map(Lean::into_meta)
}

/// [`sourced`] without finalizers, of which there may be as many.
pub(super) fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Lean::<SourceLabels, IgnoredAny>::deserialize(deserializer).map(Lean::into_meta)
}

/// [`lean`] with annotations.
pub fn annotated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let all = Ours::deserialize(deserializer)?.into_meta();
    Ok(ObjectMeta { owner_references: None, managed_fields: None, ..all })
}

/// [`lean`] for kinds of which we make objects: of those that are ours also the owners, and which of our daemons wrote them.
pub fn ours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ours::deserialize(deserializer).map(|ours| ObjectMeta { annotations: None, ..ours.into_meta() })
}

/// [`ours`] with annotations.
pub fn ours_annotated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ours::deserialize(deserializer).map(Ours::into_meta)
}

/// [`lean`] without labels and finalizers, for what others write: nothing of them is kept but names and times.
pub fn unlabelled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Lean::<IgnoredAny, IgnoredAny>::deserialize(deserializer).map(Lean::into_meta)
}

/// [`annotated`] with the owners, whoever they are.
pub fn owned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let all = Ours::deserialize(deserializer)?;
    let owner_references = all.owner_references.clone();
    Ok(ObjectMeta { owner_references, managed_fields: None, ..all.into_meta() })
}

/// Reports whether the daemon `manager` wrote the object itself, and not only its status, whatever has become of its labels since. The
/// metadata is complete, or was decoded as [`ours`].
pub fn is_written_by(metadata: &ObjectMeta, manager: &str) -> bool {
    metadata.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    })
}

/// Not flattened from [`Lean`]: serde would keep what is skipped until all is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ours {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
    managed_fields: Option<Vec<Write>>,
}

/// Somebody's writes of an object.
#[derive(Deserialize)]
struct Write {
    manager: Option<String>,
    /// Not of the object itself, but for example of its status.
    subresource: Option<String>,
}

impl Ours {
    fn into_meta(self) -> ObjectMeta {
        let is_daemon = |write: &Write| {
            let manager = write.manager.as_deref();
            write.subresource.as_deref().unwrap_or_default().is_empty()
                && [label::MEMBER, label::LEADER].into_iter().any(|daemon| manager == Some(daemon))
        };
        let written = self.managed_fields.into_iter().flatten().filter(is_daemon);
        let mut written: Vec<_> = written.filter_map(|write| write.manager).collect();
        written.dedup();
        let labelled = self.labels.as_ref().and_then(|labels| labels.get(label::MANAGED_BY));
        let is_ours = !written.is_empty() || labelled.is_some_and(|by| by == label::FREEPORT);
        let by = |manager| ManagedFieldsEntry { manager: Some(manager), ..ManagedFieldsEntry::default() };
        let managed_fields: Vec<_> = written.into_iter().map(by).collect();
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            deletion_grace_period_seconds: self.deletion_grace_period_seconds,
            labels: self.labels,
            annotations: self.annotations,
            finalizers: self.finalizers,
            owner_references: self.owner_references.filter(|_| is_ours),
            managed_fields: Some(managed_fields).filter(|managed| !managed.is_empty()),
            ..ObjectMeta::default()
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lean<L, F> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<L>,
    finalizers: Option<F>,
}

impl<L: Kept<BTreeMap<String, String>>, F: Kept<Vec<String>>> Lean<L, F> {
    fn into_meta(self) -> ObjectMeta {
        ObjectMeta {
            name: self.name,
            namespace: self.namespace,
            uid: self.uid,
            resource_version: self.resource_version,
            generation: self.generation,
            creation_timestamp: self.creation_timestamp,
            deletion_timestamp: self.deletion_timestamp,
            labels: self.labels.and_then(L::kept),
            finalizers: self.finalizers.and_then(F::kept),
            ..ObjectMeta::default()
        }
    }
}

/// What is kept in memory of what was decoded.
trait Kept<T> {
    fn kept(self) -> Option<T>;
}

impl<T> Kept<T> for IgnoredAny {
    fn kept(self) -> Option<T> {
        None
    }
}

impl Kept<Self> for Vec<String> {
    fn kept(self) -> Option<Self> {
        Some(self)
    }
}

impl Kept<Self> for BTreeMap<String, String> {
    fn kept(self) -> Option<Self> {
        Some(self)
    }
}

/// The labels that say whose a record is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceLabels {
    #[serde(rename = "sourceClusterID")]
    source_cluster_id: Option<String>,
    source_namespace: Option<String>,
    source_name: Option<String>,
    source_kind: Option<String>,
}

impl Kept<BTreeMap<String, String>> for SourceLabels {
    fn kept(self) -> Option<BTreeMap<String, String>> {
        let all = [
            (label::SOURCE_CLUSTER_ID, self.source_cluster_id),
            (label::SOURCE_NAMESPACE, self.source_namespace),
            (label::SOURCE_NAME, self.source_name),
            (label::SOURCE_KIND, self.source_kind),
        ];
        Some(all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Made {
        #[serde(deserialize_with = "ours")]
        metadata: ObjectMeta,
    }

    #[test]
    fn what_we_wrote_is_known_without_labels_and_others_owners_are_skipped() {
        let owners = serde_json::json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
        let made = |managed: serde_json::Value| -> ObjectMeta {
            let metadata =
                serde_json::json!({"name": "a", "ownerReferences": owners, "managedFields": managed});
            serde_json::from_value::<Made>(serde_json::json!({"metadata": metadata})).unwrap().metadata
        };
        let ours = made(serde_json::json!([
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}},
            {"manager": label::MEMBER, "operation": "Update", "fieldsV1": {"f:spec": {}}},
        ]));
        assert!(is_written_by(&ours, label::MEMBER) && !is_written_by(&ours, label::LEADER));
        assert_eq!(ours.owner_references.unwrap().len(), 1);
        let status = made(serde_json::json!([{"manager": label::MEMBER, "subresource": "status"}]));
        assert!(!is_written_by(&status, label::MEMBER), "nothing but its status");
        assert_eq!(status.owner_references, None);
    }

    /// Issue 14, A4.
    #[test]
    fn a4_labels_of_a_record_that_say_nothing_take_no_memory() {
        #[derive(Deserialize)]
        struct Record {
            #[serde(deserialize_with = "sourced")]
            metadata: ObjectMeta,
        }
        let mut labels: BTreeMap<_, _> = (0..1000).map(|n| (format!("l{n}"), String::new())).collect();
        let said = [("sourceClusterID", "east"), ("sourceNamespace", "shop"), ("sourceName", "web")];
        labels.extend(said.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let record = serde_json::json!({"metadata": {"name": "r", "labels": labels}});
        let record: Record = serde_json::from_str(&record.to_string()).unwrap();
        let kept = record.metadata.labels.unwrap();
        assert_eq!(kept, said.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }
}
