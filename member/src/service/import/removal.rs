//! The end of an import: its slices, its Endpoints and its Service are deleted, and last the ServiceImport, which notes what is needed to
//! finish after a restart. Where the API server refuses a deletion, the ServiceImport reports it.

use api::{
    ServiceName,
    condition::{Status, Verdict, already_said, conditions},
    mcs::{READY, ServiceImportSpec, ServiceImportStatus},
    view::Lenient,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{index::Part, write::Error};
use kube::{Resource, ResourceExt};

use super::{Importing, verdict::transition};
use crate::service::{
    index::{
        IMPORT,
        entry::ServiceEntry,
        known::Known,
        view::{Import, is_made},
    },
    irregular::NotReady,
};

impl Importing {
    /// Deletes all that is here of an import. Its address is remembered: the import may come back.
    pub(super) async fn remove(&self, known: &Known) -> Result<(), Error> {
        let (entry, mut failed) = (&known.entry, None);
        self.addresses.ends(known, Timestamp::now());
        for slice in entry.imported_slices.values() {
            failed = failed.or(self.delete(&**slice).await.err());
        }
        if let Some(endpoints) = entry.imported_endpoints.as_deref() {
            failed = failed.or(self.delete(endpoints).await.err());
        }
        let service = self.remove_service(entry).await.err();
        let has_service = service.is_some();
        failed = failed.or(service);
        let Some(import) = entry.own_import() else { return failed.map_or(Ok(()), Err) };
        if failed.is_none() {
            failed = self.delete(import).await.err();
        }
        let Some(error) = failed else {
            self.note_ready(&known.service, None);
            return Ok(());
        };
        if let Some(words) = error.refusal() {
            self.note_ready(&known.service, NotReady::of(&refused(&words)));
            self.report_refused(import, has_service, &words).await?;
        }
        Err(error)
    }

    /// Deletes an object of an import, whatever somebody put on it to hold it. What we did not make, a copy that has our name, stays.
    pub(super) async fn delete<P: Part<ServiceName, ServiceEntry, DynamicType = ()>>(
        &self,
        object: &P,
    ) -> Result<(), Error> {
        if !is_made(object) {
            return Ok(());
        }
        let held: Vec<_> = object.finalizers().iter().map(String::as_str).collect();
        if !held.is_empty() {
            self.writer.release(object, &held).await?;
        }
        self.knowledge.services.delete(&self.writer, IMPORT, object, false).await
    }

    /// Reports on the ServiceImport that the API server refuses to delete what was imported, with an Event when the condition changes.
    /// `has_service`: the Service is among what stays.
    async fn report_refused(&self, import: &Import, has_service: bool, words: &str) -> Result<(), Error> {
        let written = match without_addresses(import).filter(|_| !has_service) {
            Some(want) => self.knowledge.put_imported(&self.writer, Some(import), &want).await,
            None => Ok(None),
        };
        let written = match written {
            // The status is the more important part.
            Err(error) if error.refusal().is_some() => None,
            written => written?,
        };
        let import = written.as_ref().unwrap_or(import);
        let (verdict, have) = (refused(words), import.status.0.clone().unwrap_or_default());
        let now = Time(Timestamp::now());
        let status = status(&verdict, &have, import.metadata.generation, &now);
        let want = self.writer.known::<Import, _>(&status)?;
        if have.clusters == want.clusters && already_said(&have.conditions, &want.conditions) {
            return Ok(());
        }
        self.knowledge.services.put_status(&self.writer, IMPORT, import, &want).await?;
        if transition(&have.conditions, &verdict).is_some() {
            self.events.warn(import.object_ref(&()), "Import", &verdict.reason, &verdict.message);
        }
        Ok(())
    }
}

/// Returns the ServiceImport without the addresses of its Service, which are free by now; `None` if it has none. `ips` and `ipFamilies`
/// agree.
fn without_addresses(import: &Import) -> Option<Import> {
    let spec = import.spec.0.as_ref().ok().filter(|spec| !spec.ips.is_empty())?;
    let spec = ServiceImportSpec { ips: vec![], ip_families: vec![], ..spec.clone() };
    Some(Import { spec: Lenient(Ok(spec)), ..import.clone() })
}

/// Returns the status of an import that no cluster exports any more.
fn status(
    verdict: &Verdict,
    have: &ServiceImportStatus,
    generation: Option<i64>,
    now: &Time,
) -> ServiceImportStatus {
    let conditions = conditions(std::slice::from_ref(verdict), &have.conditions, generation, now);
    ServiceImportStatus { clusters: vec![], conditions, endpoint_slice_objects: None }
}

fn refused(words: &str) -> Verdict {
    let message = format!(
        "no cluster exports this Service any more, and the API server refuses to delete what was imported: {words:?}. Change what refuses it; \
         freeport-member tries again within a minute"
    );
    Verdict::new(READY, Status::False, "DeletionRefused", message)
}

#[cfg(test)]
mod tests {
    use api::mcs::ImportedCluster;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_deleted_has_no_clusters_and_no_addresses_that_are_free() {
        let mut import: Import = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"type": "ClusterSetIP", "ips": ["10.98.1.1"], "ipFamilies": ["IPv4"], "ports": [{"port": 80}]},
        }))
        .unwrap();
        let freed = without_addresses(&import).unwrap();
        let spec = freed.spec.0.as_ref().unwrap();
        assert!(spec.ips.is_empty() && spec.ip_families.is_empty() && spec.ports.len() == 1, "{spec:?}");
        assert_eq!(without_addresses(&freed), None, "written once");
        import.spec = Lenient(Err("odd".into()));
        assert_eq!(without_addresses(&import), None);

        let now = Time(Timestamp::UNIX_EPOCH);
        let clusters = vec![ImportedCluster { cluster: "east".into() }];
        let ready = Verdict::new(READY, Status::True, "Ready", "the imported Service is in place");
        let have = ServiceImportStatus {
            clusters,
            conditions: conditions(&[ready], &[], None, &now),
            ..ServiceImportStatus::default()
        };
        let said = status(&refused("not this one"), &have, None, &now);
        assert!(said.clusters.is_empty());
        let [ready] = said.conditions.as_slice() else { panic!("{said:?}") };
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "DeletionRefused"));
        assert!(ready.message.contains("\"not this one\""));
        assert!(transition(&have.conditions, &refused("not this one")).is_some());
        assert_eq!(transition(&said.conditions, &refused("not this one")), None, "one Event");
    }
}
