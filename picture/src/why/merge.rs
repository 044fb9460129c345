//! Step `merge`: the leader merged the exports, and they agree.

use api::{
    mcs::{CONFLICT, ServicePort},
    port::is_same,
    resource_export::ServicePayload,
    resource_import::Objection,
};
use kube::ResourceExt;
use rules::merged::{Exported, conflicts, merged, ports_of};

use super::{
    Looked,
    record::{records, unseen_area},
    scene::Scene,
};
use crate::{
    age,
    finding::{Finding, Weight},
    said::conflict,
    view::MergedView,
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    let merged = match scene.area {
        Some((_, area)) => area.merged.as_ref().map(Option::as_ref).map_err(Clone::clone),
        None => Err(unseen_area(scene)),
    };
    let mut looked = match &merged {
        Ok(merged) => taken_in(scene, *merged),
        Err(gap) => Looked::unknown(format!("ResourceImport: {gap}")),
    };
    if looked.findings.iter().any(|finding| finding.weight == Weight::Broken) {
        return looked;
    }
    looked.findings.extend(differences(scene, merged.ok().flatten()));
    looked
}

/// Whether the leader merged each export.
fn taken_in(scene: &Scene<'_>, merged: Option<&MergedView>) -> Looked {
    let named = merged.map(MergedView::exporters).unwrap_or_default();
    Looked::of_any(scene.exporters.iter().map(|party| {
        match named.iter().any(|exporter| exporter.cluster_id == party.id) {
            true => Looked::well(format!("{}: merged", party.id)),
            false => {
                let what = format!("{}: not in the ResourceImport of {}", party.id, scene.service());
                Looked::found(scene.broken(404, party, what))
            }
        }
    }))
}

/// Where exports differ: by the same rules as the leader's where all records are known, otherwise as the leader said it.
fn differences(scene: &Scene<'_>, merged: Option<&MergedView>) -> Vec<Finding> {
    let all = predicted(scene).or_else(|| merged.map(said)).unwrap_or_else(|| declared(scene));
    let mut findings = Vec::new();
    for code in [401, 402, 403] {
        let these = || all.iter().filter(|(_, objection)| conflict(&objection.reason) == code);
        // Who loses something has most to say.
        let lost = these().find(|(_, objection)| objection.message.contains("clients cannot reach"));
        let Some((cluster, objection)) = lost.or_else(|| these().next_back()) else { continue };
        let party = scene.exporters.iter().find(|party| party.id == cluster).unwrap_or(&scene.importer);
        let since = party.cluster.and_then(|cluster| cluster.export(scene.name())?.condition(CONFLICT));
        let since = since.and_then(|conflict| conflict.last_transition_time.as_ref());
        let since = since.map_or_else(String::new, |since| {
            format!("; differs for {}", age::text(scene.picture.now.duration_since(since.0)))
        });
        let what = format!("export of {cluster}: {}{since}", objection.message);
        findings.push(scene.broken(code, party, what).degraded());
    }
    findings
}

/// What the leader says, or will say, of these records.
fn predicted(scene: &Scene<'_>) -> Option<Vec<(String, Objection)>> {
    let offers = offers(scene)?;
    let named = offers.iter().zip(conflicts(&offers));
    let named = named.flat_map(|((id, _), all)| all.into_iter().map(|one| ((*id).to_owned(), one)));
    Some(named.collect())
}

/// What is exported, oldest export first; none unless all of it is known.
fn offers<'a>(scene: &Scene<'a>) -> Option<Vec<Exported<'a>>> {
    let mut offers = Vec::new();
    for party in &scene.exporters {
        let mut records = records(scene).ok()?.iter();
        let record = records.find(|record| record.exporter() == Some(party.id))?;
        let payload: &ServicePayload = record.payload()?;
        let exported_at = payload.exported_at.clone().or_else(|| record.creation_timestamp());
        offers.push((exported_at.map(|at| at.0), party.id, payload));
    }
    offers.sort_by_key(|(at, id, _)| (*at, *id));
    Some(offers.into_iter().map(|(_, id, payload)| (id, payload)).collect())
}

/// Whether a cluster exports no port that the merged Service has, as far as is known: then nobody imports its endpoints.
pub(super) fn has_lost_all_ports(scene: &Scene<'_>, id: &str) -> bool {
    let Some(offers) = offers(scene) else { return false };
    let Some((_, payload)) = offers.iter().find(|(of, _)| *of == id) else { return false };
    let merged = merged(&offers).unwrap_or_default().spec.ports;
    let own = ports_of(payload);
    let is_used = |own: &ServicePort| {
        let (number, protocol) = (own.port, own.protocol.as_deref());
        merged.iter().any(|port| is_same(port.port, port.protocol.as_deref(), number, protocol))
    };
    !own.is_empty() && !own.iter().any(is_used)
}

/// What the leader said.
fn said(merged: &MergedView) -> Vec<(String, Objection)> {
    let exporters = merged.exporters().iter();
    let of = |exporter: &api::resource_import::Exporter| {
        let id = exporter.cluster_id.clone();
        exporter.conflicts.clone().into_iter().map(move |one| (id.clone(), one))
    };
    exporters.flat_map(of).collect()
}

/// What ServiceExports say.
fn declared(scene: &Scene<'_>) -> Vec<(String, Objection)> {
    let of = |party: &super::scene::Party<'_>| {
        let conflict = party.cluster?.export(scene.name())?.condition(CONFLICT)?;
        let is_one = conflict.status.as_deref() == Some("True");
        let objection =
            Objection::new(conflict.reason.clone()?, conflict.message.clone().unwrap_or_default());
        is_one.then(|| (party.id.to_owned(), objection))
    };
    scene.exporters.iter().filter_map(of).collect()
}
