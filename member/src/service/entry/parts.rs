//! How each watched kind lies in an entry, and to which entry an object of it belongs.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    antrea::{Members, RECORD_FINALIZERS},
    label, name,
    resource_export::{ENDPOINT_SLICE, ENDPOINTS, SERVICE},
    resource_import::SERVICE_IMPORT,
};
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt};

use super::{EXPORT, HubRecord, IMPORT, NamespaceEntry, STATUS, ServiceEntry};
use crate::service::{
    import::belief::{is_measured, parts},
    view::{Derived, Export, HubImport, Import, Namespace, OwnRecord, PeerSlice, Service, Slice},
};

/// Puts `new` into `place`; whether that says something else, other than a new version of the same.
fn replace<T: Resource + PartialEq>(place: &mut Option<T>, new: T) -> bool {
    let version = new.resource_version();
    let unchanged = place.as_mut().is_some_and(|old| {
        old.meta_mut().resource_version = version;
        *old == new
    });
    *place = Some(new);
    !unchanged
}

fn insert<T: Resource + PartialEq>(map: &mut BTreeMap<String, T>, new: T) -> bool {
    let name = new.name_any();
    let mut place = map.remove(&name);
    let changed = replace(&mut place, new);
    map.extend(place.map(|new| (name, new)));
    changed
}

fn own_name<T: Resource>(object: &T) -> Option<ServiceName> {
    Some(ServiceName::new(object.namespace()?, object.name_any()))
}

impl Part<ServiceName, ServiceEntry> for Service {
    fn key(&self) -> Option<ServiceName> {
        own_name(self)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let changed = replace(&mut entry.service, self);
        Readers::ALL.when(changed && entry.is_exported())
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.service = None;
        Readers::ALL.when(entry.is_exported())
    }
}

impl Part<ServiceName, ServiceEntry> for Import {
    fn key(&self) -> Option<ServiceName> {
        own_name(self)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        IMPORT.when(replace(&mut entry.import, self))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.import = None;
        IMPORT
    }
}

impl Part<ServiceName, ServiceEntry> for Export {
    fn key(&self) -> Option<ServiceName> {
        own_name(self)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        entry.unexported = None;
        Readers::ALL.when(replace(&mut entry.export, self))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.export = None;
        Readers::ALL
    }
}

impl Part<ServiceName, ServiceEntry> for Derived {
    fn key(&self) -> Option<ServiceName> {
        // A long name was shortened; then only the label tells of which Service it is.
        let name = self.name_any();
        let labelled = self.labels().get(label::MCS_SERVICE_NAME).map(String::as_str);
        let of = labelled.filter(|of| name::imported_service(of) == name);
        Some(ServiceName::new(self.namespace()?, of.or_else(|| name.strip_prefix(label::IMPORTED_PREFIX))?))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        IMPORT.when(replace(&mut entry.derived, self.service))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.derived = None;
        IMPORT
    }
}

impl Part<ServiceName, ServiceEntry> for Slice {
    fn key(&self) -> Option<ServiceName> {
        let of = if is_imported(self) { label::MCS_SERVICE_NAME } else { label::SERVICE_NAME };
        Some(ServiceName::new(self.namespace()?, self.labels().get(of)?))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let name = self.name_any();
        if is_imported(&self) {
            let was = entry.slices.remove(&name).is_some();
            IMPORT.when(insert(&mut entry.imported_slices, self)).and(Readers::ALL.when(was))
        } else {
            let was = entry.imported_slices.remove(&name).is_some();
            let types = address_types(entry);
            let changed = insert(&mut entry.slices, self);
            // Which families an export has may depend on its endpoints, but on nothing else of them.
            let readers = EXPORT.and(IMPORT).and(STATUS.when(types != address_types(entry)));
            readers.when(changed && entry.is_exported()).and(Readers::ALL.when(was))
        }
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        entry.slices.remove(name);
        entry.imported_slices.remove(name);
        entry.slices_gone.remove(name);
        Readers::ALL
    }
}

fn address_types(entry: &ServiceEntry) -> BTreeSet<String> {
    entry.slices.values().map(|slice| slice.address_type.clone()).collect()
}

fn is_imported(slice: &Slice) -> bool {
    slice.labels().get(label::SLICE_MANAGED_BY).is_some_and(|by| by == label::FREEPORT)
}

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
            Some(SERVICE) => {
                let says = self.spec.0.as_ref().ok().and_then(|spec| spec.service.clone());
                entry.said = says.filter(|service| !service.withdrawn);
                let is_antreas = !self.finalizers().is_empty();
                // Imports follow a record only where nothing else tells what is exported, and under a leader of Antrea's.
                let import = IMPORT.when(is_antreas || entry.export.is_none());
                EXPORT.and(STATUS).and(import).when(replace(&mut entry.own_service, self))
            }
            Some(ENDPOINTS) => EXPORT.when(replace(&mut entry.own_endpoints, self)),
            _ => EXPORT.when(insert(&mut entry.own_slices, self)),
        }
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        let slice = entry.own_slices.remove(name).is_some();
        for place in [&mut entry.own_service, &mut entry.own_endpoints] {
            place.take_if(|record| record.name_any() == name);
        }
        if slice { EXPORT } else { Readers::ALL }
    }
}

impl PeerSlice {
    /// Who says it, about which Service; `None` when the record says nothing we can take at its word.
    fn tuple(&self) -> Option<(&str, ServiceName)> {
        let spec = self.spec.0.as_ref().ok()?;
        spec.endpoint_slice.as_ref()?.check().ok()?;
        let cluster = spec.cluster_id.as_deref()?;
        let service = ServiceName::new(spec.namespace.clone()?, spec.name.clone()?);
        let labelled = self.labels().get(label::SOURCE_CLUSTER_ID).is_some_and(|id| id == cluster);
        (labelled && name::is_slice_export(&self.name_any(), cluster, &service)).then_some((cluster, service))
    }
}

impl Part<ServiceName, ServiceEntry> for PeerSlice {
    fn key(&self) -> Option<ServiceName> {
        self.tuple().map(|(_, service)| service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let Some(cluster) = self.tuple().map(|(cluster, _)| cluster.to_owned()) else {
            return Readers::NONE;
        };
        let name = self.name_any();
        let Some(payload) = self.spec.0.ok().and_then(|spec| spec.endpoint_slice) else {
            return Readers::NONE;
        };
        entry.slices_gone.remove(&imported_name(&name));
        let slices = entry.peers.entry(cluster).or_default();
        IMPORT.when(slices.insert(name, payload.clone()) != Some(payload))
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        // A slice that was emptied before it went did not just vanish, however quickly it went.
        let taken = entry.peers.values_mut().find_map(|slices| slices.remove(name));
        let imported = imported_name(name);
        if taken.is_some_and(|payload| payload.endpoints.is_empty())
            && entry.imported_slices.contains_key(&imported)
        {
            entry.slices_gone.insert(imported);
        }
        entry.peers.retain(|_, slices| !slices.is_empty());
        IMPORT
    }
}

/// What a slice record `<id>.<ns>.<service>.slice.<hash>` is imported as.
fn imported_name(record: &str) -> String {
    name::imported_slice(record.rsplit('.').nth(2).unwrap_or_default(), record)
}

impl Part<ServiceName, ServiceEntry> for HubImport {
    fn key(&self) -> Option<ServiceName> {
        let spec = self.spec.0.as_ref().ok()?;
        let service = ServiceName::new(spec.namespace.clone()?, spec.name.clone()?);
        let ours =
            spec.kind.as_deref() == Some(SERVICE_IMPORT) && self.name_any() == name::service_import(&service);
        (ours && spec.service_import.is_some() && spec.exporters.is_some()).then_some(service)
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let was_gone = std::mem::replace(&mut entry.import_gone, false);
        let uid = self.metadata.uid.unwrap_or_default();
        let new = self.spec.0.ok().map(|spec| HubRecord { uid, spec });
        let named = new.iter().flat_map(|new| new.spec.exporters.iter().flatten());
        for exporter in named {
            entry.parts_gone.remove(&exporter.cluster_id);
        }
        let changed = std::mem::replace(&mut entry.hub_import, new.clone()) != new;
        IMPORT.and(STATUS).when(changed || was_gone)
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        // An import that named nobody before it went did not just vanish, however quickly it went.
        let Some(import) = entry.hub_import.take() else { return Readers::NONE };
        let nobody = import.spec.exporters.as_ref().is_some_and(Vec::is_empty);
        if nobody && is_measured(entry, &import) {
            entry.import_gone = true;
            entry.parts_gone.extend(parts(entry));
        }
        IMPORT.and(STATUS)
    }
}

impl Part<String, NamespaceEntry> for Namespace {
    fn key(&self) -> Option<String> {
        Some(self.name_any())
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        let new = NamespaceEntry {
            there: true,
            active: self.metadata.deletion_timestamp.is_none(),
            excluded: self.labels().get(label::EXPORT).is_some_and(|export| export == label::FALSE),
        };
        Readers::ALL.when(std::mem::replace(entry, new) != new)
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        *entry = NamespaceEntry::default();
        Readers::ALL
    }
}
