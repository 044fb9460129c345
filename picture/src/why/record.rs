//! Step `record`: the Common Area has the exports.

use api::mcs::{READY, VALID};

use super::{
    Looked,
    export::{NOT_ACCEPTED, words},
    scene::{Party, Scene},
};
use crate::{
    cluster::{Gap, Seen},
    finding::Finding,
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
    let is_false = |type_| export.condition(type_).filter(|said| said.status.as_deref() == Some("False"));
    let is_for = |reasons: &[&str], said: &api::condition::AntreaCondition| {
        said.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    };
    let invalid = is_false(VALID).filter(|said| is_for(&NOT_ACCEPTED, said));
    let failed = is_false(READY).filter(|said| is_for(&["Failed"], said));
    let refused = is_false(READY).filter(|said| is_for(&["Refused"], said));
    let of = |code, said| scene.broken(code, party, format!("{}: {}", party.id, words(said)));
    invalid.or(failed).map(|said| of(301, said)).or_else(|| refused.map(|said| of(302, said)))
}
