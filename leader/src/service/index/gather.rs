//! What is kept of a list of records while it is read: of each member what it may have, whatever it has. Pure.
//!
//! A member's oldest records are kept with their content, as the [`ledger`](super::ledger) will find them to be within the limits; of
//! as many again that they are there, so that their status can say that they are too much; of the rest nothing.

use std::collections::{BTreeMap, HashMap};

use api::label;
use kit::watch::Gather;
use kube::ResourceExt;

use super::{
    ledger::{Place, known_at_the_most, place},
    record::{Payload, Record, bytes},
};
use crate::limits::Limits;

/// The records of a list that were read so far.
pub(crate) struct Gathered {
    limits: Limits,
    members: HashMap<String, Gathering>,
    /// Those that do not count.
    others: Vec<Record>,
}

/// Those of one member.
#[derive(Default)]
struct Gathering {
    /// With their content.
    kept: BTreeMap<Place, Record>,
    bytes: usize,
    /// Without it: they are younger.
    known: BTreeMap<Place, Record>,
}

impl Gathered {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, members: HashMap::new(), others: Vec::new() }
    }
}

impl Gather<Record> for Gathered {
    fn begin(&mut self) {
        *self = Self::new(self.limits);
    }

    fn take(&mut self, record: Record) {
        match counts(&record) {
            true => self.members.entry(cluster(&record)).or_default().take(record, self.limits),
            false => self.others.push(record),
        }
    }

    fn end(&mut self) -> Vec<Record> {
        let Self { members, others, .. } = std::mem::replace(self, Self::new(self.limits));
        let of_members =
            members.into_values().flat_map(|of| of.kept.into_values().chain(of.known.into_values()));
        others.into_iter().chain(of_members).collect()
    }
}

impl Gathering {
    fn take(&mut self, record: Record, limits: Limits) {
        let place = place(&record.metadata);
        if self.known.first_key_value().is_some_and(|(first, _)| place > *first) {
            self.known.insert(place, without_content(record));
        } else {
            self.bytes += size(&record);
            self.kept.insert(place, record);
        }
        while (self.kept.len() > limits.records || self.bytes > limits.bytes)
            && let Some((place, record)) = self.kept.pop_last()
        {
            self.bytes -= size(&record);
            self.known.insert(place, without_content(record));
        }
        while self.kept.len() + self.known.len() > known_at_the_most(limits)
            && self.known.pop_last().is_some()
        {}
    }
}

fn size(record: &Record) -> usize {
    record.spec.bytes + bytes(&record.metadata)
}

/// A withdrawal has to get through, and costs nothing. See [`Judgement::counts`](super::judged::Judgement::counts).
fn counts(record: &Record) -> bool {
    let is_withdrawal = match &record.spec.content {
        Ok(spec) => matches!(&spec.payload, Payload::Service(Ok(service)) if service.withdrawn),
        Err(_) => record.spec.withdrawn,
    };
    !is_withdrawal && record.metadata.deletion_timestamp.is_none()
}

fn cluster(record: &Record) -> String {
    let said = record.spec.content.as_ref().ok().and_then(|spec| spec.cluster_id.as_ref());
    said.or_else(|| record.labels().get(label::SOURCE_CLUSTER_ID)).cloned().unwrap_or_default()
}

fn without_content(mut record: Record) -> Record {
    if let Ok(spec) = &mut record.spec.content
        && !matches!(spec.payload, Payload::Missing)
    {
        spec.payload = Payload::Unkept;
    }
    record
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: Limits = Limits { records: 3, bytes: 3000 };

    fn record(cluster: &str, number: usize, created: i64, size: usize, withdrawn: bool) -> Record {
        let spec = json!({
            "clusterID": cluster, "namespace": "shop", "name": format!("s{number}"), "kind": "Service",
            "service": {
                "withdrawn": withdrawn, "serviceSpec": {"ports": [{"port": 80, "protocol": "TCP"}]},
                "exportedAnnotations": {"note": "x".repeat(size)},
            },
        });
        let created = Timestamp::from_second(created).unwrap();
        let metadata = json!({"name": format!("{cluster}-{number}"), "creationTimestamp": created});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn gathered(records: impl IntoIterator<Item = Record>) -> BTreeMap<String, bool> {
        let mut gathered = Gathered::new(LIMITS);
        gathered.begin();
        records.into_iter().for_each(|record| gathered.take(record));
        let has_content =
            |record: &Record| !matches!(record.spec.content.as_ref().unwrap().payload, Payload::Unkept);
        gathered.end().iter().map(|record| (record.name_any(), has_content(record))).collect()
    }

    #[test]
    fn a4_of_a_member_the_oldest_are_kept_and_of_as_many_it_is_known_that_they_are_there() {
        let flood = (0..100).rev().map(|n| record("east", n, n as i64, 0, n > 97));
        let seen = gathered(flood.chain([record("west", 0, 50, 0, false)]));
        let names = |content: bool| -> Vec<_> {
            seen.iter().filter(|(_, has)| **has == content).map(|(name, _)| name.as_str()).collect()
        };
        assert_eq!(names(true), ["east-0", "east-1", "east-2", "east-98", "east-99", "west-0"]);
        assert_eq!(names(false), ["east-3", "east-4", "east-5"]);
    }

    proptest! {
        /// In whatever order they are read, the same is kept.
        #[test]
        fn a4_the_order_of_a_list_does_not_matter(
            records in prop::collection::btree_map(0..12usize, (0..4i64, 0..1500usize, any::<bool>()), 0..12),
            order in any::<u64>(),
        ) {
            let made = |(number, (created, size, withdrawn)): (&usize, &(i64, usize, bool))| {
                record("east", *number, *created, *size, *withdrawn)
            };
            let mut shuffled: Vec<_> = records.iter().collect();
            shuffled.sort_by_key(|(number, _)| (**number as u64).wrapping_mul(order | 1));
            prop_assert_eq!(gathered(records.iter().map(made)), gathered(shuffled.into_iter().map(made)));
        }
    }
}
