//! How each watched kind lies in an entry, to which entry an object of it belongs, and who reads what.
//!
//! Every `put` and `take` says which controllers read what changed, and no others: the controller of exports reads what is exported
//! and our own records; that of imports what is exported, too, once the name is imported here; that of the status only whether a
//! Service can be exported, our Service record and what the leader says about it.

mod leader;
mod local;

use std::{collections::BTreeMap, sync::Arc};

use kit::index::Readers;
use kube::{Resource, ResourceExt};

use super::{IMPORT, STATUS, entry::ServiceEntry};

/// The controller of imports, where there is something to import or to remove.
fn import(entry: &ServiceEntry) -> Readers {
    let is_imported = entry.leader_import.is_some()
        || entry.import.is_some()
        || entry.derived.is_some()
        || !entry.imported_slices.is_empty();
    IMPORT.when(is_imported)
}

/// The controller of the status, where there is a ServiceExport to write it to.
fn status(entry: &ServiceEntry) -> Readers {
    STATUS.when(entry.export.is_some())
}

/// Puts `new` into `place`; whether that says something else, other than a new version of the same.
fn replace<T: Resource + PartialEq>(place: &mut Option<Arc<T>>, mut new: T) -> bool {
    let is_same = place.as_deref().is_some_and(|old| is_same(old, &mut new));
    *place = Some(Arc::new(new));
    !is_same
}

fn insert<T: Resource + PartialEq>(map: &mut BTreeMap<String, Arc<T>>, mut new: T) -> bool {
    let is_same = map.get(&new.name_any()).is_some_and(|old| is_same(&**old, &mut new));
    map.insert(new.name_any(), Arc::new(new));
    !is_same
}

/// Whether the new version of an object says what the old one says.
fn is_same<T: Resource + PartialEq>(old: &T, new: &mut T) -> bool {
    let version = std::mem::replace(&mut new.meta_mut().resource_version, old.resource_version());
    let is_same = old == new;
    new.meta_mut().resource_version = version;
    is_same
}

/// What a new version of an object says otherwise.
#[derive(Clone, Copy)]
struct Differs {
    /// Anything but its status.
    content: bool,
    status: bool,
}

impl Differs {
    fn any(self) -> bool {
        self.content || self.status
    }
}

/// [`replace`], which reports a new status by itself. `status` is where an object has it.
fn replace_with_status<T, S>(place: &mut Option<Arc<T>>, mut new: T, status: fn(&mut T) -> &mut S) -> Differs
where
    T: Resource + Clone + PartialEq,
    S: Default + PartialEq,
{
    let new_status = std::mem::take(status(&mut new));
    let mut old = place.take().map(Arc::unwrap_or_clone);
    let old_status = old.as_mut().map(|old| std::mem::take(status(old)));
    let is_same = old.is_some_and(|old| is_same(&old, &mut new));
    let differs = Differs { status: old_status.as_ref() != Some(&new_status), content: !is_same };
    *status(&mut new) = new_status;
    *place = Some(Arc::new(new));
    differs
}

#[cfg(test)]
mod tests;
