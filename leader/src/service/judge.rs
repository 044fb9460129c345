//! Judging records: watches every ResourceExport; writes `status` (and an Event) of those that cannot be judged, and of
//! those that could not and now can; deletes nothing, but lets go what Antrea's members delete and nothing is made of. Safe to
//! run twice: status is written only when it says otherwise.
//!
//! A record that cannot be judged takes no part in anything. It does not count as empty either: what its cluster offered
//! before stays as it is until the cluster says something that can be understood.

mod payload;

use std::time::Instant;

use api::{
    ServiceName,
    antrea::{Members, RECORD_FINALIZERS},
    condition::{AntreaCondition, Status, Verdict},
    label, name,
    resource_export::{
        ENDPOINT_SLICE, ENDPOINTS, EndpointsPayload, FAILURE, ResourceExport, ResourceExportSpec,
        ResourceExportStatus, SERVICE, SUCCEEDED, ServicePayload,
    },
    resource_import::Objection,
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    index::{Entry, Part, Readers, Shared},
    log_limit::LogLimit,
    queue::Outcome,
    store::Store,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use self::payload::{endpoints, serviceable, slice};
use super::{antrea, entry::Record};

/// What a record is worth.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// A member's Service.
    Service {
        /// Who offers it.
        cluster: String,
        /// Which one.
        service: ServiceName,
        /// The Service itself.
        payload: Box<ServicePayload>,
    },
    /// All endpoints of a member's Service, which matter while members that run Antrea's controllers take part.
    Endpoints {
        /// Whose.
        cluster: String,
        /// Of which Service.
        service: ServiceName,
        /// The endpoints.
        payload: EndpointsPayload,
    },
    /// A slice, or a kind that is none of our business: nothing for the leader to do.
    Passed,
    /// Cannot be judged.
    Refused {
        /// What is wrong.
        objection: Objection,
        /// Whose record it is all the same, about which Service; `None` if even that is in doubt.
        of: Option<(String, ServiceName)>,
    },
}

/// A record and its judgement.
#[derive(Resource, Clone, Debug)]
#[resource(inherit = ResourceExport)]
pub struct Judged {
    /// The record's metadata.
    pub metadata: ObjectMeta,
    /// What it is worth.
    pub judgement: Judgement,
    /// What its status says.
    pub conditions: Vec<AntreaCondition>,
}

impl Judged {
    /// Judges the record; `antrea` are the members that write theirs as Antrea does.
    pub fn of(record: Record, antrea: &Members) -> Self {
        let conditions = record.status.0.map(|status| status.conditions).unwrap_or_default();
        let judgement = match record.spec.0 {
            Ok(spec) => judge(&record.metadata, spec, antrea),
            Err(error) => {
                Judgement::refused(objection("NotDecodable", format!("spec does not decode: {error}")), None)
            }
        };
        Self { metadata: record.metadata, judgement, conditions }
    }

    /// Whether it is being deleted, waits for us to let it go, and no import has to be written before.
    fn is_to_let_go(&self) -> bool {
        antrea::is_held(&self.metadata)
            && !matches!(self.judgement, Judgement::Service { .. } | Judgement::Endpoints { .. })
    }
}

fn objection(reason: &str, message: impl Into<String>) -> Objection {
    Objection { reason: reason.into(), message: message.into() }
}

impl Judgement {
    fn refused(objection: Objection, of: Option<(String, ServiceName)>) -> Self {
        Self::Refused { objection, of }
    }
}

/// Judges a record by itself; other records do not matter.
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
    let withdrawn = antrea::is_withdrawn(metadata, &cluster, antrea);
    if kind == ENDPOINTS {
        return match endpoints(spec.endpoints.filter(|_| !withdrawn), withdrawn) {
            Ok(payload) => Judgement::Endpoints { cluster, service, payload },
            Err(objection) => Judgement::refused(objection, None),
        };
    }
    if kind == SERVICE && withdrawn {
        let payload = ServicePayload { withdrawn, ..spec.service.unwrap_or_default() };
        return Judgement::Service { cluster, service, payload: Box::new(payload) };
    }
    if kind == ENDPOINT_SLICE {
        return match slice(spec.endpoint_slice.as_ref()) {
            Ok(()) => Judgement::Passed,
            Err(objection) => Judgement::refused(objection, None),
        };
    }
    match spec.service {
        None => {
            Judgement::refused(objection("NoPayload", "spec.service is missing"), Some((cluster, service)))
        }
        Some(payload) => match serviceable(&payload) {
            Ok(()) => Judgement::Service { cluster, service, payload: Box::new(payload) },
            Err(objection) => Judgement::refused(objection, Some((cluster, service))),
        },
    }
}

/// Who says it about which Service, if spec, name and labels agree on that.
fn identity(
    metadata: &ObjectMeta,
    kind: &str,
    spec: &ResourceExportSpec,
    antrea: &Members,
) -> Result<(String, ServiceName), Objection> {
    let (cluster, service) = tuple(spec)?;
    let record = metadata.name.as_deref().unwrap_or_default();
    let named_after = match kind {
        SERVICE => record == antrea.service_export(&cluster, &service),
        ENDPOINTS => record == antrea.endpoints_export(&cluster, &service),
        _ => name::is_slice_export(record, &cluster, &service),
    };
    if !named_after {
        let says = format!("a record of this name cannot speak for {service} of cluster {cluster}");
        return Err(objection("ForeignTuple", says));
    }
    labels_agree(metadata, kind, &cluster, &service)?;
    Ok((cluster, service))
}

fn tuple(spec: &ResourceExportSpec) -> Result<(String, ServiceName), Objection> {
    let invalid = |message: String| objection("InvalidTuple", message);
    let cluster = spec.cluster_id.clone().unwrap_or_default();
    name::check_cluster_id(&cluster).map_err(|error| invalid(format!("spec.clusterID: {error}")))?;
    let service =
        ServiceName::new(spec.namespace.clone().unwrap_or_default(), spec.name.clone().unwrap_or_default());
    for (field, value) in [("namespace", &service.namespace), ("name", &service.name)] {
        if !name::is_dns_label(value) {
            return Err(invalid(format!("spec.{field} {value:?} is no DNS label")));
        }
    }
    Ok((cluster, service))
}

/// Members select records by these labels, so a record that is labelled as another's would be read as another's.
fn labels_agree(
    metadata: &ObjectMeta,
    kind: &str,
    cluster: &str,
    service: &ServiceName,
) -> Result<(), Objection> {
    let labels = metadata.labels.clone().unwrap_or_default();
    let want = [
        (label::SOURCE_CLUSTER_ID, cluster),
        (label::SOURCE_NAMESPACE, &service.namespace),
        (label::SOURCE_NAME, &service.name),
        (label::SOURCE_KIND, kind),
    ];
    match want.into_iter().find(|(key, value)| labels.get(*key).map(String::as_str) != Some(*value)) {
        Some((key, value)) => {
            Err(objection("ForeignTuple", format!("label {key} must be {value:?}, as in spec")))
        }
        None => Ok(()),
    }
}

/// A record whose status has something to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    record: Option<Report>,
}

#[derive(Clone, Debug, PartialEq)]
struct Report {
    metadata: ObjectMeta,
    objection: Option<Objection>,
    conditions: Vec<AntreaCondition>,
    let_go: bool,
}

impl Entry for Reported {
    fn is_empty(&self) -> bool {
        self.record.is_none()
    }
}

impl Part<String, Reported> for Judged {
    fn key(&self) -> Option<String> {
        let failed = self.conditions.iter().any(|c| c.type_.as_deref() == Some(FAILURE));
        let told = failed || matches!(self.judgement, Judgement::Refused { .. }) || self.is_to_let_go();
        told.then(|| self.name_any())
    }

    fn put(self, entry: &mut Reported) -> Readers {
        let let_go = self.is_to_let_go();
        let objection = match self.judgement {
            Judgement::Refused { objection, .. } => Some(objection),
            _ => None,
        };
        let new = Some(Report { metadata: self.metadata, objection, conditions: self.conditions, let_go });
        Readers::ALL.when(std::mem::replace(&mut entry.record, new.clone()) != new)
    }

    fn take(entry: &mut Reported, _: &str) -> Readers {
        Readers::ALL.when(entry.record.take().is_some())
    }
}

/// The one condition a record's status has: what is wrong, or that all is well again.
fn desired(objection: Option<&Objection>, have: &[AntreaCondition], now: &Time) -> ResourceExportStatus {
    let verdict = match objection {
        Some(o) => Verdict::new(FAILURE, Status::False, o.reason.clone(), o.message.clone()),
        None => Verdict::new(SUCCEEDED, Status::True, "", ""),
    };
    ResourceExportStatus { conditions: vec![AntreaCondition::of(&verdict, have, now)] }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Judging {
    /// Records whose status has something to say.
    pub reports: Store<String, Reported>,
    /// The members that write as Antrea does.
    pub antrea: Members,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Where to leave Events.
    pub events: Events,
    /// How many refusals the log gets; all are in the records' status.
    pub log_limit: Shared<LogLimit>,
}

impl Judging {
    /// Brings one record's status up to date.
    pub async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(Report { metadata, objection, conditions: have, let_go }) =
            self.reports.get(&name).and_then(|entry| entry.record.clone())
        else {
            return Ok(Outcome::Done);
        };
        let record = Judged { metadata, judgement: Judgement::Passed, conditions: vec![] };
        if let_go {
            self.writer.release(&record, &RECORD_FINALIZERS).await?;
            self.reports.deleted(Readers::ALL, &record);
            return Ok(Outcome::Done);
        }
        let status = desired(objection.as_ref(), &have, &Time(Timestamp::now()));
        if status.conditions == have {
            return Ok(Outcome::Done);
        }
        let view = Record {
            metadata: record.metadata.clone(),
            spec: Lenient::default(),
            status: Lenient::default(),
        };
        let written = async { Ok(Judged::of(self.writer.put_status(&view, &status).await?, &self.antrea)) };
        self.reports.write(Readers::ALL, &record, written).await?;
        if let Some(Objection { reason, message }) = objection {
            if let Some(left_out) = self.log_limit.with(|log_limit| log_limit.allows(Instant::now())) {
                tracing::warn!(record = %name, %reason, %message, left_out, "a record cannot be judged");
            }
            self.events.warn(record.object_ref(&()), "Judge", &reason, &message);
        }
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests;
