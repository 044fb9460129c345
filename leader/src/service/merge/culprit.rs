//! Because of which export an API server refuses an import.
//!
//! What is copied from a record is checked before, so this finds what no check knows: another version of the CRD, an admission
//! policy, a size. The API server is asked with `dryRun`, for the import of the oldest exports alone: the one with which it first
//! refuses is left out. One that refuses whatever is exported leaves out all. What is left out keeps its part, and is tried again.

use std::sync::Arc;

use api::{
    ServiceName, name,
    resource_import::{Objection, ResourceImportSpec, SERVICE_IMPORT},
    view::shortened,
};
use kit::{queue::Outcome, write::Error};
use rules::merge::exported_at;

use super::{Merging, Plan, desired};
use crate::service::{
    index::{
        entry::{Offer, ServiceEntry},
        judged::Judgement,
        record::Record,
    },
    judge::judged,
};

/// Most bytes that are told of what an API server says.
const SAID_MAX: usize = 1000;

/// Exporters with a record to merge, oldest first.
fn by_age(entry: &ServiceEntry) -> Vec<String> {
    let live = entry.offers.iter().filter(|(_, offer)| !offer.payload.withdrawn);
    let mut by_age: Vec<_> =
        live.map(|(cluster, offer)| (exported_at(offer).map(|time| time.0), cluster)).collect();
    by_age.sort();
    by_age.into_iter().map(|(_, cluster)| cluster.clone()).collect()
}

/// The entry as if the records of all others of these exporters were refused.
fn only(entry: &ServiceEntry, oldest: usize, by_age: &[String]) -> ServiceEntry {
    let mut reduced = entry.clone();
    for cluster in &by_age[oldest..] {
        if let Some(offer) = reduced.offers.remove(cluster) {
            reduced.refused.insert(cluster.clone(), offer.metadata.name.clone().unwrap_or_default());
        }
    }
    reduced
}

/// The search for the first number for which something does not hold any more: it holds for `held` and not for `failed`.
struct Search {
    held: usize,
    failed: usize,
}

impl Search {
    /// What to try next; `None` when `failed` is found.
    fn next(&self) -> Option<usize> {
        (self.held + 1 < self.failed).then(|| self.held.midpoint(self.failed))
    }

    fn tried(&mut self, number: usize, holds: bool) {
        *(if holds { &mut self.held } else { &mut self.failed }) = number;
    }
}

impl Merging {
    /// The import of `entry` is refused, in the API server's words: refuses the records because of which it is. The others are merged
    /// when the key is reconciled for that.
    pub(super) async fn leave_out(
        &self,
        service: &ServiceName,
        entry: &ServiceEntry,
        why: String,
    ) -> Result<Outcome, Error> {
        let by_age = by_age(entry);
        // It may take all of it by now.
        if by_age.is_empty() || self.takes(service, entry).await? {
            return Err(Error::Refused(why));
        }
        let left_out = match self.takes_any(service, entry).await? {
            true => vec![self.culprit(service, entry, &by_age).await?],
            false => by_age,
        };
        let message = shortened(why, SAID_MAX);
        for (cluster, offer) in
            left_out.iter().filter_map(|cluster| Some((cluster, entry.offers.get(cluster)?)))
        {
            tracing::warn!(%service, cluster, %message, "the API server refuses the import because of this export: leaving it out");
            self.records.entries.note(service, |entry| entry.left_out.extend([cluster.clone()]));
            let message = format!("the API server of the leader's cluster refuses the import: {message}");
            self.records.refuse(&offer.metadata, Objection::new("ImportRefused", message));
        }
        Ok(Outcome::Done)
    }

    /// The oldest export because of which the import is refused.
    async fn culprit(
        &self,
        service: &ServiceName,
        entry: &ServiceEntry,
        by_age: &[String],
    ) -> Result<String, Error> {
        let mut search = Search { held: 0, failed: by_age.len() };
        while let Some(oldest) = search.next() {
            search.tried(oldest, self.takes(service, &only(entry, oldest, by_age)).await?);
        }
        Ok(by_age.get(search.held).cloned().unwrap_or_default())
    }

    /// Tries whether the API server takes by now what was left out: all of it, or else one by one. Whether something stays left out.
    pub(super) async fn try_again(&self, service: &ServiceName, entry: &ServiceEntry) -> Result<bool, Error> {
        let is_out = |cluster: &String| entry.left_out.contains(cluster);
        let mut out = Vec::new();
        for (cluster, record) in entry.refused.iter().filter(|(cluster, _)| is_out(cluster)) {
            let Some(record) = self.access.api::<Record>().get_opt(record).await? else { continue };
            let judged = judged(record.clone(), &self.access.antrea, &self.access.noted.bounds());
            if let Judgement::Service { payload, .. } = judged.judgement {
                out.push((cluster, record, Offer { metadata: judged.metadata, payload: *payload }));
            }
        }
        let with = |out: &[(&String, Record, Offer)]| {
            let mut trial = entry.clone();
            for (cluster, _, offer) in out {
                trial.refused.remove(*cluster);
                trial.offers.insert((*cluster).clone(), Arc::new(offer.clone()));
            }
            trial
        };
        if out.is_empty() {
            return Ok(false);
        }
        if self.takes(service, &with(&out)).await? {
            // One that changed meanwhile, be it its status, is tried again.
            let admitted: Vec<_> = out.into_iter().map(|(_, record, _)| self.records.admit(record)).collect();
            return Ok(admitted.contains(&false));
        }
        for one in out.chunks(1).filter(|_| out.len() > 1) {
            if self.takes(service, &with(one)).await? {
                one.iter().for_each(|(_, record, _)| {
                    self.records.admit(record.clone());
                });
            }
        }
        Ok(true)
    }

    /// Whether the API server takes an import without any export: otherwise it is not about them.
    async fn takes_any(&self, service: &ServiceName, entry: &ServiceEntry) -> Result<bool, Error> {
        let spec = ResourceImportSpec {
            name: Some(service.name.clone()),
            namespace: Some(service.namespace.clone()),
            kind: Some(SERVICE_IMPORT.into()),
            exporters: Some(vec![]),
            ..ResourceImportSpec::default()
        };
        let want = self.import(name::service_import(service), spec);
        self.writer.would_take(entry.import.as_deref(), &want).await
    }

    async fn takes(&self, service: &ServiceName, entry: &ServiceEntry) -> Result<bool, Error> {
        match desired(service, entry) {
            Plan::Write { import: Some(spec), .. } => {
                let want = self.import(name::service_import(service), spec);
                self.writer.would_take(entry.import.as_deref(), &want).await
            }
            Plan::Write { import: None, .. } | Plan::Hold => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whichever exports are at fault, one of them is found, with few questions.
        #[test]
        fn one_at_fault_is_found(all in 1..300usize, at_fault in prop::collection::btree_set(0..300usize, 1..4)) {
            let at_fault: Vec<_> = at_fault.into_iter().map(|n| n % all).collect();
            let (mut search, mut asked) = (Search { held: 0, failed: all }, 0);
            while let Some(oldest) = search.next() {
                asked += 1;
                search.tried(oldest, at_fault.iter().all(|n| *n >= oldest));
            }
            prop_assert_eq!(search.held, *at_fault.iter().min().unwrap());
            prop_assert!(asked <= 9, "{}", asked);
        }
    }
}
