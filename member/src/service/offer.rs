//! What this cluster offers under one Service name, and what keeps it from offering it as it is: pure.
//!
//! What cannot be exported as it is keeps its last valid export, which its record in the Common Area says: nothing else remembers it. Its
//! endpoints are followed. Only an end ends it ([`Invalid::is_end`]).

mod kept;
pub(crate) mod record;
mod slices;
mod unanswered;
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

use self::{
    kept::last_valid,
    validity::{asked_for, excluded, exportable, fits, present},
};
pub(crate) use self::{kept::still_exported, validity::Invalid};
use super::unanswered::Unanswered;
use crate::service::index::{known::Known, view::Service};

/// What this cluster exports under one Service name.
pub(crate) struct Offer<'a> {
    known: &'a Known,
    local: &'a Service,
    /// What other clusters need to know of the Service.
    payload: ServicePayload,
    /// The last valid export: its ServiceExport or its Service says something else by now.
    is_kept: bool,
}

/// What is exported, and what is wrong.
pub(crate) struct Offered<'a> {
    /// What is exported: as the last valid export where something is wrong.
    pub(crate) offer: Option<Offer<'a>>,
    /// Why the ServiceExport, or its Service, cannot be exported as it is.
    pub(crate) invalid: Option<Invalid>,
}

/// What this cluster offers under that name: nothing without a ServiceExport, and not everything can be exported.
pub(crate) fn offered(known: &Known) -> Offered<'_> {
    match as_it_is(known) {
        Ok(offer) => Offered { offer, invalid: None },
        Err(invalid) => {
            let local = known.entry.service.as_deref().filter(|_| !invalid.is_end);
            let kept = local.zip(last_valid(known));
            let offer = kept.map(|(local, payload)| Offer { known, local, payload, is_kept: true });
            Offered { offer, invalid: Some(invalid) }
        }
    }
}

/// What this cluster exports under that name.
pub(crate) fn offer(known: &Known) -> Option<Offer<'_>> {
    offered(known).offer
}

/// Whether this cluster offers something under that name.
pub(crate) fn is_offered(known: &Known) -> bool {
    offer(known).is_some()
}

/// What the ServiceExport and the Service ask for as they are. What ends an export goes before what only cannot be exported.
fn as_it_is(known: &Known) -> Result<Option<Offer<'_>>, Invalid> {
    let entry = &known.entry;
    let asked = match (entry.export.as_deref(), still_exported(known.us(), entry)) {
        (Some(export), _) => asked_for(export),
        (None, Some(payload)) => Ok(payload),
        (None, None) => return Ok(None),
    };
    let asked = match asked {
        Err(invalid) if invalid.is_end => return Err(invalid),
        asked => asked,
    };
    if known.namespace.excluded {
        return Err(excluded(&known.service.namespace));
    }
    let local = present(entry.service.as_deref(), &known.service)?;
    exportable(local, known)?;
    let payload = payload(local, known, asked?);
    fits(&payload)?;
    Ok(Some(Offer { known, local, payload, is_kept: false }))
}

/// The Service record's payload: what other clusters need to know of the Service, as it is, whether the user or the API server
/// set it.
fn payload(local: &Service, known: &Known, asked: ServicePayload) -> ServicePayload {
    let spec = &local.spec;
    let client_ip = |config: &SessionAffinityConfig| {
        let timeout_seconds = config.client_ip.as_ref()?.timeout_seconds;
        Some(core::ClientIPConfig { timeout_seconds })
    };
    let service_spec = core::ServiceSpec {
        ports: Some(spec.ports.iter().map(exported_port).collect()),
        cluster_ip: spec.is_headless().then(|| HEADLESS.to_owned()),
        ip_families: Some(known.families(local)),
        session_affinity: spec.session_affinity.clone(),
        session_affinity_config: spec
            .session_affinity_config
            .as_ref()
            .map(|config| core::SessionAffinityConfig { client_ip: client_ip(config) }),
        internal_traffic_policy: spec.internal_traffic_policy.clone(),
        traffic_distribution: spec.traffic_distribution.clone(),
        ..core::ServiceSpec::default()
    };
    ServicePayload { service_spec, ..asked }
}

impl Offer<'_> {
    /// When it was first exported: exports are ordered by that.
    pub(crate) fn exported_at(&self) -> Option<Timestamp> {
        self.payload.exported_at.as_ref().map(|time| time.0)
    }

    /// The Service record's payload.
    pub(crate) fn service(&self) -> ServicePayload {
        self.payload.clone()
    }

    /// The slice records' payloads, by the records' names.
    pub(crate) fn slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::exported(self)
    }

    /// The slices of the Service here, which this cluster uses itself, by what records of them would be called.
    pub(crate) fn own_slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::own(self)
    }

    /// Why no endpoint of it can answer; none if one can.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        unanswered::unanswered(self)
    }

    /// Ports that are exported.
    fn ports(&self) -> &[core::ServicePort] {
        self.payload.service_spec.ports.as_deref().unwrap_or_default()
    }

    /// The port of the Service that is this exported port, if it has that port still.
    fn local_port(&self, exported: &core::ServicePort) -> Option<&ServicePort> {
        let is_it = |local: &&ServicePort| {
            port::is_same(local.port, local.protocol.as_deref(), exported.port, exported.protocol.as_deref())
        };
        self.local.spec.ports.iter().find(is_it)
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
