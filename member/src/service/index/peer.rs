//! What a member that runs Antrea's controllers exports of one Service.
//!
//! Such a member has one record with its Service and one with all its endpoints, and takes either back by deleting it. The
//! one record has all endpoints there are: no slice can be missing beside it.

use std::{collections::BTreeMap, sync::Arc};

use api::{endpoints::slices, resource_export::EndpointsPayload, slice::SlicePayload};
use k8s_openapi::api::core::v1::ServicePort;

/// Its two records, as far as they are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Peer {
    /// Name of the record with its Service, and the ports that has; nothing where the record is refused.
    pub(crate) service: Option<(String, Option<Vec<ServicePort>>)>,
    /// Name of the record with all endpoints, and these; none if they are taken back, and nothing where the record is refused.
    pub(crate) endpoints: Option<(String, Option<EndpointsPayload>)>,
}

impl Peer {
    /// Its slices, by what a record of each would be called; `None` if a record is missing that it takes to know them.
    pub(crate) fn slices(&self) -> Option<BTreeMap<String, Arc<SlicePayload>>> {
        let (record, payload) = self.endpoints.as_ref()?;
        let payload = payload.as_ref()?;
        let ports = match &self.service {
            Some((_, ports)) => ports.as_deref()?,
            None if payload.subsets.is_empty() => &[],
            None => return None,
        };
        let named = |(number, slice)| match number {
            0 => (record.clone(), Arc::new(slice)),
            _ => (format!("{record}#{number}"), Arc::new(slice)),
        };
        Some(slices(payload, ports).ok()?.into_iter().enumerate().map(named).collect())
    }

    /// Whether there is a record of its endpoints.
    pub(crate) fn has_endpoints(&self) -> bool {
        self.endpoints.is_some()
    }

    /// Whether one of them is there and refused: it is not valid, or there are too many. Then what is imported stays as it is.
    pub(crate) fn is_refused(&self) -> bool {
        self.service.as_ref().is_some_and(|(_, ports)| ports.is_none())
            || self.endpoints.as_ref().is_some_and(|(_, payload)| payload.is_none())
    }

    /// Whether it is known what slices it has, be it none.
    pub(crate) fn is_complete(&self) -> bool {
        self.slices().is_some()
    }
}
