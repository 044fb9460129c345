//! Under a leader of Antrea's: what this cluster writes for it, and what it merged, told as a leader of ours would. Pure.
//!
//! Its records hold ports and endpoints, and taking one back is deleting it: its finalizer keeps it until the leader has seen that.
//! An import names nobody, so who takes part is read from the others' records of endpoints. That a record is not there is no
//! word of its cluster, so an import is never taken at its word for who is missing in it (`accepted` is left out).
//!
//! A record of endpoints is written once the leader has taken that of the Service: it would refuse it before, and it merges the
//! endpoints of a cluster whose ports it refused along with everybody else's.

use api::{
    ServiceName,
    antrea::{RECORD_FINALIZERS, endpoints_export, namesakes, service_export, service_import},
    resource_export::{ENDPOINTS, SERVICE, SUCCEEDED, ServicePayload},
    resource_import::{Exporter, ResourceImport, ResourceImportSpec, SERVICE_IMPORT},
    view::{Lenient, lean},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::all_endpoints;
use crate::identity::Identity;
use crate::service::{
    entry::{HubRecord, ServiceEntry},
    export::{Step, offer, record},
    view::OwnRecord,
};

/// An import of such a leader's.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceImport)]
pub struct AntreaImport {
    #[serde(deserialize_with = "lean")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Lenient<ResourceImportSpec>,
}

impl Part<ServiceName, ServiceEntry> for AntreaImport {
    fn key(&self) -> Option<ServiceName> {
        let spec = self.spec.0.as_ref().ok()?;
        let service = ServiceName::new(spec.namespace.clone()?, spec.name.clone()?);
        let is_service =
            spec.kind.as_deref() == Some(SERVICE_IMPORT) && self.name_any() == service_import(&service);
        (is_service && spec.service_import.is_some()).then_some(service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let was_gone = std::mem::replace(&mut entry.import_gone, false);
        let uid = self.metadata.uid.unwrap_or_default();
        let new = self.spec.0.ok().map(|spec| HubRecord { uid, spec });
        // Our records list their ports in the order of the import.
        Readers::ALL.when(std::mem::replace(&mut entry.hub_import, new.clone()) != new || was_gone)
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.hub_import = None;
        Readers::ALL
    }
}

/// The entry as controllers look at it: the import names those who take part, and `rival` has the names that our records need.
pub fn as_told(
    us: &str,
    service: &ServiceName,
    mut entry: ServiceEntry,
    rival: Option<ServiceName>,
) -> ServiceEntry {
    let offering = rival.is_none() && matches!(offer(us, service, &entry), Ok(Some(_)));
    let own = entry.own_service.as_ref().filter(|_| offering).map(|record| Exporter {
        cluster_id: us.to_owned(),
        observed: if has_succeeded(record) { record.version() } else { String::new() },
        ..Exporter::default()
    });
    let takes_part = |cluster: &String| entry.has_endpoints(cluster) && !entry.parts_gone.contains(cluster);
    let others = entry.antrea.keys().filter(|cluster| takes_part(cluster));
    let others = others.map(|cluster| Exporter { cluster_id: cluster.clone(), ..Exporter::default() });
    let exporters = others.chain(own).collect();
    if let Some(import) = &mut entry.hub_import {
        import.spec.exporters = Some(exporters);
    }
    ServiceEntry { accepted: None, rival, ..entry }
}

fn has_succeeded(record: &OwnRecord) -> bool {
    let said = record.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    said.iter().any(|c| c.type_.as_deref() == Some(SUCCEEDED) && c.status.as_deref() == Some("True"))
}

/// The Service of ours that has the names which this one's records need: of those that are offered, the oldest export.
pub fn rival(
    us: &str,
    service: &ServiceName,
    entry: &ServiceEntry,
    entry_of: impl Fn(&ServiceName) -> Option<ServiceEntry>,
) -> Option<ServiceName> {
    let ours = age(us, service, entry)?;
    let others = namesakes(service).into_iter().filter_map(|other| age(us, &other, &entry_of(&other)?));
    others.filter(|other| *other < ours).min().map(|(_, other)| other)
}

/// What exports are ordered by, if it is offered.
fn age(us: &str, service: &ServiceName, entry: &ServiceEntry) -> Option<(Option<Timestamp>, ServiceName)> {
    let offer = offer(us, service, entry).ok()??;
    Some((offer.service.exported_at.map(|time| time.0), service.clone()))
}

/// The steps towards the records that such a leader has to have of this cluster. One that is being deleted is waited for.
pub fn desired(us: &Identity, service: &ServiceName, entry: &ServiceEntry) -> Vec<Step> {
    let own = [&entry.own_service, &entry.own_endpoints];
    let offer = offer(&us.cluster, service, entry).unwrap_or_default().filter(|_| entry.rival.is_none());
    let Some(offer) = offer else {
        let there = own.into_iter().flatten().filter(|record| !is_going(record));
        return there.map(|record| Step::Delete { have: record.clone() }).collect();
    };
    let name = service_export(&us.cluster, service);
    let mut ours = record(us, service, SERVICE, name, |spec| {
        let service_spec =
            core::ServiceSpec { ports: Some(ports(offer.service, entry)), ..core::ServiceSpec::default() };
        spec.service = Some(ServicePayload { service_spec, ..ServicePayload::default() });
    });
    let name = endpoints_export(&us.cluster, service);
    let mut endpoints = record(us, service, ENDPOINTS, name, |spec| {
        spec.endpoints = Some(all_endpoints(&offer.slices));
    });
    for record in [&mut ours, &mut endpoints] {
        record.metadata.finalizers = Some(vec![RECORD_FINALIZERS[0].to_owned()]);
    }
    let has_service = entry.own_service.as_ref().is_some_and(has_succeeded);
    let wanted = [(true, ours), (has_service || entry.own_endpoints.is_some(), endpoints)];
    let steps = own
        .into_iter()
        .zip(wanted)
        .filter(|(have, (is_due, _))| *is_due && !have.as_ref().is_some_and(is_going));
    steps.map(|(have, (_, want))| Step::Put { have: have.clone(), want }).collect()
}

fn is_going(record: &OwnRecord) -> bool {
    record.metadata.deletion_timestamp.is_some()
}

/// Our ports, in the order that the import has them: such a leader takes another order for another Service.
fn ports(offered: ServicePayload, entry: &ServiceEntry) -> Vec<core::ServicePort> {
    let merged = entry.hub_import.as_ref().and_then(|import| import.spec.service_import.as_ref());
    let merged = merged.map(|merged| merged.spec.ports.as_slice()).unwrap_or_default();
    let place = |port: &core::ServicePort| {
        let is_it = |m: &api::mcs::ServicePort| {
            m.port == port.port
                && m.protocol.as_deref().unwrap_or("TCP") == port.protocol.as_deref().unwrap_or("TCP")
        };
        merged.iter().position(is_it).unwrap_or(merged.len())
    };
    let mut ports = offered.service_spec.ports.unwrap_or_default();
    ports.sort_by_key(place);
    ports
}

#[cfg(test)]
mod tests;
