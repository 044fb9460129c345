//! Merging: watches records of kind `Service`, ResourceImports and Leases; writes ResourceImports; deletes records whose
//! withdrawal is merged, and a ResourceImport nobody exports to any more. For members that run Antrea's controllers ([`antrea`]) it
//! writes a second one with all endpoints, and takes finalizers off. Safe to run twice: what is written is a function
//! of the records, and every deletion names the version it decided on.

use std::collections::BTreeSet;

use api::{
    ServiceName,
    antrea::{Members, RECORD_FINALIZERS},
    name,
    resource_export::ResourceExport,
    resource_import::{Exporter, MergedService, ResourceImportSpec, SERVICE_IMPORT},
    view::Lenient,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    queue::Outcome,
    store::Store,
    write::{Error, Writer},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PartialObjectMeta},
};
use presence::vouch::Vouching;

use super::{
    antrea,
    entry::{Import, MERGE, Offer, ServiceEntry},
    judge::{Judged, Judgement},
    merged::{conflicts, merged, together},
};

/// What a look at one Service name comes to.
#[derive(Clone, Debug, PartialEq)]
enum Plan {
    /// Records of these clusters vanished unsaid: the import stays as it is until their members vouch.
    Hold { missing: BTreeSet<String> },
    /// The import as it has to be (`None`: there is none and there must be none), then these records to delete.
    Write { import: Option<ResourceImportSpec>, withdrawn: Vec<ObjectMeta> },
}

fn desired(service: &ServiceName, entry: &ServiceEntry) -> Plan {
    let have = entry.import.as_ref().and_then(|import| import.spec.0.as_ref().ok());
    let named = have.and_then(|spec| spec.exporters.as_deref()).unwrap_or_default();
    let known = |cluster: &String| entry.offers.contains_key(cluster) || entry.unjudged.contains_key(cluster);
    let vanished = |cluster: &String| !known(cluster) && !entry.confirmed_gone.contains(cluster);
    let missing: BTreeSet<_> = named.iter().map(|e| e.cluster_id.clone()).filter(vanished).collect();
    if !missing.is_empty() {
        return Plan::Hold { missing };
    }
    let (gone, live): (Vec<_>, Vec<_>) = entry.offers.iter().partition(|(_, offer)| offer.payload.withdrawn);
    let withdrawn = gone.into_iter().map(|(_, offer)| offer.metadata.clone()).collect();
    // Whoever said something that cannot be judged keeps what it had, until it says something that can.
    let kept: Vec<_> = named.iter().filter(|e| entry.unjudged.contains_key(&e.cluster_id)).cloned().collect();
    if live.is_empty() && kept.is_empty() && have.is_none() {
        return Plan::Write { import: None, withdrawn };
    }
    if live.is_empty() && have.is_some_and(|spec| spec.exporters.is_none()) {
        // An import that never named its exporters is not known to have lost them all.
        return Plan::Hold { missing: BTreeSet::new() };
    }
    let (merged, mut exporters) =
        merge(live.into_iter().map(|(cluster, offer)| (cluster.as_str(), offer)).collect());
    let age = |e: &Exporter| (e.exported_at.as_ref().map(|time| time.0), e.cluster_id.clone());
    let oldest_live = exporters.first().map(age);
    let kept_is_oldest =
        kept.iter().map(age).min().is_some_and(|kept| oldest_live.is_none_or(|live| kept < live));
    let had = have.and_then(|spec| spec.service_import.clone());
    let service_import = match (had, merged) {
        (Some(had), Some(merged)) if kept_is_oldest => Some(together(had, &merged)),
        (Some(had), Some(merged)) if !kept.is_empty() => Some(together(merged, &had)),
        (had, merged) => merged.or(had),
    };
    exporters.extend(kept);
    exporters.sort_by_key(age);
    let spec = ResourceImportSpec {
        name: Some(service.name.clone()),
        namespace: Some(service.namespace.clone()),
        kind: Some(SERVICE_IMPORT.into()),
        service_import,
        exporters: Some(exporters),
        ..ResourceImportSpec::default()
    };
    Plan::Write { import: Some(spec), withdrawn }
}

/// The merged Service and a verdict for each exporter, oldest first; the same input in any order gives the same output.
/// Precedence is the age of the export (rule R-34), then the cluster ID.
fn merge(mut offers: Vec<(&str, &Offer)>) -> (Option<MergedService>, Vec<Exporter>) {
    offers.sort_by_key(|(cluster, offer)| (exported_at(offer).map(|time| time.0), *cluster));
    let exported: Vec<_> = offers.iter().map(|(cluster, offer)| (*cluster, &offer.payload)).collect();
    let verdicts = offers.iter().zip(conflicts(&exported));
    let exporters = verdicts.map(|((cluster, offer), conflicts)| Exporter {
        cluster_id: (*cluster).to_owned(),
        exported_at: exported_at(offer),
        observed: observed(&offer.metadata),
        conflicts,
        refused: None,
    });
    (merged(&exported), exporters.collect())
}

/// When the export was made; a record that does not say it (Antrea's do not) is as old as itself.
fn exported_at(offer: &Offer) -> Option<Time> {
    offer.payload.exported_at.clone().or_else(|| offer.metadata.creation_timestamp.clone())
}

/// What a verdict is about, so that an exporter can tell it from one about an older record.
fn observed(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub struct Merging {
    /// Everything known about each Service name.
    pub store: Store<ServiceName, ServiceEntry>,
    /// What the members' Leases say.
    pub vouching: Vouching<ServiceName>,
    /// Writes to the Common Area.
    pub writer: Writer,
    /// Reads from it.
    pub client: Client,
    /// Its name.
    pub common_area: String,
    /// The members that write and read as Antrea does.
    pub antrea: Members,
}

impl Merging {
    /// Brings the ResourceImport of one Service name up to date.
    pub async fn reconcile(self, service: ServiceName) -> Result<Outcome, Error> {
        let Some(entry) = self.store.get(&service) else {
            self.vouching.keep(&service, &BTreeSet::new());
            return Ok(Outcome::Done);
        };
        match desired(&service, &entry) {
            Plan::Hold { missing } => self.hold(&service, missing).await,
            Plan::Write { import, withdrawn } => {
                self.vouching.keep(&service, &BTreeSet::new());
                let endpoints = antrea::desired(&service, &entry, import.as_ref(), &self.antrea);
                let held = antrea::held(&entry);
                self.write(&service, &entry, import, endpoints, [withdrawn, held].concat()).await
            }
        }
    }

    async fn hold(&self, service: &ServiceName, missing: BTreeSet<String>) -> Result<Outcome, Error> {
        let writers = missing.iter().map(|cluster| name::member_lease(cluster)).collect();
        self.vouching.keep(service, &writers);
        for cluster in missing {
            let writer = name::member_lease(&cluster);
            let record = self.antrea.service_export(&cluster, service);
            let missing = [record.clone()].into();
            if !self.vouching.doubt(service, &writer, &missing) {
                tracing::info!(%service, cluster, "its record vanished unsaid: keeping its part in the import");
                continue;
            }
            let records =
                Api::<PartialObjectMeta<ResourceExport>>::namespaced(self.client.clone(), &self.common_area);
            // Without a resourceVersion the API server answers from what is true now, not from a cache.
            if records.get_opt(&record).await?.is_none() {
                tracing::info!(%service, cluster, "its record is gone, and its member vouches for that");
                self.store.note(service, |entry| {
                    // Unless it came back while we asked.
                    if !entry.offers.contains_key(&cluster) && !entry.unjudged.contains_key(&cluster) {
                        entry.confirmed_gone.insert(cluster);
                    }
                });
                return Ok(Outcome::Requeue(std::time::Duration::ZERO));
            }
        }
        Ok(Outcome::Done)
    }

    async fn write(
        &self,
        service: &ServiceName,
        have: &ServiceEntry,
        want: Option<ResourceImportSpec>,
        endpoints: antrea::Step,
        withdrawn: Vec<ObjectMeta>,
    ) -> Result<Outcome, Error> {
        let nobody = want.as_ref().is_some_and(|spec| spec.exporters.as_ref().is_some_and(Vec::is_empty));
        let written = match want {
            Some(spec) => self.put(name::service_import(service), have.import.as_ref(), spec).await?,
            None => None,
        };
        match endpoints {
            antrea::Step::Keep => {}
            antrea::Step::Put(spec) => {
                let have = have.endpoints_import.as_ref();
                self.put(name::endpoints_import(service), have, *spec).await?;
            }
            antrea::Step::Remove(import) => self.remove(&import).await?,
        }
        self.delete(withdrawn).await?;
        if let Some(import) = written.or_else(|| have.import.clone()).filter(|_| nobody) {
            self.remove(&import).await?;
        }
        Ok(Outcome::Done)
    }

    async fn put(
        &self,
        name: String,
        have: Option<&Import>,
        spec: ResourceImportSpec,
    ) -> Result<Option<Import>, Error> {
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(self.common_area.clone()),
            ..ObjectMeta::default()
        };
        let want = Import { metadata, spec: Lenient(Ok(spec)) };
        self.store.put(&self.writer, MERGE, have, &want).await
    }

    async fn remove(&self, import: &Import) -> Result<(), Error> {
        self.store.delete(&self.writer, MERGE, import, true).await
    }

    /// Deletes withdrawn records, each only as it was when its withdrawal was merged: it may be an offer again by now. Those that
    /// their members deleted, and that wait for us, are let go.
    async fn delete(&self, withdrawn: Vec<ObjectMeta>) -> Result<(), Error> {
        for metadata in withdrawn {
            let record = Judged { metadata, judgement: Judgement::Passed, conditions: vec![] };
            if antrea::is_held(&record.metadata) {
                self.writer.release(&record, &RECORD_FINALIZERS).await?;
                self.store.deleted(MERGE, &record);
            } else {
                self.store.delete(&self.writer, MERGE, &record, true).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
