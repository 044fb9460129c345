//! Waits until an export is merged, and imported where the plan says so.

use std::time::{Duration, Instant};

use api::mcs::{READY, VALID};
use kube::Api;
use picture::{
    plan::{Importing, Plan, Planned},
    view::{ServiceExportView, ServiceImportView},
};

use super::{dns_name, reached};
use crate::{Error, cluster::Cluster, printable::printable, rollout::wait};

/// Waits for one Service, and says where it is and how long that took. Whether it is well.
pub(super) async fn exported(
    clusters: &[Cluster],
    plan: &Plan,
    (service, generation): (&Planned, Option<i64>),
    (begun, limit): (Instant, Duration),
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<bool, Error> {
    let Some(cluster) = clusters.first() else { return Ok(true) };
    let expected: Vec<_> = service.importers.iter().filter(|importing| is_expected(importing)).collect();
    let probe = async || {
        let verdict = match verdict(cluster, service, generation).await? {
            Ok(()) => Ok(()),
            Err(Standing::Invalid(why)) => return Ok(Ok(Err(why))),
            Err(Standing::Waits(why)) => Err(why),
        };
        if let Err(missing) = verdict {
            return Ok(Err(missing));
        }
        for importing in &expected {
            if let Err(missing) = imported(clusters, plan, service, importing).await? {
                return Ok(Err(missing));
            }
        }
        Ok(Ok(Ok(())))
    };
    let title = service.service();
    let waiting = |message: &str| say(&printable(&format!("waiting for {title}: {message}")));
    let left = limit.saturating_sub(begun.elapsed());
    match wait(left, probe, waiting).await? {
        Err(missing) => Err(Error::Timeout {
            cluster: cluster.name.clone(),
            missing: format!("{title}: {missing}"),
            limit,
        }),
        Ok(Err(why)) => {
            say(&printable(&format!("{}: ServiceExport {title} is not valid: {why}", cluster.name)));
            Ok(false)
        }
        Ok(Ok(())) => {
            let names: Vec<_> = expected.iter().map(|importing| importing.cluster.as_str()).collect();
            let names =
                if names.is_empty() { "no cluster that was looked at".to_owned() } else { names.join(", ") };
            let seconds = begun.elapsed().as_secs_f64();
            say(&format!("{} is in {names} after {seconds:.1} s", dns_name(service)));
            service.lacking_text().iter().for_each(|line| say(&printable(line)));
            Ok(true)
        }
    }
}

/// Reports whether the import will be usable there.
fn is_expected(importing: &Importing) -> bool {
    importing.import.as_ref().is_some_and(picture::plan::Imported::is_ready)
}

#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Invalid(String),
    Waits(String),
}

/// Reads the conditions of the ServiceExport of this generation.
async fn verdict(
    cluster: &Cluster,
    service: &Planned,
    generation: Option<i64>,
) -> Result<Result<(), Standing>, Error> {
    let exports: Api<ServiceExportView> = Api::namespaced(cluster.client.clone(), &service.namespace);
    let doing = format!("read ServiceExport {}", service.service());
    let found = cluster.request(doing, exports.get(&service.name)).await?;
    Ok(standing(&found, generation))
}

fn standing(export: &ServiceExportView, generation: Option<i64>) -> Result<(), Standing> {
    let is_now = |type_| export.condition(type_).filter(|_| export.has_observed(type_, generation));
    let words = |type_| is_now(type_).and_then(|said| said.message.clone()).unwrap_or_default();
    let status = |type_| is_now(type_).and_then(|said| said.status.as_deref());
    match (status(VALID), status(READY)) {
        (Some("False"), _) => Err(Standing::Invalid(words(VALID))),
        (Some("True"), Some("True")) => Ok(()),
        (None, _) => Err(Standing::Waits("its member has not processed the ServiceExport yet".to_owned())),
        (_, None) => Err(Standing::Waits("its leader has not merged the ServiceExport yet".to_owned())),
        _ => Err(Standing::Waits(words(READY))),
    }
}

/// Reports whether a cluster imports it with the endpoints of the exporter.
async fn imported(
    clusters: &[Cluster],
    plan: &Plan,
    service: &Planned,
    importing: &Importing,
) -> Result<Result<(), String>, Error> {
    let Some(cluster) = reached(clusters, &importing.context) else { return Ok(Ok(())) };
    let imports: Api<ServiceImportView> = Api::namespaced(cluster.client.clone(), &service.namespace);
    let doing = format!("read ServiceImport {}", service.service());
    let found = cluster.request(doing, imports.get_opt(&service.name)).await?;
    let is_there = found.is_some_and(|found| {
        let ready = found.condition(READY).and_then(|ready| ready.status.as_deref());
        ready == Some("True") && found.clusters().any(|from| from == plan.cluster)
    });
    Ok(if is_there { Ok(()) } else { Err(format!("not imported in {} yet", importing.cluster)) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_of_the_generation_before_do_not_end_the_wait() {
        let export = |valid: i64, ready: i64| -> ServiceExportView {
            let of = |type_: &str, observed: i64| json!({"type": type_, "status": "True", "observedGeneration": observed, "message": "m"});
            let conditions = json!([of(VALID, valid), of(READY, ready)]);
            serde_json::from_value(json!({
                "metadata": {"name": "web"}, "status": {"conditions": conditions},
            }))
            .unwrap()
        };
        let waits = |said: &str| Err(Standing::Waits(said.to_owned()));
        assert_eq!(standing(&export(2, 2), Some(2)), Ok(()));
        assert_eq!(standing(&export(3, 3), Some(2)), Ok(()), "somebody changed it again");
        assert_eq!(standing(&export(1, 1), None), Ok(()));
        let not_processed = "its member has not processed the ServiceExport yet";
        assert_eq!(standing(&export(1, 1), Some(2)), waits(not_processed));
        assert_eq!(
            standing(&export(2, 1), Some(2)),
            waits("its leader has not merged the ServiceExport yet")
        );
        let of_others: ServiceExportView = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "status": {"conditions": [
                {"type": VALID, "status": "True"}, {"type": READY, "status": "True"},
            ]},
        }))
        .unwrap();
        assert_eq!(standing(&of_others, Some(2)), Ok(()), "the CRD may lack the field");
    }
}
