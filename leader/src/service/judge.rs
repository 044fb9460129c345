//! Judging records: watches every ResourceExport; writes `status` (and an Event) of those that are not valid, and of those that
//! were not and now are; deletes nothing, but takes the finalizer off records that Antrea's members delete and nothing is made of.
//! Safe to run twice: the status is written only when it says something else.
//!
//! A record that is not valid takes no part in anything. It does not count as empty either: what its cluster offered before stays
//! as it is until the cluster writes a valid one.

mod payload;

use std::time::Instant;

use api::{
    antrea::{Members, RECORD_FINALIZERS},
    condition::{AntreaCondition, Status, Verdict},
    resource_export::{
        ENDPOINT_SLICE, ENDPOINTS, FAILURE, ResourceExportSpec, ResourceExportStatus, SERVICE, SUCCEEDED,
        ServicePayload,
    },
    resource_import::Objection,
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    drive::drive,
    index::{Entry, Part, Readers, Shared},
    log_limit::LogLimit,
    queue::Outcome,
    store::Store,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use tokio_util::sync::CancellationToken;

use super::index::{
    identity::identity,
    judged::{Judged, Judgement},
    record::{Record, is_withdrawn},
};
use crate::feature::Access;

/// The record and what it is worth; `antrea` are the members that write theirs as Antrea does.
pub(super) fn judged(record: Record, antrea: &Members) -> Judged {
    let conditions = record.status.0.map(|status| status.conditions).unwrap_or_default();
    let judgement = match record.spec.0 {
        Ok(spec) => judge(&record.metadata, spec, antrea),
        Err(error) => {
            let objection = Objection::new("NotDecodable", format!("spec does not decode: {error}"));
            Judgement::refused(objection, None)
        }
    };
    Judged { metadata: record.metadata, judgement, conditions }
}

fn judge(metadata: &ObjectMeta, spec: ResourceExportSpec, antrea: &Members) -> Judgement {
    let kind = spec.kind.clone().unwrap_or_default();
    match kind.as_str() {
        SERVICE | ENDPOINT_SLICE => {}
        ENDPOINTS if !antrea.is_empty() => {}
        _ => return Judgement::Passed,
    }
    let (cluster, service) = match identity(metadata, &kind, &spec, antrea) {
        Ok(identity) => identity,
        Err(objection) => return Judgement::refused(objection, None),
    };
    let withdrawn = is_withdrawn(metadata, &cluster, antrea);
    match kind.as_str() {
        ENDPOINT_SLICE => match payload::check_slice(spec.endpoint_slice.as_ref()) {
            Ok(()) => Judgement::Passed,
            Err(objection) => Judgement::refused(objection, None),
        },
        ENDPOINTS => match payload::endpoints(spec.endpoints.filter(|_| !withdrawn), withdrawn) {
            Ok(payload) => Judgement::Endpoints { cluster, service, payload },
            Err(objection) => Judgement::refused(objection, None),
        },
        _ if withdrawn => {
            let payload = ServicePayload { withdrawn, ..spec.service.unwrap_or_default() };
            Judgement::Service { cluster, service, payload: Box::new(payload) }
        }
        _ => match payload::service(spec.service) {
            Ok(payload) => Judgement::Service { cluster, service, payload: Box::new(payload) },
            Err(objection) => Judgement::refused(objection, Some((cluster, service))),
        },
    }
}

/// A record whose status has something to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Report(Option<Reported>);

#[derive(Clone, Debug, PartialEq)]
struct Reported {
    metadata: ObjectMeta,
    objection: Option<Objection>,
    conditions: Vec<AntreaCondition>,
    is_to_release: bool,
}

impl Entry for Report {
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl Part<String, Report> for Judged {
    fn key(&self) -> Option<String> {
        let has_failed = self.conditions.iter().any(|c| c.type_.as_deref() == Some(FAILURE));
        let is_refused = matches!(self.judgement, Judgement::Refused { .. });
        (has_failed || is_refused || self.is_to_release()).then(|| self.name_any())
    }

    fn put(self, report: &mut Report) -> Readers {
        let is_to_release = self.is_to_release();
        let objection = match self.judgement {
            Judgement::Refused { objection, .. } => Some(objection),
            _ => None,
        };
        let Self { metadata, conditions, .. } = self;
        let new = Some(Reported { metadata, objection, conditions, is_to_release });
        Readers::ALL.when(std::mem::replace(&mut report.0, new.clone()) != new)
    }

    fn take(report: &mut Report, _: &str) -> Readers {
        Readers::ALL.when(report.0.take().is_some())
    }
}

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
pub(super) struct Judging {
    access: Access,
    /// By the names of records.
    reports: Store<String, Report>,
    writer: Writer,
    /// How many records the log names; all have a status.
    log_limit: Shared<LogLimit>,
}

impl Judging {
    pub(super) fn new(access: Access, reports: Store<String, Report>, writer: Writer) -> Self {
        Self { access, reports, writer, log_limit: Shared::default() }
    }

    /// Runs the controller until `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        let metrics = self.access.env.metrics.clone();
        drive("judge", self.reports.queue(0), metrics, stop.clone(), |name| self.clone().reconcile(name))
            .await;
    }

    /// Brings one record's status up to date.
    async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(reported) = self.reports.get(&name).and_then(|report| report.0.clone()) else {
            return Ok(Outcome::Done);
        };
        let record = Judged::named(reported.metadata.clone());
        if reported.is_to_release {
            self.writer.release(&record, &RECORD_FINALIZERS).await?;
            self.reports.deleted(Readers::ALL, &record);
            return Ok(Outcome::Done);
        }
        let have = &reported.conditions;
        let status = desired(reported.objection.as_ref(), have, &Time(Timestamp::now()));
        if status.conditions == *have {
            return Ok(Outcome::Done);
        }
        let view =
            Record { metadata: reported.metadata, spec: Lenient::default(), status: Lenient::default() };
        let written =
            async { Ok(judged(self.writer.put_status(&view, &status).await?, &self.access.antrea)) };
        self.reports.write(Readers::ALL, &record, written).await?;
        if let Some(Objection { reason, message }) = reported.objection {
            if let Some(left_out) = self.log_limit.with(|log_limit| log_limit.allows(Instant::now())) {
                tracing::warn!(record = %name, %reason, %message, left_out, "a record is not valid and takes no part");
            }
            self.access.env.events.warn(record.object_ref(&()), "Judge", &reason, &message);
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests;
