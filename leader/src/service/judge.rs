//! Judging records: watches every ResourceExport; writes `status` (and an Event) of those that cannot be judged, and of
//! those that could not and now can; deletes nothing. Safe to run twice: status is written only when it says otherwise.
//!
//! A record that cannot be judged takes no part in anything. It does not count as empty either: what its cluster offered
//! before stays as it is until the cluster says something that can be understood.

use api::{
    ServiceName,
    condition::{AntreaCondition, Status, Verdict},
    label, name,
    resource_export::{
        ENDPOINT_SLICE, FAILURE, ResourceExport, ResourceExportSpec, ResourceExportStatus, SERVICE,
        SUCCEEDED, ServicePayload,
    },
    resource_import::Objection,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    index::{Entry, Index, Part, Shared},
    queue::Outcome,
    view::Lenient,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};

use super::entry::Record;

/// Most ports a Service may have: what a ServiceImport of many exporters can still hold.
const PORTS_MAX: usize = 100;

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
    /// A slice, or a kind that is none of our business: nothing for the leader to do.
    Passed,
    /// Cannot be judged.
    Refused(Objection),
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

impl From<Record> for Judged {
    fn from(record: Record) -> Self {
        let conditions = record.status.0.map(|status| status.conditions).unwrap_or_default();
        let judgement = match record.spec.0 {
            Ok(spec) => judge(&record.metadata, spec).unwrap_or_else(Judgement::Refused),
            Err(error) => {
                Judgement::Refused(objection("NotDecodable", format!("spec does not decode: {error}")))
            }
        };
        Self { metadata: record.metadata, judgement, conditions }
    }
}

fn objection(reason: &str, message: impl Into<String>) -> Objection {
    Objection { reason: reason.into(), message: message.into() }
}

/// Judges a record by itself; other records do not matter.
fn judge(metadata: &ObjectMeta, spec: ResourceExportSpec) -> Result<Judgement, Objection> {
    let kind = spec.kind.clone().unwrap_or_default();
    if kind != SERVICE && kind != ENDPOINT_SLICE {
        return Ok(Judgement::Passed);
    }
    let (cluster, service) = tuple(&spec)?;
    let record = metadata.name.as_deref().unwrap_or_default();
    let named_after = if kind == SERVICE {
        record == name::service_export(&cluster, &service)
    } else {
        name::is_slice_export(record, &cluster, &service)
    };
    if !named_after {
        let says = format!("a record of this name cannot speak for {service} of cluster {cluster}");
        return Err(objection("ForeignTuple", says));
    }
    labels_agree(metadata, &kind, &cluster, &service)?;
    if kind == ENDPOINT_SLICE {
        return match spec.endpoint_slice {
            Some(_) => Ok(Judgement::Passed),
            None => Err(objection("NoPayload", "spec.endpointSlice is missing")),
        };
    }
    let payload = spec.service.ok_or_else(|| objection("NoPayload", "spec.service is missing"))?;
    if !payload.withdrawn {
        serviceable(&payload)?;
    }
    Ok(Judgement::Service { cluster, service, payload: Box::new(payload) })
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

/// Whether an API server would take a Service with these ports.
fn serviceable(payload: &ServicePayload) -> Result<(), Objection> {
    let invalid = |message: String| Err(objection("InvalidService", message));
    let ports = payload.service_spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() {
        return invalid("the Service has no ports".into());
    }
    if ports.len() > PORTS_MAX {
        return Err(objection(
            "TooManyPorts",
            format!("{} ports, at most {PORTS_MAX} can be imported", ports.len()),
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    for port in ports {
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let name = port.name.as_deref().unwrap_or_default();
        if !(1..=65535).contains(&port.port) {
            return invalid(format!("port {} is no port number", port.port));
        }
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            return invalid(format!("port {} has protocol {protocol:?}", port.port));
        }
        if !name.is_empty() && !name::is_dns_label(name) {
            return invalid(format!("port name {name:?} is no DNS label"));
        }
        if !seen.insert((protocol, port.port.to_string())) || !seen.insert(("", name.to_owned())) {
            return invalid(format!("port {}/{protocol} {name:?} is there twice", port.port));
        }
    }
    Ok(())
}

/// A record whose status has something to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reported {
    record: Option<(ObjectMeta, Option<Objection>, Vec<AntreaCondition>)>,
}

impl Entry for Reported {
    fn is_empty(&self) -> bool {
        self.record.is_none()
    }
}

impl Part<String, Reported> for Judged {
    fn key(&self) -> Option<String> {
        let failed = self.conditions.iter().any(|c| c.type_.as_deref() == Some(FAILURE));
        (failed || matches!(self.judgement, Judgement::Refused(_))).then(|| self.name_any())
    }

    fn put(self, entry: &mut Reported) -> bool {
        let objection = match self.judgement {
            Judgement::Refused(objection) => Some(objection),
            _ => None,
        };
        let new = Some((self.metadata, objection, self.conditions));
        std::mem::replace(&mut entry.record, new.clone()) != new
    }

    fn take(entry: &mut Reported, _: &str) {
        entry.record = None;
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

/// Brings one record's status up to date.
pub async fn reconcile(
    name: String,
    reports: Shared<Index<String, Reported>>,
    writer: Writer,
    events: Events,
) -> Result<Outcome, Error> {
    let Some((metadata, objection, have)) =
        reports.with(|index| index.get(&name).and_then(|e| e.record.clone()))
    else {
        return Ok(Outcome::Done);
    };
    let status = desired(objection.as_ref(), &have, &Time(Timestamp::now()));
    if status.conditions == have {
        return Ok(Outcome::Done);
    }
    let record = Record { metadata, spec: Lenient::default(), status: Lenient::default() };
    let told = writer.put_status(&record, &status).await?;
    reports.with(|index| index.echo(Judged::from(told)));
    if let Some(Objection { reason, message }) = objection {
        tracing::warn!(record = %name, %reason, %message, "a record cannot be judged");
        events.warn(record.object_ref(&()), "Judge", &reason, &message);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record() -> Value {
        serde_json::from_str(include_str!("../../../api/tests/golden/export-service.json")).unwrap()
    }

    fn judged(record: Value) -> Judged {
        serde_json::from_value::<Record>(record).unwrap().into()
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut record = record();
        change(&mut record);
        match judged(record).judgement {
            Judgement::Refused(objection) => objection.reason,
            other => format!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_good_record_is_taken_at_its_word() {
        let Judgement::Service { cluster, service, payload } = judged(record()).judgement else { panic!() };
        assert_eq!((cluster.as_str(), service), ("east", ServiceName::new("shop", "web")));
        assert_eq!(payload.exported_labels["team"], "shop");
    }

    #[test]
    fn what_cannot_be_judged_says_why() {
        assert_eq!(refused(|r| r["spec"]["service"] = Value::Null), "NoPayload");
        assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!("many")), "NotDecodable");
        assert_eq!(refused(|r| r["spec"]["clusterID"] = json!("west")), "ForeignTuple");
        assert_eq!(refused(|r| r["spec"]["name"] = json!("other")), "ForeignTuple");
        assert_eq!(refused(|r| r["metadata"]["labels"]["sourceClusterID"] = json!("west")), "ForeignTuple");
        assert_eq!(refused(|r| r["spec"]["clusterID"] = json!("No_Label")), "InvalidTuple");
        assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([])), "InvalidService");
        let port = |n: i32| json!({"port": n, "protocol": "TCP", "name": format!("p{n}")});
        assert_eq!(
            refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([port(0)])),
            "InvalidService"
        );
        assert_eq!(
            refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!([port(1), port(1)])),
            "InvalidService"
        );
        let many: Vec<_> = (1..=101).map(port).collect();
        assert_eq!(refused(|r| r["spec"]["service"]["serviceSpec"]["ports"] = json!(many)), "TooManyPorts");
        assert_eq!(refused(|r| r["spec"]["kind"] = json!("EndpointSlice")), "ForeignTuple");
    }

    #[test]
    fn foreign_kinds_and_slices_pass() {
        for golden in [
            include_str!("../../../api/tests/golden/export-endpoints-antrea.json"),
            include_str!("../../../api/tests/golden/export-slice.json"),
        ] {
            let record = judged(serde_json::from_str(golden).unwrap());
            assert_eq!(record.judgement, Judgement::Passed);
            assert_eq!(Part::<String, Reported>::key(&record), None, "and are not reported on");
        }
    }

    #[test]
    fn a_withdrawal_needs_no_ports() {
        let mut record = record();
        record["spec"]["service"] = json!({"serviceSpec": {}, "withdrawn": true});
        assert!(matches!(judged(record).judgement, Judgement::Service { .. }));
    }

    #[test]
    fn a_mended_record_is_reported_once_and_then_forgotten() {
        let now = Time("2026-11-01T12:00:00Z".parse().unwrap());
        let failed = desired(Some(&objection("NoPayload", "m")), &[], &now).conditions;
        assert_eq!(desired(Some(&objection("NoPayload", "m")), &failed, &now).conditions, failed);
        let mended = desired(None, &failed, &now).conditions;
        assert_eq!(mended[0].type_.as_deref(), Some(SUCCEEDED));
        let mut record = judged(record());
        record.conditions = failed;
        assert!(Part::<String, Reported>::key(&record).is_some());
        record.conditions = mended;
        assert_eq!(Part::<String, Reported>::key(&record), None);
    }
}
