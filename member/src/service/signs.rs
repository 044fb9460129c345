//! Signs that the leader is Freeport's: what only a member of ours writes to it, and what was imported from it.

use api::{
    label,
    mcs::ServiceImport,
    resource_export::{ENDPOINT_SLICE, ResourceExport},
    view::{Meta, Named, Written, is_written_by},
};
use kit::{
    failure::{Failure, classify},
    list,
};
use kube::{Api, ResourceExt, api::ListParams};

use crate::feature::Access;

/// Whether the Common Area has a slice record, or an import here was measured by a leader of ours.
pub(super) async fn of_freeport(access: &Access) -> Result<bool, Failure> {
    let slices = format!("{}={ENDPOINT_SLICE}", label::SOURCE_KIND);
    let records = Api::<Named<ResourceExport>>::namespaced(access.leader.clone(), &access.us.common_area);
    let records = records.list(&ListParams::default().limit(1).labels(&slices)).await;
    if !records.map_err(|error| classify(&error))?.items.is_empty() {
        return Ok(true);
    }
    let ours = ListParams::default().labels(&format!("{}={}", label::MANAGED_BY, label::FREEPORT));
    let imports = Api::<Meta<ServiceImport, Written>>::all(access.env.client.clone());
    let imports = list::all(&imports, ours, |import| is_measured_by_ours(&import)).await;
    Ok(imports.map_err(|error| classify(&error))?.contains(&true))
}

/// A copy of an import proves nothing: somebody may have made it from one of another ClusterSet.
fn is_measured_by_ours(import: &Meta<ServiceImport, Written>) -> bool {
    let leader = import.annotations().get(label::HUB).filter(|leader| !leader.is_empty());
    leader.is_some_and(|leader| !leader.starts_with(label::HUB_OF_ANTREA))
        && is_written_by(&import.metadata, label::MEMBER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_of_an_import_is_no_sign() {
        let is_sign = |manager: &str, leader: &str| {
            let made = json!([{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
            let annotations = json!({label::HUB: leader});
            let labels = json!({label::MANAGED_BY: label::FREEPORT});
            let metadata =
                json!({"name": "web", "annotations": annotations, "labels": labels, "managedFields": made});
            is_measured_by_ours(&serde_json::from_value(json!({ "metadata": metadata })).unwrap())
        };
        assert!(is_sign(label::MEMBER, "u1"));
        assert!(!is_sign("kubectl", "u1"));
        assert!(
            !is_sign(label::MEMBER, "") && !is_sign(label::MEMBER, &format!("{}x", label::HUB_OF_ANTREA))
        );
    }
}
