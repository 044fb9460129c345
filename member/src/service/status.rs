//! ExportStatus users how their export stands: watches ServiceExports, Services, and for each our record and the leader's
//! verdict; writes the `Valid` and `Ready` conditions of ServiceExports; deletes nothing. Safe to run twice: conditions are
//! applied only when they say something else.

use api::{
    ServiceName,
    condition::{Condition, Status, Verdict, already_said, conditions},
    mcs::{READY, ServiceExportStatus, VALID},
    resource_export::FAILURE,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    queue::Outcome,
    watch::Watches,
    write::{Error, Writer},
};
use kube::Resource;

use super::{
    entry::ServiceEntry,
    export::{Invalid, offer},
    knowledge::Knowledge,
};

/// What there is to say about the ServiceExport: whether the Service can be exported (rules ), and whether the
/// leader has it.
fn desired(cluster: &str, service: &ServiceName, entry: &ServiceEntry) -> Vec<Verdict> {
    match offer(cluster, service, entry) {
        Ok(None) => vec![],
        Err(Invalid { reason, message }) => vec![
            Verdict::new(VALID, Status::False, reason, message),
            Verdict::new(READY, Status::False, "Pending", "not exported, because it is not valid"),
        ],
        Ok(Some(_)) => {
            vec![
                Verdict::new(VALID, Status::True, "Valid", "the Service can be exported"),
                ready(cluster, entry),
            ]
        }
    }
}

fn ready(cluster: &str, entry: &ServiceEntry) -> Verdict {
    let pending = |message: &str| Verdict::new(READY, Status::Unknown, "Pending", message);
    let failed = |message: String| Verdict::new(READY, Status::False, "Failed", message);
    let Some(record) = &entry.own_service else {
        return pending("not yet told to the leader");
    };
    let said = record.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if let Some(failure) = said.iter().find(|condition| condition.type_.as_deref() == Some(FAILURE)) {
        let (reason, message) = (failure.reason.clone(), failure.message.clone());
        return failed(format!("{}: {}", reason.unwrap_or_default(), message.unwrap_or_default()));
    }
    let observed = format!(
        "{}/{}",
        record.metadata.uid.as_deref().unwrap_or_default(),
        record.metadata.generation.unwrap_or_default()
    );
    let exporters = entry.hub_import.iter().flat_map(|import| import.spec.exporters.iter().flatten());
    // A verdict on an older record says nothing about this one.
    match exporters.into_iter().find(|e| e.cluster_id == cluster && e.observed == observed) {
        Some(verdict) => match &verdict.refused {
            Some(refused) => failed(format!("{}: {}", refused.reason, refused.message)),
            None => Verdict::new(READY, Status::True, "Exported", "the leader has merged this export"),
        },
        None => pending("told to the leader, which has not merged it yet"),
    }
}

/// Before the Common Area has been seen nothing is known of the leader's verdict: what was said of it stands.
fn keep_ready(want: &mut [Condition], have: &[Condition]) {
    let ready = |c: &&Condition| c.type_ == READY;
    if let (Some(want), Some(have)) = (want.iter_mut().find(|c| ready(&&**c)), have.iter().find(ready)) {
        *want = have.clone();
    }
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct ExportStatus {
    /// Our cluster ID.
    pub cluster: String,
    /// Everything this member knows.
    pub knowledge: Knowledge,
    /// The watches of the Common Area.
    pub hub: Watches,
    /// Writes to this cluster.
    pub writer: Writer,
    /// Where to leave Events.
    pub events: Events,
}

impl ExportStatus {
    /// Brings the conditions of one ServiceExport up to date.
    pub async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let told = self.knowledge.known.with(|known| {
            let entry = known.services.get(&service)?;
            Some((entry.export.clone()?, desired(&self.cluster, &service, entry)))
        });
        let Some((export, verdicts)) = told.filter(|(_, verdicts)| !verdicts.is_empty()) else {
            return Ok(Outcome::Done);
        };
        let have = export.status.0.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let mut want = conditions(&verdicts, have, export.metadata.generation, &Time(Timestamp::now()));
        if !self.hub.are_listed() && verdicts.iter().all(|verdict| verdict.status != Status::False) {
            keep_ready(&mut want, have);
        }
        if already_said(have, &want) {
            return Ok(Outcome::Done);
        }
        let said = |type_: &str| {
            have.iter().find(|c| c.type_ == type_).map(|c| (c.status.as_str(), c.reason.as_str()))
        };
        for verdict in verdicts.iter().filter(|v| v.status == Status::False && v.reason != "Pending") {
            if said(verdict.type_) != Some((verdict.status.as_str(), &verdict.reason)) {
                self.events.warn(export.object_ref(&()), "Export", &verdict.reason, &verdict.message);
            }
        }
        match self.writer.put_status(&export, &ServiceExportStatus { conditions: want }).await {
            // Deleted meanwhile: nobody is left to be told.
            Err(Error::Gone) => Ok(Outcome::Done),
            Err(error) => Err(error),
            Ok(told) => {
                self.knowledge.echo(told);
                Ok(Outcome::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::resource_import::{Exporter, Objection, ResourceImportSpec};

    use super::*;
    use crate::service::{
        entry::{HubRecord, Unexported},
        export::tests::{entry, own_record},
    };

    fn says(entry: &ServiceEntry) -> Vec<(&'static str, &'static str, String)> {
        let verdicts = desired("east", &ServiceName::new("shop", "web"), entry);
        verdicts.into_iter().map(|v| (v.type_, v.status.as_str(), v.reason)).collect()
    }

    #[test]
    fn conditions_follow_the_export_on_its_way() {
        let mut entry = entry();
        assert_eq!(says(&entry)[0], (VALID, "True", "Valid".into()));
        assert_eq!(says(&entry)[1], (READY, "Unknown", "Pending".into()));

        entry.own_service = Some(own_record("u1", 2));
        let verdict = |observed: &str, refused: Option<Objection>| {
            let exporter = Exporter {
                cluster_id: "east".into(),
                observed: observed.into(),
                refused,
                ..Exporter::default()
            };
            let spec =
                ResourceImportSpec { exporters: Some(vec![exporter]), ..ResourceImportSpec::default() };
            Some(HubRecord { spec, ..HubRecord::default() })
        };
        entry.hub_import = verdict("u1/1", None);
        assert_eq!(says(&entry)[1], (READY, "Unknown", "Pending".into()), "a verdict on an older record");
        entry.hub_import = verdict("u1/2", None);
        assert_eq!(says(&entry)[1], (READY, "True", "Exported".into()));
        entry.hub_import =
            verdict("u1/2", Some(Objection { reason: "TooManyPorts".into(), message: "m".into() }));
        assert_eq!(says(&entry)[1], (READY, "False", "Failed".into()));

        entry.service = None;
        assert_eq!(says(&entry)[0], (VALID, "False", "NoService".into()));
        (entry.export, entry.unexported) = (None, Some(Unexported::Decided));
        assert!(says(&entry).is_empty());
    }
}
