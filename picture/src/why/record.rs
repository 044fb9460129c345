//! Step `record`: the Common Area has the exports.

use api::mcs::READY;

use super::{
    Looked,
    scene::{Party, Scene},
};
use crate::{
    finding::Finding,
    gap::{Gap, Seen},
    said::{invalid, not_recorded, words},
    view::{RecordView, ServiceExportView},
};

pub(super) fn look(scene: &Scene<'_>) -> Looked {
    if scene.exporters.is_empty() {
        return Looked::unknown("exporters are not known");
    }
    Looked::of_any(scene.exporters.iter().map(|party| of(scene, party)))
}

fn of(scene: &Scene<'_>, party: &Party<'_>) -> Looked {
    let id = party.id;
    let export = party.cluster.and_then(|cluster| cluster.export(scene.name()));
    if let Some(finding) = export.and_then(|export| refused(scene, party, export)) {
        return Looked::found(finding);
    }
    match records(scene) {
        Ok(records) => match records.iter().find(|record| record.exporter() == Some(id)) {
            Some(record) => match record.failure() {
                Some(failure) => Looked::found(scene.broken(301, party, format!("{id}: {}", words(failure)))),
                None => Looked::well(format!("{id}: in the Common Area")),
            },
            None => {
                let what = format!("{id}: no record of {} in the Common Area", scene.service());
                Looked::found(scene.broken(303, party, what))
            }
        },
        Err(gap) => match export.and_then(|export| export.condition(READY)) {
            Some(ready) if ready.status.as_deref() == Some("True") => {
                Looked::well(format!("{id}: in the Common Area, as its ServiceExport says"))
            }
            Some(ready) if ready.reason.as_deref() == Some("Pending") => {
                Looked::found(scene.broken(303, party, format!("{id}: {}", words(ready))))
            }
            _ => Looked::unknown(format!("record of {id}: {gap}")),
        },
    }
}

/// Records about the Service.
pub(super) fn records<'a>(scene: &Scene<'a>) -> Seen<&'a [RecordView]> {
    match scene.area {
        Some((_, area)) => area.records.as_deref().map_err(Clone::clone),
        None => Err(unseen_area(scene)),
    }
}

/// Why there is no Common Area to look at.
pub(super) fn unseen_area(scene: &Scene<'_>) -> Gap {
    let mut gaps = scene.picture.clusters.iter().filter_map(|cluster| cluster.areas.as_ref().err());
    gaps.next().cloned().unwrap_or(Gap::NotLooked)
}

/// What the member says of records that are refused.
fn refused(scene: &Scene<'_>, party: &Party<'_>, export: &ServiceExportView) -> Option<Finding> {
    let of_leader = invalid(export).filter(|(code, _)| *code == 301);
    let (code, said) = of_leader.or_else(|| not_recorded(export)).filter(|(code, _)| *code != 303)?;
    Some(scene.broken(code, party, format!("{}: {}", party.id, words(said))))
}
