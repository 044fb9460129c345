//! The Leases of all members, as the leader's Lease tells them in annotation [`MEMBERS`](label::MEMBERS): the time of that renewal, a
//! word for each member that did nothing but renew its Lease ([`word`]), and a JSON object of what the other Leases say, by cluster ID.
//! Members watch that one Lease in place of each other's: of 500 Leases each would hear 50 renewals a second, and the API server would send
//! 25,000.
//!
//! A leader of an older version writes no words, and names all members in the JSON object: that is read as well. A member of an older version
//! cannot read what is no JSON, and watches all Leases.

mod word;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{ResourceExt, core::ObjectMeta};
use serde::{Deserialize, Serialize};

use super::{LeaseView, Settled, Spec};
use crate::{label, lacking::Lacking, name, unwritten, view::Lenient};

/// An API server takes 256 KiB of annotations of one object. With more members, they watch each other's Leases.
const BYTES: usize = 200_000;
/// Of a wire version no more than the first characters are told.
const WIRE: usize = 32;

/// What a leader's Lease tells of the Leases of members.
#[derive(Clone, Debug)]
pub enum Told {
    /// Nothing: it is an older leader's, or there are too many members.
    Nothing,
    /// The leader does not know them yet.
    NotYet,
    /// These, and no others, as they were when it was renewed.
    Leases(Vec<LeaseView>),
}

/// What is told of a Lease. Whoever wrote it can make this no longer than some hundred bytes, besides what is left to write.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Entry {
    /// resourceVersion of the Lease. An older leader does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// As text: that of a time at the end of all times cannot be read again, and must not make all else unreadable.
    #[serde(skip_serializing_if = "String::is_empty")]
    renewed: String,
    /// After so many seconds without a renewal it is stale.
    seconds: u64,
    settled: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    unwritten: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    left: bool,
    /// Who holds it: not told.
    #[serde(skip)]
    holder: Option<String>,
    /// Namespaces that its cluster lacks: [`lacking`](Digest::lacking) tells them.
    #[serde(skip)]
    lacks: Option<BTreeSet<String>>,
}

fn is_false(is: &bool) -> bool {
    !is
}

impl Entry {
    fn of(lease: &LeaseView) -> Self {
        let (settled, renewed) = (lease.settled(), lease.renew_time());
        Self {
            version: lease.resource_version(),
            renewed: renewed.map(unwritten::time).unwrap_or_default(),
            seconds: lease.stale().as_secs(),
            settled: settled.word().to_owned(),
            unwritten: renewed.map(|at| settled.unwritten(at)).unwrap_or_default(),
            wire: lease.wire().map(|wire| wire.chars().take(WIRE).collect()),
            left: lease.has_left(),
            holder: lease.holder().map(str::to_owned),
            lacks: lease.lacks(),
        }
    }

    /// The Lease, with a time as exact as a word can say it: a renewal must not look like another one if it is told in another form.
    fn lease(self, cluster: &str) -> LeaseView {
        let settled = Settled::said(Some(&self.settled), Some(&self.unwritten), renewed(&self.renewed));
        let renewed = renewed(&self.renewed).and_then(|at| word::time(word::tenths(at)));
        let said = [
            (label::SETTLED, Some(settled.word().to_owned())),
            (label::UNWRITTEN, renewed.map(|at| settled.unwritten(at))),
            (label::WIRE, self.wire),
            (label::LEFT, Some(self.left.to_string())),
        ];
        let annotations =
            said.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        let name = Some(name::member_lease(cluster));
        let metadata = ObjectMeta {
            name,
            resource_version: self.version,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        let spec = Spec {
            lease_duration_seconds: Lenient(Ok(i32::try_from(self.seconds).ok())),
            renew_time: Lenient(Ok(renewed.map(MicroTime))),
            ..Spec::default()
        };
        LeaseView { metadata, spec: Lenient(Ok(spec)) }
    }
}

/// The Leases that are told, as the leader hears of them.
#[derive(Default)]
pub struct Digest {
    by_cluster: BTreeMap<String, Entry>,
}

impl Digest {
    /// A Lease is there. Whether that is more than a renewal, so that it is to be told at once: its holder came, left, or was silent.
    pub fn apply(&mut self, lease: &LeaseView) -> bool {
        let Some(cluster) = cluster(lease) else { return false };
        let mut now = Entry::of(lease);
        let Some(before) = self.by_cluster.get(&cluster) else {
            self.by_cluster.insert(cluster, now);
            return true;
        };
        let silence = renewed(&now.renewed).zip(renewed(&before.renewed));
        let silence = silence.map(|(now, before)| now.duration_since(before).as_secs().unsigned_abs());
        let is_news = before.holder != now.holder
            || before.left != now.left
            || silence.is_some_and(|silence| silence >= before.seconds);
        // A daemon that has just started does not know yet what its cluster lacks.
        if now.lacks.is_none() && lease.settled() == Settled::No {
            now.lacks.clone_from(&before.lacks);
        }
        self.by_cluster.insert(cluster, now);
        is_news
    }

    /// A Lease is gone. Whether it was told.
    pub fn remove(&mut self, lease: &LeaseView) -> bool {
        cluster(lease).is_some_and(|cluster| self.by_cluster.remove(&cluster).is_some())
    }

    /// Only these are there. Whether one is gone, or one of them is to be told at once.
    pub fn reset(&mut self, leases: &[LeaseView]) -> bool {
        let there: BTreeSet<_> = leases.iter().filter_map(cluster).collect();
        let before = self.by_cluster.len();
        self.by_cluster.retain(|cluster, _| there.contains(cluster));
        let is_gone = self.by_cluster.len() < before;
        leases.iter().fold(is_gone, |soon, lease| self.apply(lease) | soon)
    }

    /// The annotation of a leader's Lease that is renewed at that time, and stale after `stale`, as most Leases are.
    pub fn annotation(&self, at: Timestamp, stale: Duration) -> String {
        let with = |entry: &Entry| entry.clone();
        // Of who writes, and does not say what, nothing is believed.
        let without = |entry: &Entry| Entry { unwritten: String::new(), ..entry.clone() };
        self.say(at, stale, with).or_else(|| self.say(at, stale, without)).unwrap_or_default()
    }

    /// Which members lack Namespaces, of those that have not left.
    pub fn lacking(&self) -> Lacking {
        let present = self.by_cluster.iter().filter(|(_, entry)| !entry.left);
        Lacking::of(present.filter_map(|(cluster, entry)| Some((cluster, entry.lacks.as_ref()?))))
    }

    fn say(&self, at: Timestamp, stale: Duration, entry: impl Fn(&Entry) -> Entry) -> Option<String> {
        let all = self.by_cluster.iter().map(|(cluster, is)| (cluster.clone(), entry(is)));
        let (words, others) = word::write(at, stale, all);
        let said = format!("{} {words} {}", not_yet(at), serde_json::to_string(&others).ok()?);
        (said.len() <= BYTES).then_some(said)
    }
}

/// The annotation of a leader that does not know the Leases yet, whose Lease is renewed at that time.
pub fn not_yet(at: Timestamp) -> String {
    unwritten::time(at)
}

impl LeaseView {
    /// What it tells of the Leases of members. A leader that does not know the annotation leaves it as it is, so the time says whether
    /// it is of this renewal.
    pub fn told(&self) -> Told {
        let said = self.says(label::MEMBERS).unwrap_or_default();
        let (at, leases) = said.split_once(' ').unwrap_or((said, ""));
        if self.renew_time().map(not_yet).as_deref() != Some(at) {
            return Told::Nothing;
        }
        if leases.is_empty() {
            return Told::NotYet;
        }
        let all = self.renew_time().and_then(|at| read(leases, at));
        all.map_or(Told::Nothing, |all| {
            Told::Leases(all.into_iter().map(|(cluster, entry)| entry.lease(&cluster)).collect())
        })
    }
}

/// What is told beside the time `at` of the renewal.
fn read(said: &str, at: Timestamp) -> Option<BTreeMap<String, Entry>> {
    let (words, others) = said.split_at(said.find('{')?);
    let mut all = word::read(words, at)?;
    all.extend(serde_json::from_str::<BTreeMap<String, Entry>>(others).ok()?);
    Some(all)
}

/// The time that an entry says.
fn renewed(said: &str) -> Option<Timestamp> {
    said.parse().ok()
}

/// ID of the member whose Lease it is.
fn cluster(lease: &LeaseView) -> Option<String> {
    name::member_of_lease(&lease.name_any()).map(str::to_owned)
}

#[cfg(test)]
mod tests;
