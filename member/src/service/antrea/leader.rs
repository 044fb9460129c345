//! Under a leader of Antrea's: the records this cluster writes for it, and what such a leader does not say of its imports. Pure.
//!
//! Its records hold ports and endpoints, and one is taken back by deleting it: its finalizer keeps it until the leader has seen that.
//! An import names nobody, so who takes part is read from the others' records of endpoints. A record that is not there does not say
//! that its cluster takes no part, so an import is never believed for who is missing in it.
//!
//! A record of endpoints is written once the leader has taken that of the Service: it would refuse it before, and it merges the
//! endpoints of a cluster whose ports it refused along with everybody else's.

use std::sync::Arc;

use api::{
    ServiceName,
    antrea::{RECORD_FINALIZERS, endpoints_export, namesakes, service_export, service_import},
    port,
    resource_export::{ENDPOINTS, SERVICE, SUCCEEDED, ServicePayload},
    resource_import::{Exporter, ResourceImport, ResourceImportSpec, SERVICE_IMPORT},
    view::{Lenient, lean},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use serde::Deserialize;

use super::peers::all_endpoints;
use crate::service::{
    index::{
        EXPORT, IMPORT, STATUS,
        entry::{LeaderRecord, ServiceEntry},
        known::Known,
        view::OwnRecord,
    },
    offer::{
        is_offered, offer,
        record::{Step, record},
    },
};

/// An import of such a leader's.
#[derive(Resource, Clone, Debug, Deserialize)]
#[resource(inherit = ResourceImport)]
pub(crate) struct AntreaImport {
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
        let created = self.metadata.creation_timestamp.map(|time| time.0);
        let new = self.spec.0.ok().map(|spec| Arc::new(LeaderRecord { uid, created, spec }));
        let is_new = entry.leader_import.is_none();
        // Our records list their ports in the order of the import.
        let other_ports =
            entry.leader_import.as_deref().map(merged_ports) != new.as_deref().map(merged_ports);
        let changed = entry.leader_import != new;
        entry.leader_import = new;
        IMPORT.when(changed || was_gone).and(EXPORT.when(other_ports)).and(STATUS.when(is_new))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.leader_import = None;
        EXPORT.and(IMPORT).and(STATUS)
    }
}

/// The ports that the leader merged, in their order.
fn merged_ports(import: &LeaderRecord) -> &[api::mcs::ServicePort] {
    import.spec.service_import.as_ref().map(|merged| merged.spec.ports.as_slice()).unwrap_or_default()
}

/// Who takes part in the import, if there is one: the other clusters that have a record of endpoints, and ours, unless it `is_rivalled`.
pub(crate) fn exporters(known: &Known, is_rivalled: bool) -> Vec<Exporter> {
    let entry = &known.entry;
    let is_offering = !is_rivalled && is_offered(known);
    let own = entry.own_service.as_deref().filter(|_| is_offering).map(|record| Exporter {
        cluster_id: known.us().to_owned(),
        observed: if has_succeeded(record) { record.version() } else { String::new() },
        ..Exporter::default()
    });
    let takes_part = |cluster: &String| entry.has_endpoints(cluster) && !entry.parts_gone.contains(cluster);
    let others = entry.antrea.keys().filter(|cluster| takes_part(cluster));
    let others = others.map(|cluster| Exporter { cluster_id: cluster.clone(), ..Exporter::default() });
    others.chain(own).collect()
}

fn has_succeeded(record: &OwnRecord) -> bool {
    let conditions = record.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|c| c.type_.as_deref() == Some(SUCCEEDED) && c.status.as_deref() == Some("True"))
}

/// The Service of ours that has the names which this one's records need: of those that are offered, the oldest export.
pub(crate) fn rival(known: &Known, other: impl Fn(&ServiceName) -> Option<Known>) -> Option<ServiceName> {
    let ours = age(known)?;
    let others = namesakes(&known.service).into_iter().filter_map(|name| age(&other(&name)?));
    others.filter(|other| *other < ours).min().map(|(_, other)| other)
}

/// What exports are ordered by, if it is offered.
fn age(known: &Known) -> Option<(Option<Timestamp>, ServiceName)> {
    Some((offer(known)?.exported_at(), known.service.clone()))
}

/// The steps towards the records that such a leader has to have of this cluster. One that is being deleted is waited for.
pub(crate) fn desired(known: &Known) -> Vec<Step> {
    let (us, service, entry) = (known.us(), &known.service, &known.entry);
    let own = [entry.own_service.as_deref(), entry.own_endpoints.as_deref()];
    let offer = offer(known).filter(|_| known.under_antrea.rival.is_none());
    let Some(offer) = offer else {
        let there = own.into_iter().flatten().filter(|record| !is_going(record));
        return there.map(|record| Step::Delete { have: record.clone() }).collect();
    };
    let mut own_service = record(known, SERVICE, service_export(us, service), |spec| {
        let ports = Some(ports(offer.service(), entry));
        let service_spec = core::ServiceSpec { ports, ..core::ServiceSpec::default() };
        spec.service = Some(ServicePayload { service_spec, ..ServicePayload::default() });
    });
    let mut endpoints = record(known, ENDPOINTS, endpoints_export(us, service), |spec| {
        spec.endpoints = Some(all_endpoints(&offer.slices()));
    });
    for record in [&mut own_service, &mut endpoints] {
        record.metadata.finalizers = Some(vec![RECORD_FINALIZERS[0].to_owned()]);
    }
    let has_service = entry.own_service.as_deref().is_some_and(has_succeeded);
    let wanted = [(true, own_service), (has_service || entry.own_endpoints.is_some(), endpoints)];
    let steps =
        own.into_iter().zip(wanted).filter(|(have, (is_due, _))| *is_due && !have.is_some_and(is_going));
    steps.map(|(have, (_, want))| Step::Put { have: have.cloned(), want }).collect()
}

fn is_going(record: &OwnRecord) -> bool {
    record.metadata.deletion_timestamp.is_some()
}

/// Our ports, in the order that the import has them: such a leader takes another order for another Service.
fn ports(offered: ServicePayload, entry: &ServiceEntry) -> Vec<core::ServicePort> {
    let merged = entry.leader_import.as_deref().map(merged_ports).unwrap_or_default();
    let place = |port: &core::ServicePort| {
        let is_it = |m: &api::mcs::ServicePort| {
            port::is_same(m.port, m.protocol.as_deref(), port.port, port.protocol.as_deref())
        };
        merged.iter().position(is_it).unwrap_or(merged.len())
    };
    let mut ports = offered.service_spec.ports.unwrap_or_default();
    ports.sort_by_key(place);
    ports
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a1_no_import_of_antreas_stops_a_list(odd in odd::anything(&[
            "namespace", "name", "type", "serviceImport", "spec", "ports", "port", "ips", "exporters", "sessionAffinityConfig",
        ])) {
            odd::everywhere::<AntreaImport>(&odd).unwrap();
        }
    }
}
