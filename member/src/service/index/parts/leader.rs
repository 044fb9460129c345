//! Objects of the Common Area.

use std::sync::Arc;

use api::{
    ServiceName,
    antrea::{Members, RECORD_FINALIZERS},
    label, name,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
    slice::SlicePayload,
};
use kit::index::{Part, Readers};
use kube::ResourceExt;

use super::{import, replace_with_status, status};
use crate::service::index::{
    EXPORT, IMPORT, STATUS,
    entry::{LeaderRecord, ServiceEntry},
    view::{LeaderImport, OwnRecord, PeerSlice},
};

/// Our records are ours by their labels, so that even one that does not decode is found and put right. One that Antrea's finalizer
/// holds has Antrea's names.
impl Part<ServiceName, ServiceEntry> for OwnRecord {
    fn key(&self) -> Option<ServiceName> {
        let labels = self.labels();
        let service = ServiceName::new(labels.get(label::SOURCE_NAMESPACE)?, labels.get(label::SOURCE_NAME)?);
        let cluster = labels.get(label::SOURCE_CLUSTER_ID)?;
        let is_antreas = self.finalizers().iter().any(|held| RECORD_FINALIZERS.contains(&held.as_str()));
        let names = if is_antreas { Members::everyone() } else { Members::default() };
        let named = match labels.get(label::SOURCE_KIND)?.as_str() {
            SERVICE => self.name_any() == names.service_export(cluster, &service),
            ENDPOINT_SLICE => name::is_slice_export(&self.name_any(), cluster, &service),
            ENDPOINTS => self.name_any() == names.endpoints_export(cluster, &service),
            _ => false,
        };
        named.then_some(service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        match self.labels().get(label::SOURCE_KIND).map(String::as_str) {
            Some(SERVICE) => put_service(self, entry),
            Some(ENDPOINTS) => {
                let differs =
                    replace_with_status(&mut entry.own_endpoints, self, |record| &mut record.status);
                EXPORT.when(differs.content)
            }
            _ => {
                let name = self.name_any();
                let mut place = entry.own_slices.remove(&name);
                let had = place.as_deref().and_then(OwnRecord::failure).cloned();
                let differs = replace_with_status(&mut place, self, |record| &mut record.status);
                let fails_otherwise = place.as_deref().and_then(OwnRecord::failure) != had.as_ref();
                entry.own_slices.extend(place.map(|record| (name, record)));
                EXPORT.when(differs.content).and(status(entry).when(fails_otherwise))
            }
        }
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        let of_endpoints =
            [entry.own_slices.remove(name), entry.own_endpoints.take_if(|record| record.name_any() == name)];
        if of_endpoints.iter().any(Option::is_some) {
            let failed = of_endpoints.iter().flatten().any(|record| record.failure().is_some());
            return EXPORT.and(status(entry).when(failed));
        }
        entry.own_service.take_if(|record| record.name_any() == name);
        EXPORT.and(STATUS).and(import(entry))
    }
}

fn put_service(record: OwnRecord, entry: &mut ServiceEntry) -> Readers {
    let is_antreas = !record.finalizers().is_empty();
    // What cannot be read takes nothing back.
    if let Some(payload) = record.spec.0.as_ref().ok().and_then(|spec| spec.service.as_ref()) {
        let is_withdrawn = payload.withdrawn || is_antreas && record.metadata.deletion_timestamp.is_some();
        entry.last_exported = (!is_withdrawn).then(|| Arc::new(payload.clone()));
    }
    let is_new = entry.own_service.is_none();
    let differs = replace_with_status(&mut entry.own_service, record, |record| &mut record.status);
    // Under a leader of Antrea's the record of endpoints waits until the leader has taken this one.
    let export = EXPORT.when(differs.content || is_antreas && differs.status);
    // Without a ServiceExport the record says what is exported; under a leader of Antrea's, that we take part.
    let import = import(entry).when(entry.export.is_none() && differs.content || is_antreas && is_new);
    export.and(import).and(STATUS.when(differs.any()))
}

impl Part<ServiceName, ServiceEntry> for PeerSlice {
    fn key(&self) -> Option<ServiceName> {
        self.of.as_ref().map(|(_, service)| service.clone())
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let name = self.name_any();
        let imported_name = imported_name(&name);
        let was_gone = entry.slices_gone.remove(&imported_name);
        let changed = match (self.of, self.payload) {
            (Some((cluster, _)), Some(payload)) => {
                let was_refused = entry.slices_refused.remove(&imported_name);
                let slices = entry.peers.entry(cluster).or_default();
                let is_same = slices.get(&name).is_some_and(|had| **had == payload);
                slices.insert(name, Arc::new(payload));
                !is_same || was_refused
            }
            _ => {
                let was_there = remove(entry, &name).is_some();
                entry.slices_refused.insert(imported_name) || was_there
            }
        };
        import(entry).when(changed || was_gone)
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        // A slice that was emptied before it went did not just vanish, however quickly it went.
        let taken = remove(entry, name);
        let imported = imported_name(name);
        entry.slices_refused.remove(&imported);
        if taken.is_some_and(|payload| payload.endpoints.is_empty())
            && entry.imported_slices.contains_key(&imported)
        {
            entry.slices_gone.insert(imported);
        }
        import(entry)
    }
}

fn remove(entry: &mut ServiceEntry, record: &str) -> Option<Arc<SlicePayload>> {
    let removed = entry.peers.values_mut().find_map(|slices| slices.remove(record));
    entry.peers.retain(|_, slices| !slices.is_empty());
    removed
}

/// What a slice record `<id>.<ns>.<service>.slice.<hash>` is imported as.
fn imported_name(record: &str) -> String {
    name::imported_slice(record.rsplit('.').nth(2).unwrap_or_default(), record)
}

impl Part<ServiceName, ServiceEntry> for LeaderImport {
    fn key(&self) -> Option<ServiceName> {
        // Its name says it, whatever somebody makes of the spec until the leader puts it right.
        let (service, spec) = (name::of_service_import(&self.name_any())?, self.spec.0.as_ref().ok()?);
        (spec.service_import.is_some() && spec.exporters.is_some()).then_some(service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let was_gone = std::mem::replace(&mut entry.import_gone, false);
        if std::mem::take(&mut entry.taken_back) {
            let parts = entry.parts();
            entry.parts_gone.extend(parts);
        }
        let uid = self.metadata.uid.unwrap_or_default();
        let created = self.metadata.creation_timestamp.map(|time| time.0);
        let new = self.spec.0.ok().map(|spec| Arc::new(LeaderRecord { uid, created, spec }));
        let named = new.iter().flat_map(|new| new.spec.exporters.iter().flatten());
        for exporter in named {
            entry.parts_gone.remove(&exporter.cluster_id);
        }
        let changed = entry.leader_import != new;
        entry.leader_import = new;
        IMPORT.and(status(entry)).when(changed || was_gone)
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        // An import that named nobody before it went did not just vanish, however quickly it went.
        let Some(import) = entry.leader_import.take() else { return Readers::NONE };
        let nobody = import.spec.exporters.as_ref().is_some_and(Vec::is_empty);
        if nobody && entry.is_measured(&import) {
            (entry.import_gone, entry.taken_back) = (true, true);
        }
        IMPORT.and(status(entry))
    }
}
