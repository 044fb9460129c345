//! What each member has in the Common Area, and which records are refused for what only all of them together show. Pure.
//!
//! A member that has more than it may keeps its oldest records; the newer ones are refused until there is room. So what it adds
//! takes nothing away from what it had. The same records give the same answer in whatever order they came, at the latest after
//! [`READMIT`](account::READMIT).

mod account;

use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

use api::{quota::Quota, resource_export::OVER_QUOTA, resource_import::Objection};
use jiff::Timestamp;
use kit::{
    objects::Change,
    quota::{Listed, known_at_the_most, place},
};
use kube::{ResourceExt, api::ObjectMeta};

use self::account::{Account, Line};
use super::judged::{Judged, Judgement};

/// All records that count, and what was found out about some.
pub(crate) struct Ledger {
    quota: Quota,
    /// By cluster ID.
    accounts: HashMap<String, Account>,
    /// By the names of records: the cluster it counts for, and its age.
    places: HashMap<String, (String, Option<Timestamp>)>,
    /// By the names of records that do not count: their cluster.
    exempt: HashMap<String, String>,
    /// By the names of records: objections to this version of it that it does not show by itself.
    rulings: HashMap<String, (String, Objection)>,
    /// There is room for records of which nothing is known.
    has_room: bool,
    listed: Listed,
}

impl Ledger {
    pub(crate) fn new(quota: Quota) -> Self {
        let (accounts, places, exempt, rulings) = Default::default();
        Self { quota, accounts, places, exempt, rulings, has_room: false, listed: Listed::default() }
    }

    /// Takes in what the watch told; what it means for this and other records.
    pub(crate) fn change(&mut self, change: Change<Judged>, now: Instant) -> Vec<Change<Judged>> {
        match change {
            Change::Apply(record) if self.is_beyond(&record) => Vec::new(),
            Change::Apply(record) => {
                let (name, counts) = (record.name_any(), record.judgement.counts());
                let place = (record.cluster.clone(), place(&record.metadata).0);
                let mut turned = self.leave(&name, Some(place).filter(|_| counts), now);
                if counts {
                    turned.extend(self.enter(&record, now));
                } else {
                    self.put_exempt(name.clone(), &record.cluster);
                }
                turned.retain(|other| other.name_any() != name);
                let record = self.ruled(record);
                [record].into_iter().chain(turned).map(Change::Apply).collect()
            }
            Change::Remove(record) => {
                let name = record.name_any();
                self.rulings.remove(&name);
                let turned = self.leave(&name, None, now);
                [Change::Remove(record)].into_iter().chain(turned.into_iter().map(Change::Apply)).collect()
            }
            Change::Reset(records) => {
                self.reset(&records);
                vec![Change::Reset(records.into_iter().map(|record| self.ruled(record)).collect())]
            }
        }
    }

    fn reset(&mut self, records: &[Judged]) {
        self.listed.ended();
        self.accounts.clear();
        self.places.clear();
        self.exempt.clear();
        let there: HashSet<_> = records.iter().map(ResourceExt::name_any).collect();
        self.rulings.retain(|name, _| there.contains(name));
        for record in records {
            match record.judgement.counts() {
                true => self.put(record),
                false => self.put_exempt(record.name_any(), &record.cluster),
            }
        }
        let most = known_at_the_most(self.quota);
        for account in self.accounts.values_mut() {
            account.measure(self.quota);
            account.has_more = account.len() >= most || account.exempt >= most;
        }
    }

    /// The records that are admitted since it is `now`: they were refused, and have had room for a while.
    pub(crate) fn admit_late(&mut self, now: Instant) -> Vec<Judged> {
        self.accounts.values_mut().flat_map(|account| account.admit_late(self.quota, now)).collect()
    }

    /// Whether all records have to be listed again, since there is room for some of which nothing is known.
    pub(crate) fn wants_list(&mut self, now: Instant) -> bool {
        let wants = self.has_room && self.listed.again(now);
        self.has_room &= !wants;
        wants
    }

    /// Whether it is new, and its member has more than is known of it.
    fn is_beyond(&mut self, record: &Judged) -> bool {
        let name = record.name_any();
        if self.places.contains_key(&name) || self.exempt.contains_key(&name) {
            return false;
        }
        let Some(account) = self.accounts.get_mut(&record.cluster) else { return false };
        let most = known_at_the_most(self.quota);
        let is_beyond = match record.judgement.counts() {
            true => account.len() >= most && account.is_last(&place(&record.metadata)),
            false => account.exempt >= most,
        };
        account.has_more |= is_beyond;
        is_beyond
    }

    /// The record, refused if all that is known speaks against it.
    pub(crate) fn ruled(&mut self, record: Judged) -> Judged {
        let (name, version) = (record.name_any(), version(&record.metadata));
        if self.rulings.get(&name).is_some_and(|(about, _)| *about != version) {
            self.rulings.remove(&name);
        }
        let objection = match record.judgement {
            Judgement::Refused { .. } => None,
            _ if self.is_over(&record) => Some(over_quota(self.quota)),
            _ => self.rulings.get(&name).map(|(_, objection)| objection.clone()),
        };
        match objection {
            Some(objection) => {
                Judged { judgement: Judgement::refused(objection, record.judgement.of()), ..record }
            }
            None => record,
        }
    }

    /// Refuses this version of a record; the record as it is now, unless it is another version or gone.
    pub(crate) fn refuse(&mut self, record: &ObjectMeta, objection: Objection) -> Option<Judged> {
        let (name, version) = (record.name.clone()?, version(record));
        let line = self.line(&name).filter(|line| self::version(&line.metadata) == version)?;
        let refused = line.judged(Judgement::refused(objection.clone(), line.of.clone()));
        self.rulings.insert(name, (version, objection));
        Some(refused)
    }

    /// Takes back what was ruled about a record.
    pub(crate) fn admit(&mut self, record: &ObjectMeta) {
        self.rulings.remove(record.name.as_deref().unwrap_or_default());
    }

    /// Whether what was read is what the watch told last.
    pub(crate) fn is_current(&self, record: &ObjectMeta) -> bool {
        let name = record.name.as_deref().unwrap_or_default();
        let is_same =
            |known: &ObjectMeta| known.uid == record.uid && known.resource_version == record.resource_version;
        self.line(name).is_some_and(|line| is_same(&line.metadata))
    }

    /// Number of records that are too much.
    pub(crate) fn over(&self) -> usize {
        self.accounts.values().map(Account::over).sum()
    }

    fn is_over(&self, record: &Judged) -> bool {
        let refuses = |account: &Account| account.refuses(&place(&record.metadata));
        record.judgement.counts() && self.accounts.get(&record.cluster).is_some_and(refuses)
    }

    fn line(&self, name: &str) -> Option<&Line> {
        let (cluster, created) = self.places.get(name)?;
        self.accounts.get(cluster)?.line(&(*created, name.to_owned()))
    }

    /// Others that are refused or admitted since this record is there.
    fn enter(&mut self, record: &Judged, now: Instant) -> Vec<Judged> {
        self.put(record);
        let account = self.accounts.entry(record.cluster.clone()).or_default();
        account.settle(&place(&record.metadata), self.quota, now)
    }

    fn put(&mut self, record: &Judged) {
        let place = place(&record.metadata);
        self.places.insert(place.1.clone(), (record.cluster.clone(), place.0));
        let line = Line {
            metadata: record.metadata.clone(),
            cluster: record.cluster.clone(),
            bytes: record.bytes,
            of: record.judgement.of(),
            conditions: record.conditions.clone(),
            is_valid: !matches!(record.judgement, Judgement::Refused { .. }),
        };
        self.accounts.entry(record.cluster.clone()).or_default().put(place, line);
    }

    fn put_exempt(&mut self, name: String, cluster: &str) {
        self.accounts.entry(cluster.to_owned()).or_default().exempt += 1;
        self.exempt.insert(name, cluster.to_owned());
    }

    /// Others that are admitted since this record is not there any more; not yet if it is about to enter `again` where it was.
    fn leave(&mut self, name: &str, again: Option<(String, Option<Timestamp>)>, now: Instant) -> Vec<Judged> {
        if let Some(cluster) = self.exempt.remove(name) {
            let account = self.accounts.entry(cluster.clone()).or_default();
            account.exempt -= 1;
            self.left(&cluster);
            return Vec::new();
        }
        let Some((cluster, created)) = self.places.remove(name) else { return Vec::new() };
        let is_back = again.is_some_and(|again| again == (cluster.clone(), created));
        let Some(account) = self.accounts.get_mut(&cluster) else { return Vec::new() };
        let place = (created, name.to_owned());
        account.remove(&place);
        if is_back {
            return Vec::new();
        }
        let turned = account.settle(&place, self.quota, now);
        self.left(&cluster);
        turned
    }

    /// A record left the account of this member.
    fn left(&mut self, cluster: &str) {
        let Some(account) = self.accounts.get_mut(cluster) else { return };
        if account.has_more && account.len().max(account.exempt) < self.quota.records {
            (account.has_more, self.has_room) = (false, true);
        }
        if account.is_empty() {
            self.accounts.remove(cluster);
        }
    }
}

/// What an objection is about: a status does not change it.
fn version(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

fn over_quota(quota: Quota) -> Objection {
    let Quota { records, bytes } = quota;
    let message = format!(
        "the cluster has more than {records} records or more than {bytes} bytes in them; its newest records are not taken in \
         (flags --max-records-per-member and --max-bytes-per-member of freeport-leader)"
    );
    Objection::new(OVER_QUOTA, message)
}

#[cfg(test)]
mod tests;
