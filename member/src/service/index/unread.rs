//! What of a Service is there, and what it says is not known.
//!
//! Most Services of a cluster are neither exported nor imported, and together with their endpoints they are most of what a member is
//! told. Of these it keeps the names, and reads the rest when one of them is exported (`service/reading.rs`).

use std::{collections::BTreeMap, sync::Arc};

use super::view::{Service, Slice};

/// The Service of a name, and its EndpointSlices in the order of their names: those of which only that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unread {
    service: bool,
    slices: Vec<Box<str>>,
}

impl Unread {
    /// Whether the Service is one of them.
    pub(crate) fn has_service(&self) -> bool {
        self.service
    }

    /// Names of the EndpointSlices.
    pub(crate) fn slices(&self) -> impl Iterator<Item = &str> {
        self.slices.iter().map(|name| &**name)
    }

    /// Keeps no more than the names of these.
    pub(super) fn add(
        &mut self,
        service: &mut Option<Arc<Service>>,
        slices: &mut BTreeMap<String, Arc<Slice>>,
    ) {
        self.service |= service.take().is_some();
        for (name, _) in std::mem::take(slices) {
            if let Err(at) = self.at(&name) {
                self.slices.insert(at, name.into());
            }
        }
        self.slices.shrink_to_fit();
    }

    /// What these say is known.
    pub(super) fn take_out(&mut self, service: Option<&Arc<Service>>, slices: &BTreeMap<String, Arc<Slice>>) {
        self.service &= service.is_none();
        self.slices.retain(|name| !slices.contains_key(&**name));
    }

    /// The Service is not there any more.
    pub(super) fn forget_service(&mut self) {
        self.service = false;
    }

    /// The EndpointSlice is not there any more.
    pub(super) fn forget_slice(&mut self, name: &str) {
        if let Ok(at) = self.at(name) {
            self.slices.remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.service && self.slices.is_empty()
    }

    fn at(&self, name: &str) -> Result<usize, usize> {
        self.slices.binary_search_by(|known| (**known).cmp(name))
    }
}
