//! What a member that runs Antrea's controllers exports of one Service.
//!
//! Such a member has one record with its Service and one with all its endpoints, and takes either back by deleting it. The
//! one record has all endpoints there are: no slice can be missing beside it.

use std::collections::BTreeMap;

use api::{endpoints::slices, resource_export::EndpointsPayload, slice::SlicePayload};
use k8s_openapi::api::core::v1::ServicePort;

/// Its two records, as far as they are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Peer {
    /// Name of the record with its Service, and the ports that has.
    pub(crate) service: Option<(String, Vec<ServicePort>)>,
    /// Name of the record with all endpoints, and these; none if they are taken back.
    pub(crate) endpoints: Option<(String, EndpointsPayload)>,
}

impl Peer {
    /// Its slices, by what a record of each would be called; `None` if a record is missing that it takes to know them.
    pub(crate) fn slices(&self) -> Option<BTreeMap<String, SlicePayload>> {
        let (record, payload) = self.endpoints.as_ref()?;
        let ports = match &self.service {
            Some((_, ports)) => ports.as_slice(),
            None if payload.subsets.is_empty() => &[],
            None => return None,
        };
        let named = |(number, slice)| match number {
            0 => (record.clone(), slice),
            _ => (format!("{record}#{number}"), slice),
        };
        Some(slices(payload, ports).ok()?.into_iter().enumerate().map(named).collect())
    }

    /// Whether there is a record of its endpoints.
    pub(crate) fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }

    /// Whether it is known what slices it has, be it none.
    pub(crate) fn is_complete(&self) -> bool {
        self.slices().is_some()
    }
}
