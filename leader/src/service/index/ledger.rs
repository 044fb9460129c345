//! What each member has in the Common Area, and which records are refused for what only all of them together show. Pure.
//!
//! A member that has more than it may keeps its oldest records; the newer ones are refused until there is room. So what it adds
//! takes nothing away from what it had. The same records give the same answer in whatever order they came.

use std::collections::{BTreeMap, HashMap, HashSet};

use api::{ServiceName, condition::AntreaCondition, resource_export::OVER_QUOTA, resource_import::Objection};
use jiff::Timestamp;
use kit::objects::Change;
use kube::{ResourceExt, api::ObjectMeta};

use super::judged::{Judged, Judgement};
use crate::limits::Limits;

/// Records by age, and those of one age by name.
pub(super) type Place = (Option<Timestamp>, String);

/// Of how many records of a member it is known that they are there: of as many as it may have it is said that they are too much.
pub(super) fn known_at_the_most(limits: Limits) -> usize {
    limits.records.saturating_mul(2)
}

/// All records that count, and what was found out about some.
pub(crate) struct Ledger {
    limits: Limits,
    /// By cluster ID.
    accounts: HashMap<String, Account>,
    /// By the names of records: the cluster it counts for, and its age.
    places: HashMap<String, (String, Option<Timestamp>)>,
    /// By the names of records: objections to this version of it that it does not show by itself.
    rulings: HashMap<String, (String, Objection)>,
    /// There is room for records of which nothing is known.
    has_room: bool,
}

/// What one member has.
#[derive(Default)]
struct Account {
    records: BTreeMap<Place, Line>,
    bytes: usize,
    /// The first record that is too much, and how many are older.
    over: Option<(Place, usize)>,
    /// There are records of which nothing is known.
    has_more: bool,
}

/// What is kept of a record, however large it is.
struct Line {
    metadata: ObjectMeta,
    cluster: String,
    bytes: usize,
    of: Option<(String, ServiceName)>,
    conditions: Vec<AntreaCondition>,
    /// Not refused for what it says itself.
    is_valid: bool,
}

impl Ledger {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            accounts: HashMap::new(),
            places: HashMap::new(),
            rulings: HashMap::new(),
            has_room: false,
        }
    }

    /// Takes in what the watch told; what it means for this and other records.
    pub(crate) fn change(&mut self, change: Change<Judged>) -> Vec<Change<Judged>> {
        match change {
            Change::Apply(record) if self.is_beyond(&record) => Vec::new(),
            Change::Apply(record) => {
                let (name, counts) = (record.name_any(), record.judgement.counts());
                let now = (record.cluster.clone(), place(&record.metadata).0);
                let mut turned = self.leave(&name, Some(now).filter(|_| counts));
                if counts {
                    turned.extend(self.enter(&record));
                }
                turned.retain(|other| other.name_any() != name);
                let record = self.ruled(record);
                [record].into_iter().chain(turned).map(Change::Apply).collect()
            }
            Change::Remove(record) => {
                let name = record.name_any();
                self.rulings.remove(&name);
                let turned = self.leave(&name, None);
                [Change::Remove(record)].into_iter().chain(turned.into_iter().map(Change::Apply)).collect()
            }
            Change::Reset(records) => {
                self.accounts.clear();
                self.places.clear();
                let there: HashSet<_> = records.iter().map(ResourceExt::name_any).collect();
                self.rulings.retain(|name, _| there.contains(name));
                for record in records.iter().filter(|record| record.judgement.counts()) {
                    self.put(record);
                }
                for account in self.accounts.values_mut() {
                    account.measure(self.limits);
                    account.has_more = account.records.len() >= known_at_the_most(self.limits);
                }
                vec![Change::Reset(records.into_iter().map(|record| self.ruled(record)).collect())]
            }
        }
    }

    /// Whether all records have to be listed again, since there is room for some of which nothing is known.
    pub(crate) fn wants_list(&mut self) -> bool {
        std::mem::take(&mut self.has_room)
    }

    /// Whether its member has more than is known of it.
    fn is_beyond(&mut self, record: &Judged) -> bool {
        if !record.judgement.counts() || self.places.contains_key(&record.name_any()) {
            return false;
        }
        let Some(account) = self.accounts.get_mut(&record.cluster) else { return false };
        let is_last =
            account.records.last_key_value().is_some_and(|(last, _)| place(&record.metadata) > *last);
        let is_beyond = is_last && account.records.len() >= known_at_the_most(self.limits);
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
            _ if self.is_over(&record) => Some(over_quota(self.limits)),
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
        let over = |account: &Account| account.over.as_ref().map(|(_, older)| account.records.len() - older);
        self.accounts.values().filter_map(over).sum()
    }

    fn is_over(&self, record: &Judged) -> bool {
        let over = || self.accounts.get(&record.cluster)?.over.as_ref();
        record.judgement.counts() && over().is_some_and(|(first, _)| place(&record.metadata) >= *first)
    }

    fn line(&self, name: &str) -> Option<&Line> {
        let (cluster, created) = self.places.get(name)?;
        self.accounts.get(cluster)?.records.get(&(*created, name.to_owned()))
    }

    /// Others that are refused or admitted since this record is there.
    fn enter(&mut self, record: &Judged) -> Vec<Judged> {
        self.put(record);
        let account = self.accounts.entry(record.cluster.clone()).or_default();
        account.settle(&place(&record.metadata), self.limits)
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
        let account = self.accounts.entry(record.cluster.clone()).or_default();
        account.bytes += line.bytes;
        if let Some(old) = account.records.insert(place, line) {
            account.bytes -= old.bytes;
        }
    }

    /// Others that are admitted since this record is not there any more; not yet if it is about to enter `again` where it was.
    fn leave(&mut self, name: &str, again: Option<(String, Option<Timestamp>)>) -> Vec<Judged> {
        let Some((cluster, created)) = self.places.remove(name) else { return Vec::new() };
        let is_back = again.is_some_and(|again| again == (cluster.clone(), created));
        let Some(account) = self.accounts.get_mut(&cluster) else { return Vec::new() };
        let place = (created, name.to_owned());
        if let Some(old) = account.records.remove(&place) {
            account.bytes -= old.bytes;
        }
        if account.has_more && account.records.len() < self.limits.records {
            (account.has_more, self.has_room) = (false, true);
        }
        let turned = if is_back { Vec::new() } else { account.settle(&place, self.limits) };
        if account.records.is_empty() && !is_back {
            self.accounts.remove(&cluster);
        }
        turned
    }
}

impl Account {
    /// Finds the first record that is too much.
    fn measure(&mut self, limits: Limits) {
        self.over = None;
        if self.records.len() <= limits.records && self.bytes <= limits.bytes {
            return;
        }
        let (mut older, mut bytes) = (0, 0);
        for (place, line) in &self.records {
            bytes += line.bytes;
            if older == limits.records || bytes > limits.bytes {
                self.over = Some((place.clone(), older));
                return;
            }
            older += 1;
        }
    }

    /// Something changed at this place: the records that are refused or admitted for it.
    fn settle(&mut self, at: &Place, limits: Limits) -> Vec<Judged> {
        // What is too much anyway changes nothing for the others.
        if self.over.as_ref().is_some_and(|(first, _)| at > first) {
            return Vec::new();
        }
        let before = self.over.take().map(|(first, _)| first);
        self.measure(limits);
        let now = self.over.as_ref().map(|(first, _)| first.clone());
        let is_refused = |first: &Option<Place>, place: &Place| first.as_ref().is_some_and(|f| place >= f);
        let Some(from) = [&before, &now].into_iter().flatten().min() else { return Vec::new() };
        let turned = self.records.range(from.clone()..).filter(|(_, line)| line.is_valid);
        let turned = turned.filter(|(place, _)| is_refused(&before, place) != is_refused(&now, place));
        turned
            .map(|(place, line)| {
                line.judged(match is_refused(&now, place) {
                    true => Judgement::refused(over_quota(limits), line.of.clone()),
                    false => Judgement::Unread { of: line.of.clone() },
                })
            })
            .collect()
    }
}

impl Line {
    fn judged(&self, judgement: Judgement) -> Judged {
        let (metadata, conditions) = (self.metadata.clone(), self.conditions.clone());
        Judged { metadata, cluster: self.cluster.clone(), bytes: self.bytes, judgement, conditions }
    }
}

pub(super) fn place(metadata: &ObjectMeta) -> Place {
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, metadata.name.clone().unwrap_or_default())
}

/// What an objection is about: a status does not change it.
fn version(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.uid.as_deref().unwrap_or_default(), metadata.generation.unwrap_or_default())
}

fn over_quota(limits: Limits) -> Objection {
    let Limits { records, bytes } = limits;
    let message = format!(
        "the cluster has more than {records} records or more than {bytes} bytes in them; its newest records are not taken in \
         (flags --max-records-per-member and --max-bytes-per-member of freeport-leader)"
    );
    Objection::new(OVER_QUOTA, message)
}

#[cfg(test)]
mod tests;
