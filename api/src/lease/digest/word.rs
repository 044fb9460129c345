//! The Leases of most members, each as one word: they renewed it, and say nothing else. Of 500 members these are 5 kB, and all that the Leases
//! say is 115 kB, which every member would get with each renewal of the leader's Lease.
//!
//! `VERSION SECONDS WORD...`: the latest resourceVersion, after how many seconds the Leases are stale, and for each Lease
//! `ID:AGE:BEHIND[:SETTLED]`, sorted. The first character of ID says how many characters it has in common with the ID before. AGE is the time from its
//! renewal to that of the leader's Lease in tenths of a second, BEHIND its resourceVersion, as the distance to the latest; without SETTLED it
//! is settled. Numbers in words are hexadecimal.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::Entry;
use crate::{label, unwritten};

/// An ID has no more characters in common with the one before it than one character can say.
const SHARED: usize = 0xf;

/// A Lease of which a word says all.
struct Renewal {
    tenths: i64,
    version: u64,
    /// The value of annotation [`SETTLED`](label::SETTLED).
    settled: String,
}

impl Renewal {
    /// None if there is more to tell.
    fn of(entry: &Entry, stale: Duration) -> Option<Self> {
        let is_plain = entry.seconds == stale.as_secs()
            && !entry.left
            && entry.unwritten.is_empty()
            && entry.wire.as_deref().is_none_or(|wire| wire == label::WIRE_VERSION);
        let tenths = tenths(super::renewed(&entry.renewed)?);
        let version = entry.version.as_ref()?.parse().ok()?;
        is_plain.then(|| Self { tenths, version, settled: entry.settled.clone() })
    }

    fn entry(self, seconds: u64) -> Option<Entry> {
        let (version, renewed) = (Some(self.version.to_string()), unwritten::time(time(self.tenths)?));
        Some(Entry { version, renewed, seconds, settled: self.settled, ..Entry::default() })
    }
}

/// The words for these Leases, by cluster ID, in a leader's Lease that is renewed at that time; and the Leases for which there is none.
pub(super) fn write(
    at: Timestamp,
    stale: Duration,
    leases: impl Iterator<Item = (String, Entry)>,
) -> (String, BTreeMap<String, Entry>) {
    let (mut renewals, mut others) = (BTreeMap::new(), BTreeMap::new());
    for (cluster, entry) in leases {
        match Renewal::of(&entry, stale) {
            Some(renewal) => drop(renewals.insert(cluster, renewal)),
            None => drop(others.insert(cluster, entry)),
        }
    }
    let latest = renewals.values().map(|renewal| renewal.version).max().unwrap_or_default();
    let (mut said, mut before) = (format!("{latest} {}", stale.as_secs()), "");
    for (cluster, renewal) in &renewals {
        let shared = before.bytes().zip(cluster.bytes()).take(SHARED).take_while(|(a, b)| a == b).count();
        let rest = cluster.get(shared..).unwrap_or_default();
        let age = tenths(at) - renewal.tenths;
        let sign = if age < 0 { "-" } else { "" };
        let behind = latest - renewal.version;
        said += &format!(" {shared:x}{rest}:{sign}{:x}:{behind:x}", age.unsigned_abs());
        if renewal.settled != label::TRUE {
            said = said + ":" + &renewal.settled;
        }
        before = cluster;
    }
    (said, others)
}

/// Reads what [`write`] wrote; none if somebody else did. A leader of an older version writes no words.
pub(super) fn read(said: &str, at: Timestamp) -> Option<BTreeMap<String, Entry>> {
    let mut words = said.split_whitespace();
    let Some(latest) = words.next() else { return Some(BTreeMap::new()) };
    let (latest, seconds): (u64, _) = (latest.parse().ok()?, words.next()?.parse().ok()?);
    let (mut all, mut before) = (BTreeMap::new(), String::new());
    for word in words {
        let mut fields = word.split(':');
        let (cluster, age, behind) = (fields.next()?, fields.next()?, fields.next()?);
        let (shared, rest) = cluster.split_at_checked(1)?;
        let shared = before.get(..usize::from_str_radix(shared, 16).ok()?)?;
        let cluster = shared.to_owned() + rest;
        let renewal = Renewal {
            tenths: tenths(at).checked_sub(i64::from_str_radix(age, 16).ok()?)?,
            version: latest.checked_sub(u64::from_str_radix(behind, 16).ok()?)?,
            settled: fields.next().unwrap_or(label::TRUE).to_owned(),
        };
        all.insert(cluster.clone(), renewal.entry(seconds)?);
        before = cluster;
    }
    Some(all)
}

/// Tenths of seconds since 1970.
pub(super) fn tenths(time: Timestamp) -> i64 {
    time.as_millisecond().div_euclid(100)
}

/// The time of so many tenths of seconds, if there is one.
pub(super) fn time(tenths: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(tenths.checked_mul(100)?).ok()
}
