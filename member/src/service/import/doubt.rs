//! Finding out whether what is missing is meant to be: waits until its writer vouches for it, then asks the leader's API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use api::{
    ServiceName, label, name,
    resource_export::{ENDPOINT_SLICE, ResourceExport},
    resource_import::ResourceImport,
    view::Named,
};
use kit::{list, write::Error};
use kube::{Api, ResourceExt, api::ListParams};
use presence::vouch::WriterState;

use super::{
    Importing,
    continuity::{self, Writers},
    plan::Doubt,
    withdrawals::Said,
};
use crate::service::index::{known::Known, view::Offered};

impl Importing {
    /// Looks after what is missing: whether a writer has vouched for it and a read confirmed it, so that the plan changes. A read
    /// that fails does not keep the others from being made.
    pub(super) async fn settle(
        &self,
        known: &Known,
        writers: &Writers,
        doubts: &[Doubt],
    ) -> Result<bool, Error> {
        let service = &known.service;
        let mut missing = BTreeMap::<String, BTreeSet<String>>::new();
        let mut by_writer = Vec::new();
        for doubt in doubts {
            if let Some(writer) = self.who_vouches(writers, known, doubt) {
                missing.entry(writer.clone()).or_default().extend(what_is_missing(service, doubt));
                by_writer.push((writer, doubt));
            } else {
                tracing::info!(%service, ?doubt,
                    "records are missing and nobody can confirm it: keeping what is imported until the cluster returns or is removed \
                     with freeport leave --force"
                );
            }
        }
        self.vouching.keep(service, &missing.keys().cloned().collect());
        self.metrics.doubted(self.vouching.doubted());
        let vouched = missing.iter().filter(|(writer, what)| self.vouching.doubt(service, writer, what));
        let vouched: BTreeSet<String> = vouched.map(|(writer, _)| writer.clone()).collect();
        let (mut changed, mut failed) = (false, None);
        for (writer, doubt) in by_writer {
            if !vouched.contains(&writer) {
                tracing::info!(%service, writer, ?doubt, "records vanished without being withdrawn: keeping what is imported");
                continue;
            }
            let gone = match doubt {
                Doubt::Import => self.confirm_import_gone(service).await,
                Doubt::Part { cluster } => self.confirm_part_gone(service, cluster).await,
                Doubt::Slices { cluster, .. } => self.confirm_slices_gone(known, cluster).await,
            };
            match gone {
                Ok(true) => changed = true,
                Ok(false) => self.vouching.doubt_again(service, &writer),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) if !changed => Err(error),
            _ => Ok(changed),
        }
    }

    /// The Lease of who has to vouch for it: who writes the record. For a cluster that has no Lease, so does not belong to the set any
    /// more, it is the leader, but only one that can have known the cluster: a new or restored leader has not.
    fn who_vouches(&self, writers: &Writers, known: &Known, doubt: &Doubt) -> Option<String> {
        let cluster = match doubt {
            Doubt::Import => return Some(name::LEADER_LEASE.into()),
            Doubt::Part { cluster } | Doubt::Slices { cluster, .. } => cluster,
        };
        let writer = name::member_lease(cluster);
        let belongs = self.vouching.state(&writer) != WriterState::Unknown;
        match (belongs, writers.leader_is_the_same(known)) {
            (true, _) => Some(writer),
            (false, true) => Some(name::LEADER_LEASE.into()),
            (false, false) => None,
        }
    }

    /// Whether all clusters that have a part here have taken it back themselves. What was asked for only just now is as it was then.
    pub(super) async fn have_said(&self, known: &Known, writers: &Writers) -> Said {
        let (service, entry) = (&known.service, &known.entry);
        let mut here = continuity::had(known);
        here.retain(|cluster| !entry.parts_gone.contains(cluster) && !continuity::is_evicted(known, cluster));
        if here.is_empty() {
            return Said::Yes;
        }
        let with_slices = here.iter().filter(|cluster| entry.peers.contains_key(*cluster)).cloned().collect();
        let is_due = self.withdrawals.with(|all| all.asks(service, with_slices, Instant::now()));
        let offers = here.remove(known.us()) && entry.last_exported.is_some();
        if !is_due && !offers && !here.is_empty() {
            return self.withdrawals.with(|all| all.said(service));
        }
        let mut said = if offers { Said::No } else { Said::Yes };
        for cluster in here.iter().take_while(|_| !offers) {
            let has_said = self.has_said(known, writers, cluster).await;
            said = said.max(*has_said.as_ref().unwrap_or(&Said::Unknown));
            if said != Said::Yes {
                tracing::info!(%service, cluster, ?has_said,
                    "the leader takes back much at once, and not all clusters have taken this back: keeping what is imported"
                );
                break;
            }
        }
        self.withdrawals.with(|all| all.answered(service, said));
        said
    }

    /// Whether the cluster has taken its part back: by its record, or as one that has left, or as one that lives and has no records any more:
    /// it puts back what it has not taken back.
    async fn has_said(&self, known: &Known, writers: &Writers, cluster: &str) -> Result<Said, Error> {
        if writers.is_outdated(cluster) {
            return Ok(Said::No);
        }
        let records = Api::<Offered>::namespaced(self.leader.clone(), &self.us.common_area);
        if let Some(record) = records.get_opt(&self.antrea.service_export(cluster, &known.service)).await? {
            return Ok(if self.is_taken_back(cluster, &record) { Said::Yes } else { Said::No });
        }
        let lease = name::member_lease(cluster);
        let counts = match self.vouching.state(&lease) {
            // What is left of it is on its way out.
            WriterState::Left => return Ok(Said::Yes),
            WriterState::Belongs => self.vouching.lives(&lease),
            WriterState::Unknown => writers.leader_is_the_same(known),
        };
        // Its slices go after its record, and its word counts when it is heard.
        let has_gone = counts && !known.entry.peers.contains_key(cluster);
        Ok(if has_gone { Said::Yes } else { Said::Unknown })
    }

    fn is_taken_back(&self, cluster: &str, record: &Offered) -> bool {
        // Antrea's way to say it.
        let is_going = self.antrea.contains(cluster) && record.metadata.deletion_timestamp.is_some();
        record.is_withdrawn() || is_going
    }

    /// Asks for the record by which the cluster would take part, and if it has one, waits for the leader to name it.
    async fn confirm_part_gone(&self, service: &ServiceName, cluster: &str) -> Result<bool, Error> {
        let records = Api::<Offered>::namespaced(self.leader.clone(), &self.us.common_area);
        let record = records.get_opt(&self.antrea.service_export(cluster, service)).await?;
        let gone = record.as_ref().is_none_or(|record| self.is_taken_back(cluster, record));
        if gone {
            tracing::info!(%service, cluster, "the cluster does not export this Service any more, and this is confirmed");
            self.knowledge.services.note(service, |entry| {
                entry.parts_gone.insert(cluster.to_owned());
            });
        }
        Ok(gone)
    }

    async fn confirm_import_gone(&self, service: &ServiceName) -> Result<bool, Error> {
        let api = Api::<Named<ResourceImport>>::namespaced(self.leader.clone(), &self.us.common_area);
        // Without a resourceVersion the API server answers from what is true now, not from a cache.
        let there = api.get_opt(&self.antrea.service_import(service)).await?;
        if there.is_none() {
            tracing::info!(%service, "the ResourceImport is gone, and the leader confirms it");
            self.knowledge.services.note(service, |entry| entry.import_gone = entry.leader_import.is_none());
        }
        Ok(there.is_none())
    }

    async fn confirm_slices_gone(&self, known: &Known, cluster: &str) -> Result<bool, Error> {
        let (service, entry) = (&known.service, &known.entry);
        let api = Api::<Named<ResourceExport>>::namespaced(self.leader.clone(), &self.us.common_area);
        if self.antrea.contains(cluster) {
            return self.confirm_endpoints_gone(known, cluster, api).await;
        }
        let selector = format!(
            "{}={cluster},{}={},{}={}",
            label::SOURCE_CLUSTER_ID,
            label::SOURCE_NAMESPACE,
            service.namespace,
            label::SOURCE_NAME,
            service.name,
        );
        let slice = |record: Named<ResourceExport>| {
            let is_slice = record.labels().get(label::SOURCE_KIND).is_some_and(|kind| kind == ENDPOINT_SLICE);
            (name::imported_slice(&service.name, &record.name_any()), is_slice)
        };
        let listed = list::all(&api, ListParams::default().labels(&selector), slice).await?;
        // A cluster without a Lease has left, unless other records of it stand: one that runs Antrea's controllers and is not
        // marked any more keeps its endpoints in a record of another kind.
        let has_lease = self.vouching.state(&name::member_lease(cluster)) != WriterState::Unknown;
        if !has_lease && !listed.iter().all(|(_, is_slice)| *is_slice) {
            return Ok(false);
        }
        let there: BTreeSet<_> = listed.into_iter().map(|(name, _)| name).collect();
        let gone: BTreeSet<_> =
            entry.imported_from(cluster).filter(|slice| !there.contains(*slice)).cloned().collect();
        let new = gone.iter().any(|slice| !entry.slices_gone.contains(slice));
        if new {
            tracing::info!(%service, cluster, "slice records are gone, and their cluster confirms it");
            self.knowledge.services.note(service, |entry| {
                // But for those that came back while we asked.
                let back: BTreeSet<_> = entry.to_import_from(service, cluster).collect();
                entry.slices_gone.extend(gone.difference(&back).cloned());
            });
        }
        Ok(new)
    }

    /// A member that runs Antrea's controllers has one record for all its slices.
    async fn confirm_endpoints_gone(
        &self,
        known: &Known,
        cluster: &str,
        records: Api<Named<ResourceExport>>,
    ) -> Result<bool, Error> {
        let service = &known.service;
        let gone = records.get_opt(&self.antrea.endpoints_export(cluster, service)).await?.is_none();
        if gone {
            tracing::info!(%service, cluster, "the record of endpoints is gone, and the cluster's heartbeats went on");
            let slices: Vec<_> = known.entry.imported_from(cluster).cloned().collect();
            self.knowledge.services.note(service, |entry| {
                if !entry.is_complete(cluster) {
                    entry.slices_gone.extend(slices);
                }
            });
        }
        Ok(gone)
    }
}

/// Names of the records that are missing.
fn what_is_missing(service: &ServiceName, doubt: &Doubt) -> BTreeSet<String> {
    match doubt {
        Doubt::Import => [name::service_import(service)].into(),
        Doubt::Part { cluster } => [name::service_export(cluster, service)].into(),
        Doubt::Slices { missing, .. } => missing.clone(),
    }
}
