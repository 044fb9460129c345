//! Conditions that ServiceExports will have.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    ServiceName,
    condition::Verdict,
    lacking::Lacking,
    report::{ClusterReportStatus, NotReadyImport},
    resource_import::ResourceImportSpec,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rules::{reports::Reported, status, unanswered::answered};

use super::{
    exporter::Exporter,
    importer::{Imported, has_been_said},
    scene::Scene,
};

/// Conditions of each ServiceExport, by cluster.
pub(super) fn said(
    scene: &Scene<'_>,
    service: &ServiceName,
    exporters: &BTreeMap<String, Exporter>,
    merged: Option<&ResourceImportSpec>,
    (imports, lacking): (&BTreeMap<String, Imported>, &BTreeSet<String>),
) -> BTreeMap<String, Vec<Verdict>> {
    let namespaces = BTreeSet::from([service.namespace.clone()]);
    let lacks = Lacking::of(lacking.iter().map(|id| (id, &namespaces)));
    let reported = reported(scene, service, imports, lacking);
    let of = |(id, exporter): (&String, &Exporter)| {
        let exported =
            merged.and_then(|merged| merged.exporters.iter().flatten().find(|one| one.cluster_id == *id));
        let mut said = exporter.said.clone();
        if let (Some(exported), Some(_)) = (exported, &exporter.offer) {
            let what = said.first().map_or("this export", status::what);
            said.push(status::exported(what, &service.namespace, Some(&lacks)));
            said.push(status::conflict(&exported.conflicts));
            said.extend(reported.as_ref().map(|reported| status::imported(reported, service)));
            match &exporter.unanswered {
                Some(why) => said.push(why.clone().verdict()),
                None if exporter.hides_endpoints => {}
                None => said.extend(has_been_said(&exporter.have).then(answered)),
            }
        }
        (id.clone(), said)
    };
    exporters.iter().map(of).collect()
}

/// Predicts the ClusterReports; none if the leader has no reports, or was not looked at.
fn reported(
    scene: &Scene<'_>,
    service: &ServiceName,
    imports: &BTreeMap<String, Imported>,
    lacking: &BTreeSet<String>,
) -> Option<Reported> {
    let area = scene.area.filter(|area| area.reports.is_ok())?;
    let members: BTreeSet<_> =
        imports.keys().chain(lacking).cloned().chain(area.members().map(|(id, _)| id)).collect();
    let reports: Vec<_> = members
        .into_iter()
        .map(|id| {
            let before = area.report(&id).filter(|_| !scene.members.contains_key(&id));
            let mut report = before.cloned().unwrap_or_default();
            if lacking.contains(&id) && !report.missing_namespaces.contains(&service.namespace) {
                report.missing_namespaces.push(service.namespace.clone());
            }
            report.not_ready.extend(imports.get(&id).and_then(|import| not_ready(service, import)));
            (id, report.bounded())
        })
        .collect();
    let all = reports.iter().map(|(id, report): &(String, ClusterReportStatus)| (id.as_str(), report));
    Some(Reported::of(all))
}

fn not_ready(service: &ServiceName, import: &Imported) -> Option<NotReadyImport> {
    let Verdict { reason, message, .. } = import.trouble()?.clone();
    let ServiceName { namespace, name } = service.clone();
    Some(NotReadyImport { namespace, name, reason, message, since: Time(Timestamp::UNIX_EPOCH) })
}
