//! The part of each cluster in the export of a Service.

use std::collections::BTreeMap;

use api::{
    ServiceName,
    condition::{Condition, Verdict},
    resource_export::ServicePayload,
    slice::SlicePayload,
};
use kube::api::ObjectMeta;
use rules::{
    merge::Offer,
    offer::{self, Local, Offered, asked_for},
    status,
    unanswered::Unanswered,
};

use super::{
    held::{Area, Cluster, slice_of},
    scene::Scene,
};

/// The part of one cluster in the export of a Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exporter {
    /// The record, if something is exported.
    pub(super) offer: Option<Offer>,
    /// Slices that other clusters get, by the names of their records.
    pub(super) slices: BTreeMap<String, SlicePayload>,
    /// Slices that the cluster uses itself.
    pub(super) own_slices: BTreeMap<String, SlicePayload>,
    /// Conditions that do not depend on other clusters; none where the cluster was not looked at.
    pub(super) said: Vec<Verdict>,
    /// True if the endpoints are not known: `slices` may be wrong then.
    pub(super) hides_endpoints: bool,
    /// Why no endpoint can answer.
    pub(super) unanswered: Option<Unanswered>,
    /// Conditions that its ServiceExport has now.
    pub(super) have: Vec<Condition>,
}

/// Returns the members that export the Service, or have a ServiceExport for it.
pub(super) fn exporters(scene: &Scene<'_>, service: &ServiceName) -> BTreeMap<String, Exporter> {
    let looked_at =
        scene.members.iter().filter(|(_, cluster)| cluster.exports.is_ok() && cluster.services.is_ok());
    let looked_at: BTreeMap<_, _> = looked_at.map(|(id, cluster)| (id.clone(), *cluster)).collect();
    let recorded = scene.area.map(|area| area.exporters(service)).unwrap_or_default();
    let recorded = recorded.into_iter().filter(|id| !looked_at.contains_key(id));
    let recorded = recorded.filter_map(|id| Some((id.clone(), of_record(scene.area?, &id, service)?)));
    let declared = looked_at
        .iter()
        .filter_map(|(id, cluster)| Some((id.clone(), of_cluster(id, cluster, scene, service)?)));
    let mut all: BTreeMap<_, _> = declared.collect();
    all.extend(recorded);
    all
}

/// Returns the export of a cluster that was not looked at, from its record.
fn of_record(area: &Area, id: &str, service: &ServiceName) -> Option<Exporter> {
    let (metadata, payload) = area.payload(id, service)?;
    let records = area.slices(id, service);
    let slices = records.iter().filter_map(|(name, record)| Some((name.clone(), slice_of(record)?.clone())));
    let offer = Offer { metadata: metadata.clone(), payload: payload.clone() };
    Some(Exporter { offer: Some(offer), slices: slices.collect(), ..Exporter::default() })
}

/// Returns the export of a cluster that was looked at; none if it has no ServiceExport.
fn of_cluster(id: &str, cluster: &Cluster, scene: &Scene<'_>, service: &ServiceName) -> Option<Exporter> {
    let area = scene.area;
    let hides_endpoints = !scene.knows_endpoints(id, service);
    let export = cluster.export(service)?;
    let recorded = area.and_then(|area| area.payload(id, service));
    let records = area.map(|area| area.slices(id, service)).unwrap_or_default();
    let asked = asked_for(export);
    let slices = cluster.own_slices(service);
    let local = Local {
        cluster: id,
        name: service,
        is_excluded: cluster.is_excluded(&service.namespace),
        service: cluster.service(service),
        slices: &slices,
        records: &records,
        imported: None,
        only_cluster_ips: cluster.only_cluster_ips(),
        antrea_leads: false,
        families: cluster.families.as_deref().unwrap_or_default(),
    };
    let created = export.metadata.creation_timestamp.as_ref();
    let last_valid = || {
        let (metadata, payload) = recorded?;
        offer::last_valid(dated(payload, metadata), created)
    };
    let Offered { offer, invalid } = offer::offered(local, Some(asked), last_valid);
    let said = match (&offer, invalid) {
        (Some(_), None) => vec![status::valid(Some(export))],
        (Some(_), Some(invalid)) => vec![status::kept(invalid)],
        (None, Some(invalid)) => status::not_exported(invalid).into(),
        (None, None) => vec![],
    };
    let have = export.status.0.as_ref().ok();
    Some(Exporter {
        slices: offer.as_ref().map(offer::Offer::slices).unwrap_or_default(),
        own_slices: offer.as_ref().map(offer::Offer::own_slices).unwrap_or_default(),
        said,
        hides_endpoints,
        unanswered: offer.as_ref().filter(|_| !hides_endpoints).and_then(offer::Offer::unanswered),
        have: have.map(|status| status.conditions.clone()).unwrap_or_default(),
        offer: offer.map(|offer| Offer {
            metadata: recorded.map(|(metadata, _)| metadata.clone()).unwrap_or_default(),
            payload: offer.service(),
        }),
    })
}

/// The payload with its age: records of Antrea's do not say it.
fn dated(payload: &ServicePayload, metadata: &ObjectMeta) -> ServicePayload {
    let exported_at = payload.exported_at.clone().or_else(|| metadata.creation_timestamp.clone());
    ServicePayload { exported_at, ..payload.clone() }
}
