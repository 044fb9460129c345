//! What a cluster offers under one Service name, and what keeps it from offering it as it is.
//!
//! What cannot be exported as it is keeps its last valid export, and its endpoints are followed. Only an end ends it ([`Invalid::is_end`]).

mod slices;
mod unanswered;
mod validity;

use std::{collections::BTreeMap, sync::Arc};

use api::{
    ServiceName, family,
    mcs::{ServicePort, SessionAffinityConfig},
    port,
    resource_export::{HEADLESS, ServicePayload},
    slice::SlicePayload,
};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1 as core, apimachinery::pkg::apis::meta::v1::Time};

pub use self::validity::{Invalid, asked_for};
use self::validity::{excluded, exportable, fits, present};
use crate::{
    unanswered::Unanswered,
    view::{OwnRecord, Service, Slice},
};

/// A Service name in the cluster that exports it.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a> {
    /// ID of the cluster.
    pub cluster: &'a str,
    /// The name.
    pub name: &'a ServiceName,
    /// Whether the administrator excluded the Namespace from exporting.
    pub is_excluded: bool,
    /// The Service.
    pub service: Option<&'a Service>,
    /// Its EndpointSlices, by name.
    pub slices: &'a BTreeMap<String, Arc<Slice>>,
    /// Records of its slices as they are, by name.
    pub records: &'a BTreeMap<String, Arc<OwnRecord>>,
    /// EndpointSlices that are imported under the name, where they are all that shows what was exported.
    pub imported: Option<&'a BTreeMap<String, Arc<Slice>>>,
    /// Whether the member exports only ClusterIPs.
    pub only_cluster_ips: bool,
    /// Whether the leader is Antrea's.
    pub antrea_leads: bool,
    /// IP families that Services of the cluster can have, the preferred one first; none while they are not known.
    pub families: &'a [String],
}

impl Local<'_> {
    /// Families in which the Service is reached here. A headless one without a selector has both wherever it is: then those count
    /// that this cluster has, or in which there are endpoints, whoever wrote them.
    pub fn families(&self, service: &Service) -> Vec<String> {
        let all = family::said(&service.spec.ip_families);
        let is_here = |family: &String| {
            self.families.contains(family) || self.slices.values().any(|slice| slice.address_type == *family)
        };
        let here: Vec<_> = all.iter().filter(|family| is_here(family)).cloned().collect();
        if self.families.is_empty() || here.is_empty() { all } else { here }
    }
}

/// What a cluster exports under one Service name.
#[derive(Debug)]
pub struct Offer<'a> {
    local: Local<'a>,
    service: &'a Service,
    /// What other clusters need to know of the Service.
    payload: ServicePayload,
    /// The last valid export: its ServiceExport or its Service says something else by now.
    is_kept: bool,
}

/// What is exported, and what is wrong.
#[derive(Debug)]
pub struct Offered<'a> {
    /// What is exported: as the last valid export where something is wrong.
    pub offer: Option<Offer<'a>>,
    /// Why the ServiceExport, or its Service, cannot be exported as it is.
    pub invalid: Option<Invalid>,
}

/// What the cluster offers where that is `asked` for; nothing where nobody asks. `last_valid`: the last valid export.
pub fn offered<'a>(
    local: Local<'a>,
    asked: Option<Result<ServicePayload, Invalid>>,
    last_valid: impl FnOnce() -> Option<ServicePayload>,
) -> Offered<'a> {
    let Some(asked) = asked else { return Offered { offer: None, invalid: None } };
    match as_it_is(local, asked) {
        Ok(offer) => Offered { offer: Some(offer), invalid: None },
        Err(invalid) => {
            let service = local.service.filter(|_| !invalid.is_end);
            let kept = service.and_then(|service| Some((service, last_valid()?)));
            let offer = kept.map(|(service, payload)| Offer { local, service, payload, is_kept: true });
            Offered { offer, invalid: Some(invalid) }
        }
    }
}

/// The payload, if it is what was exported because of the ServiceExport that was `created` then: the deletion of an earlier one was an end,
/// also where nobody looked between that and the next one.
pub fn last_valid(payload: ServicePayload, created: Option<&Time>) -> Option<ServicePayload> {
    let is_of_it = |created: &Time| payload.exported_at.as_ref().is_some_and(|at| at.0 >= created.0);
    created.is_none_or(is_of_it).then_some(payload)
}

/// What the ServiceExport and the Service ask for as they are. What ends an export goes before what only cannot be exported.
fn as_it_is(local: Local<'_>, asked: Result<ServicePayload, Invalid>) -> Result<Offer<'_>, Invalid> {
    let asked = match asked {
        Err(invalid) if invalid.is_end => return Err(invalid),
        asked => asked,
    };
    if local.is_excluded {
        return Err(excluded(&local.name.namespace));
    }
    let service = present(local.service, local.name)?;
    exportable(service, &local)?;
    let payload = payload(service, &local, asked?);
    fits(&payload)?;
    Ok(Offer { local, service, payload, is_kept: false })
}

/// The Service record's payload: what other clusters need to know of the Service, as it is, whether the user or the API server
/// set it.
fn payload(service: &Service, local: &Local<'_>, asked: ServicePayload) -> ServicePayload {
    let spec = &service.spec;
    let client_ip = |config: &SessionAffinityConfig| {
        let timeout_seconds = config.client_ip.as_ref()?.timeout_seconds;
        Some(core::ClientIPConfig { timeout_seconds })
    };
    let service_spec = core::ServiceSpec {
        ports: Some(spec.ports.iter().map(exported_port).collect()),
        cluster_ip: spec.is_headless().then(|| HEADLESS.to_owned()),
        ip_families: Some(local.families(service)),
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
    pub fn exported_at(&self) -> Option<Timestamp> {
        self.payload.exported_at.as_ref().map(|time| time.0)
    }

    /// The Service record's payload.
    pub fn service(&self) -> ServicePayload {
        self.payload.clone()
    }

    /// The slice records' payloads, by the records' names.
    pub fn slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::exported(self)
    }

    /// The slices of the Service here, which this cluster uses itself, by what records of them would be called.
    pub fn own_slices(&self) -> BTreeMap<String, SlicePayload> {
        slices::own(self)
    }

    /// Why no endpoint of it can answer; none if one can.
    pub fn unanswered(&self) -> Option<Unanswered> {
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
        self.service.spec.ports.iter().find(is_it)
    }
}

/// The port of a Service as it is exported.
pub fn exported_port(port: &ServicePort) -> core::ServicePort {
    core::ServicePort {
        name: port.name.clone().filter(|name| !name.is_empty()),
        protocol: Some(port::protocol(port.protocol.as_deref()).to_owned()),
        app_protocol: port.app_protocol.clone(),
        port: port.port,
        ..core::ServicePort::default()
    }
}
