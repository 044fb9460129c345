//! What another program wrote with plain updates becomes what we applied. Otherwise a field that it wrote stays for ever: an apply that
//! leaves it out takes off only what was applied before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Error, Writer};

impl<D: Send + Sync + 'static> Writer<D> {
    /// Makes these managedFields those of the object, if it is still of the version that `object` has. The server's answer.
    pub async fn manage<P>(&self, object: &P, fields: Vec<ManagedFieldsEntry>) -> Result<P, Error>
    where
        P: Resource<DynamicType = D> + DeserializeOwned,
    {
        let metadata = json!({"managedFields": fields, "resourceVersion": object.resource_version()});
        self.merge(object, None, json!({ "metadata": metadata })).await
    }
}

/// The managedFields of the object, as if `manager` had applied what `former` managers updated; none where they updated nothing.
pub fn taken_over<P: Resource>(have: &P, manager: &str, former: &[&str]) -> Option<Vec<ManagedFieldsEntry>> {
    let entries = have.meta().managed_fields.iter().flatten().cloned();
    let (taken, mut all): (Vec<_>, Vec<_>) = entries.partition(|entry| is_update_by(entry, former));
    if taken.is_empty() {
        return None;
    }
    for entry in taken {
        let is_ours = |ours: &&mut ManagedFieldsEntry| {
            ours.manager.as_deref() == Some(manager)
                && ours.operation.as_deref() == Some(APPLY)
                && ours.api_version == entry.api_version
                && is_whole(ours)
        };
        match all.iter_mut().find(is_ours) {
            Some(ours) => ours.fields_v1 = union(ours.fields_v1.take(), entry.fields_v1),
            None => all.push(ManagedFieldsEntry {
                manager: Some(manager.to_owned()),
                operation: Some(APPLY.to_owned()),
                ..entry
            }),
        }
    }
    Some(all)
}

const APPLY: &str = "Apply";

fn is_update_by(entry: &ManagedFieldsEntry, managers: &[&str]) -> bool {
    let is_by = entry.manager.as_deref().is_some_and(|manager| managers.contains(&manager));
    is_by && entry.operation.as_deref() == Some("Update") && is_whole(entry)
}

/// Not of a subresource.
fn is_whole(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn union(ours: Option<FieldsV1>, more: Option<FieldsV1>) -> Option<FieldsV1> {
    let (Some(FieldsV1(mut ours)), Some(FieldsV1(more))) = (ours.clone(), more.clone()) else {
        return ours.or(more);
    };
    add(&mut ours, more);
    Some(FieldsV1(ours))
}

fn add(ours: &mut Value, more: Value) {
    if let (Value::Object(ours), Value::Object(more)) = (ours, more) {
        more.into_iter().for_each(|(field, more)| add(ours.entry(field).or_insert(json!({})), more));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn taken(entries: &Value) -> Option<Value> {
        let have: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "x", "managedFields": entries}})).unwrap();
        taken_over(&have, "us", &["former", "us"]).map(|all| json!(all))
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"apiVersion": "v1", "manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn c1_what_was_updated_becomes_applied_and_others_keep_theirs() {
        let theirs = entry("theirs", "Update", &json!({"f:data": {"f:theirs": {}}}));
        let mut status = entry("former", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let former =
            |operation| entry("former", operation, &json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let ours = entry("us", "Apply", &json!({"f:data": {"f:b": {"f:x": {}}, "f:c": {}}}));
        let both = json!({"f:data": {".": {}, "f:a": {}, "f:b": {"f:x": {}}, "f:c": {}}});
        assert_eq!(
            taken(&json!([theirs, former("Update"), status, ours])),
            Some(json!([theirs, status, entry("us", "Apply", &both)]))
        );
        let alone = entry("us", "Apply", &json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        assert_eq!(taken(&json!([former("Update")])), Some(json!([alone])));
        assert_eq!(taken(&json!([theirs, former("Apply"), status, ours])), None);
    }

    #[test]
    fn fields_of_another_version_are_not_mixed() {
        let mut former = entry("former", "Update", &json!({"f:a": {}}));
        former["apiVersion"] = json!("v2");
        let mut taken_over = former.clone();
        (taken_over["manager"], taken_over["operation"]) = (json!("us"), json!("Apply"));
        let ours = entry("us", "Apply", &json!({"f:b": {}}));
        assert_eq!(taken(&json!([former, ours])), Some(json!([ours, taken_over])));
    }
}
