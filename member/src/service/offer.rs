//! What this cluster offers under one Service name, or why it offers nothing: pure.

pub(crate) mod record;
mod slices;
mod validity;

use std::collections::BTreeMap;

use api::{
    mcs::{ServicePort, SessionAffinityConfig},
    port,
    resource_export::{HEADLESS, ServicePayload},
    slice::SlicePayload,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;

pub(crate) use self::validity::{Invalid, still_exported};
use self::validity::{asked_for, excluded, exportable, no_service};
use crate::service::index::{known::Known, view::Service};

/// An export that can be made. Payloads are made when they are asked for.
pub(crate) struct Offer<'a> {
    known: &'a Known,
    local: &'a Service,
    /// What the ServiceExport asks for; the Service's own part is missing in it.
    asked: ServicePayload,
}

/// What this cluster offers under that name: nothing without a ServiceExport, and not everything can be exported.
pub(crate) fn offer(known: &Known) -> Result<Option<Offer<'_>>, Invalid> {
    let entry = &known.entry;
    let live = entry.export.as_deref().filter(|export| export.metadata.deletion_timestamp.is_none());
    let asked = match (live, still_exported(known.us(), entry)) {
        (Some(export), _) => asked_for(export),
        (None, Some(payload)) => Ok(payload),
        (None, None) => return Ok(None),
    };
    if known.namespace.excluded {
        return Err(excluded(&known.service.namespace));
    }
    let local = entry.service.as_deref().filter(|service| service.metadata.deletion_timestamp.is_none());
    let local = local.ok_or_else(|| no_service(&known.service))?;
    exportable(local, known)?;
    Ok(Some(Offer { known, local, asked: asked? }))
}

/// Whether this cluster offers something under that name.
pub(crate) fn is_offered(known: &Known) -> bool {
    matches!(offer(known), Ok(Some(_)))
}

impl Offer<'_> {
    /// When it was first exported: exports are ordered by that.
    pub(crate) fn exported_at(&self) -> Option<Timestamp> {
        self.asked.exported_at.as_ref().map(|time| time.0)
    }

    /// The Service record's payload: what other clusters need to know of the Service, as it is, whether the user or the API server
    /// set it.
    pub(crate) fn service(&self) -> ServicePayload {
        let spec = &self.local.spec;
        let client_ip = |config: &SessionAffinityConfig| {
            let timeout_seconds = config.client_ip.as_ref()?.timeout_seconds;
            Some(core::ClientIPConfig { timeout_seconds })
        };
        let service_spec = core::ServiceSpec {
            ports: Some(spec.ports.iter().map(exported_port).collect()),
            cluster_ip: spec.is_headless().then(|| HEADLESS.to_owned()),
            ip_families: Some(self.known.families(self.local)),
            session_affinity: spec.session_affinity.clone(),
            session_affinity_config: spec
                .session_affinity_config
                .as_ref()
                .map(|config| core::SessionAffinityConfig { client_ip: client_ip(config) }),
            internal_traffic_policy: spec.internal_traffic_policy.clone(),
            traffic_distribution: spec.traffic_distribution.clone(),
            ..core::ServiceSpec::default()
        };
        ServicePayload { service_spec, ..self.asked.clone() }
    }

    /// The slice records' payloads, by the records' names.
    pub(crate) fn slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::exported(self.known, self.local)
    }

    /// The slices of the Service here, which this cluster uses itself, by what records of them would be called.
    pub(crate) fn own_slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::own(self.known, self.local)
    }
}

fn exported_port(port: &ServicePort) -> core::ServicePort {
    core::ServicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: Some(port::protocol(port.protocol.as_deref()).to_owned()),
        app_protocol: port.app_protocol.clone(),
        port: port.port,
        ..core::ServicePort::default()
    }
}

#[cfg(test)]
pub(crate) mod fixture;
