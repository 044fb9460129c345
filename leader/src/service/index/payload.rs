//! Whether every importer's API server would take what a record says of endpoints: pure.

use api::{resource_export::EndpointsPayload, resource_import::Objection, slice::SlicePayload};

/// Whether these can be the endpoints of a Service.
pub(super) fn check_endpoints(payload: &EndpointsPayload) -> Result<(), Objection> {
    let slices = api::endpoints::slices(payload, &[]);
    slices.map(drop).map_err(|error| Objection::new("InvalidEndpoints", error))
}

/// Whether this can be a slice.
pub(super) fn check_slice(payload: &SlicePayload) -> Result<(), Objection> {
    payload.check().map_err(|error| Objection::new("InvalidSlice", error))
}
