//! Signs that the leader is Freeport's: what only a member of ours writes to it, and what was imported from it.

use api::{
    label,
    mcs::ServiceImport,
    resource_export::{ENDPOINT_SLICE, ResourceExport},
    view::{Meta, Named},
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
    let imports = Api::<Meta<ServiceImport>>::all(access.env.client.clone());
    let imports = list::all(&imports, ours, |import| is_measured_by_ours(&import)).await;
    Ok(imports.map_err(|error| classify(&error))?.contains(&true))
}

fn is_measured_by_ours(import: &Meta<ServiceImport>) -> bool {
    let leader = import.annotations().get(label::HUB).filter(|leader| !leader.is_empty());
    leader.is_some_and(|leader| !leader.starts_with(label::HUB_OF_ANTREA))
}
