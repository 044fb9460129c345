//! Objects of this cluster.

use api::{ServiceName, label, name};
use kit::index::{Part, Readers};
use kube::{Resource, ResourceExt};

use super::{import, insert, replace, replace_with_status};
use crate::service::index::{
    EXPORT, IMPORT, STATUS,
    endpoints::CoreEndpoints,
    entry::{NamespaceEntry, ServiceEntry},
    view::{Derived, Export, Import, Namespace, Service, Slice, SlicePort, is_imported},
};

fn own_name<T: Resource>(object: &T) -> Option<ServiceName> {
    Some(ServiceName::new(object.namespace()?, object.name_any()))
}

impl Part<ServiceName, ServiceEntry> for Service {
    fn key(&self) -> Option<ServiceName> {
        own_name(self)
    }

    fn put(mut self, entry: &mut ServiceEntry) -> Readers {
        // The rest is read only of Services that we make.
        self.spec.never = self.spec.never.of_a_users_service();
        let changed = replace(&mut entry.service, self);
        EXPORT.and(STATUS).and(import(entry)).when(changed && entry.is_exported())
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.service = None;
        entry.not_kept.iter_mut().for_each(|unread| unread.forget_service());
        EXPORT.and(STATUS).and(import(entry)).when(entry.is_exported())
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
        (entry.unexported, entry.export_went) = (None, false);
        let differs = replace_with_status(&mut entry.export, self, |export| &mut export.status);
        // The status is read only to write the next one.
        EXPORT.and(import(entry)).when(differs.content).and(STATUS.when(differs.any()))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        (entry.export, entry.export_went) = (None, true);
        EXPORT.and(STATUS).and(import(entry))
    }
}

impl Part<ServiceName, ServiceEntry> for Derived {
    fn key(&self) -> Option<ServiceName> {
        Some(ServiceName::new(self.namespace()?, name::import_of(&self.name_any(), import_label(self))?))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        IMPORT.when(replace(&mut entry.derived, self.service))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.derived = None;
        IMPORT
    }
}

impl Part<ServiceName, ServiceEntry> for CoreEndpoints {
    fn key(&self) -> Option<ServiceName> {
        let of = self.labels().get(label::MCS_SERVICE_NAME)?;
        (name::imported_service(of) == self.name_any()).then_some(ServiceName::new(self.namespace()?, of))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        IMPORT.when(replace(&mut entry.imported_endpoints, self))
    }

    fn take(entry: &mut ServiceEntry, _: &str) -> Readers {
        entry.imported_endpoints = None;
        IMPORT
    }
}

impl Part<ServiceName, ServiceEntry> for Slice {
    fn key(&self) -> Option<ServiceName> {
        let name = self.name_any();
        // What can be changed does not count where the name says it.
        let of = match name::service_of_slice(&name).filter(|_| is_imported(self)) {
            Some(service) => name::import_of(service, import_label(self))?,
            None => self.labels().get(label::SERVICE_NAME)?,
        };
        Some(ServiceName::new(self.namespace()?, of))
    }

    fn put(self, entry: &mut ServiceEntry) -> Readers {
        let name = self.name_any();
        if is_imported(&self) {
            let readers = take_source(entry, &name);
            return readers.and(IMPORT.when(insert(&mut entry.imported_slices, self)));
        }
        let was_imported = entry.imported_slices.remove(&name).is_some();
        let before = entry.slices.get(&name).cloned();
        let changed = insert(&mut entry.slices, self);
        let matters = before.as_deref().map(outline) != entry.slices.get(&name).map(|slice| outline(slice));
        source_readers(entry, matters).when(changed).and(IMPORT.when(was_imported))
    }

    fn take(entry: &mut ServiceEntry, name: &str) -> Readers {
        entry.slices_gone.remove(name);
        let was_imported = entry.imported_slices.remove(name).is_some();
        take_source(entry, name).and(IMPORT.when(was_imported))
    }
}

/// Takes an EndpointSlice of the Service itself out.
fn take_source(entry: &mut ServiceEntry, name: &str) -> Readers {
    entry.not_kept.iter_mut().for_each(|unread| unread.forget_slice(name));
    let was_there = entry.slices.remove(name).is_some();
    source_readers(entry, true).when(was_there)
}

/// Who reads the EndpointSlices of the Service; the status where it `matters` to it.
fn source_readers(entry: &ServiceEntry, matters: bool) -> Readers {
    EXPORT.and(import(entry)).and(STATUS.when(matters)).when(entry.is_exported())
}

/// What of an EndpointSlice matters to the status of an export: which families an export has may depend on it, and so whether it is valid;
/// and whether an endpoint can answer.
fn outline(slice: &Slice) -> (&str, bool, bool, &[SlicePort]) {
    let is_ready = slice.endpoints.iter().any(|endpoint| endpoint.shared.is_ready());
    (&slice.address_type, slice.endpoints.is_empty(), is_ready, &slice.ports)
}

/// The import that an object is of, as its label says.
fn import_label<T: Resource>(object: &T) -> Option<&str> {
    object.labels().get(label::MCS_SERVICE_NAME).map(String::as_str)
}

impl Part<String, NamespaceEntry> for Namespace {
    fn key(&self) -> Option<String> {
        Some(self.name_any())
    }

    fn put(self, entry: &mut NamespaceEntry) -> Readers {
        let new = NamespaceEntry {
            exists: true,
            active: self.metadata.deletion_timestamp.is_none(),
            excluded: self.labels().get(label::EXPORT).is_some_and(|export| export == label::FALSE),
            created: self.metadata.creation_timestamp.as_ref().map(|created| created.0),
        };
        let old = std::mem::replace(entry, new);
        IMPORT.when(old != new).and(EXPORT.and(STATUS).when(old.excluded != new.excluded))
    }

    fn take(entry: &mut NamespaceEntry, _: &str) -> Readers {
        let old = std::mem::take(entry);
        IMPORT.and(EXPORT.and(STATUS).when(old.excluded))
    }
}
