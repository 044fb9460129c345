//! Reporting on records: reads what was judged; writes `status` (and an Event) of records that are refused, wholly or in part, and of
//! those that were and are not any more; deletes nothing, but takes the finalizer off records that Antrea's members delete and nothing is made
//! of; reads a record again whose content was not kept while it was refused. Safe to run twice: the status is written only when it
//! says something else.

use std::time::Instant;

use api::{
    antrea::RECORD_FINALIZERS,
    condition::{AntreaCondition, Status, Verdict},
    resource_export::{FAILURE, ResourceExportStatus, SUCCEEDED},
    resource_import::Objection,
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    drive::drive,
    index::{Readers, Shared},
    log_limit::LogLimit,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::{
    index::{
        judged::Judged,
        record::{Record, Said},
        report::Reported,
    },
    records::Records,
};
use crate::feature::Access;

/// The one condition that a record's status has: what is wrong, or that all is well again.
fn desired(objection: Option<&Objection>, have: &[AntreaCondition], now: &Time) -> ResourceExportStatus {
    let verdict = match objection {
        Some(o) => Verdict::new(FAILURE, Status::False, o.reason.clone(), o.message.clone()),
        None => Verdict::new(SUCCEEDED, Status::True, "", ""),
    };
    ResourceExportStatus { conditions: vec![AntreaCondition::of(&verdict, have, now)] }
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Reporting {
    access: Access,
    records: Records,
    writer: Writer,
    /// How many records the log names; all have a status.
    log_limit: Shared<LogLimit>,
}

impl Reporting {
    pub(super) fn new(access: Access, records: Records, writer: Writer) -> Self {
        Self { access, records, writer, log_limit: Shared::default() }
    }

    /// Runs the controller until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        let queue = self.records.reports.queue(0);
        drive("judge", queue, metrics, stop.clone(), |name| self.clone().reconcile(name)).await;
    }

    /// Brings one record's status up to date.
    async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(reported) = self.records.reports.get(&name).and_then(|report| report.0.clone()) else {
            return Ok(Outcome::Done);
        };
        if reported.is_to_read {
            let record = self.access.api::<Record>().get_opt(&name).await?;
            record.into_iter().for_each(|record| self.records.read_again(record));
            return Ok(Outcome::Done);
        }
        let record = Judged::named(reported.metadata.clone());
        if reported.is_to_release {
            self.writer.release(&record, &RECORD_FINALIZERS).await?;
            self.records.reports.deleted(Readers::ALL, &record);
            return Ok(Outcome::Done);
        }
        self.report(&name, &record, reported).await
    }

    async fn report(&self, name: &str, record: &Judged, reported: Reported) -> Result<Outcome, Error> {
        let have = &reported.conditions;
        let status = desired(reported.objection.as_ref(), have, &Time(Timestamp::now()));
        if status.conditions == *have {
            return Ok(Outcome::Done);
        }
        let view = Record { metadata: reported.metadata, spec: Said::default(), status: Lenient::default() };
        let written = async { Ok(self.records.judged(self.writer.put_status(&view, &status).await?)) };
        self.records.reports.write(Readers::ALL, record, written).await?;
        if let Some(Objection { reason, message }) = reported.objection {
            if let Some(left_out) = self.log_limit.with(|log_limit| log_limit.allows(Instant::now())) {
                let what = match reported.is_refused {
                    true => "a record is refused and takes no part",
                    false => "not all of a record takes part",
                };
                tracing::warn!(record = %name, %reason, %message, left_out, "{what}");
            }
            self.access.env.events.warn(record.object_ref(&()), "Judge", &reason, &message);
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::service::{index::report::Report, judge::judged};
    use kit::index::Part;

    #[test]
    fn a_mended_record_is_reported_once_and_then_forgotten() {
        let now = Time("2026-11-01T12:00:00Z".parse().unwrap());
        let failed = desired(Some(&Objection::new("NoPayload", "m")), &[], &now).conditions;
        assert_eq!(desired(Some(&Objection::new("NoPayload", "m")), &failed, &now).conditions, failed);
        let mended = desired(None, &failed, &now).conditions;
        assert_eq!(mended[0].type_.as_deref(), Some(SUCCEEDED));
        let golden = include_str!("../../../api/tests/golden/export-service.json");
        let mut record: Value = serde_json::from_str(golden).unwrap();
        record["status"] = json!({"conditions": failed});
        let judge = |record: &Value| {
            let record = serde_json::from_value(record.clone()).unwrap();
            judged(record, &api::antrea::Members::default(), &api::ranges::Bounds::default())
        };
        assert!(Part::<String, Report>::key(&judge(&record)).is_some());
        record["status"] = json!({"conditions": mended});
        assert_eq!(Part::<String, Report>::key(&judge(&record)), None);
    }
}
