//! What is kept of a list of records while it is read: of each member what it may have, whatever it has. Pure.
//!
//! A member's oldest records are kept with their content, as the [`ledger`](super::ledger) will find them to be within the quota; of
//! as many again that they are there, so that their status can say that they are too much; of the rest nothing. Those that do not
//! count are kept apart by the same measure: a withdrawal has to get through, but nobody may write any number of them.

use std::collections::HashMap;

use api::{antrea::Members, label, quota::Quota};
use kit::{
    quota::{Counted, Gathering},
    watch::Gather,
};
use kube::ResourceExt;

use super::record::{Payload, Record, bytes};
use crate::bounds::Noted;

/// The records of a list that were read so far.
pub(crate) struct Gathered {
    quota: Quota,
    /// Members that run Antrea's controllers: nobody else reads records of endpoints.
    antrea: Members,
    /// Which addresses members may export: the others alone are kept.
    noted: Noted,
    /// Those that count, by member.
    counted: HashMap<String, Gathering<Record>>,
    /// Those that do not.
    exempt: HashMap<String, Gathering<Record>>,
}

impl Gathered {
    pub(crate) fn new(quota: Quota, antrea: Members, noted: Noted) -> Self {
        Self { quota, antrea, noted, counted: HashMap::new(), exempt: HashMap::new() }
    }
}

impl Gather<Record> for Gathered {
    fn begin(&mut self) {
        (self.counted, self.exempt) = Default::default();
    }

    fn take(&mut self, record: Record) {
        let record = if self.antrea.is_empty() { record.without_endpoints() } else { record };
        let record = record.bounded(&self.noted.bounds());
        let of = if counts(&record) { &mut self.counted } else { &mut self.exempt };
        of.entry(cluster(&record)).or_default().take(record, self.quota);
    }

    fn end(&mut self) -> Vec<Record> {
        let (counted, exempt) = (std::mem::take(&mut self.counted), std::mem::take(&mut self.exempt));
        exempt.into_values().chain(counted.into_values()).flat_map(Gathering::into_objects).collect()
    }
}

impl Record {
    /// The record without all endpoints of its Service, if it is about these.
    fn without_endpoints(mut self) -> Self {
        if let Ok(spec) = &mut self.spec.content
            && matches!(spec.payload, Payload::Endpoints(_))
        {
            (spec.payload, self.spec.bytes) = (Payload::Missing, 0);
        }
        self
    }
}

impl Counted for Record {
    fn writer(&self) -> Option<String> {
        Some(cluster(self))
    }

    fn bytes(&self) -> usize {
        // Of a withdrawal nothing else is kept.
        let content = if is_withdrawal(self) { 0 } else { self.spec.bytes };
        content + bytes(&self.metadata)
    }

    fn without_content(mut self) -> Self {
        if let Ok(spec) = &mut self.spec.content
            && !matches!(&spec.payload, Payload::Missing)
            && !matches!(&spec.payload, Payload::Service(Ok(service)) if service.withdrawn)
        {
            spec.payload = Payload::Unkept;
        }
        self
    }
}

/// See [`Judgement::counts`](super::judged::Judgement::counts).
fn counts(record: &Record) -> bool {
    !is_withdrawal(record) && record.metadata.deletion_timestamp.is_none()
}

fn is_withdrawal(record: &Record) -> bool {
    match &record.spec.content {
        Ok(spec) => matches!(&spec.payload, Payload::Service(Ok(service)) if service.withdrawn),
        Err(_) => record.spec.withdrawn,
    }
}

fn cluster(record: &Record) -> String {
    let said = record.spec.content.as_ref().ok().and_then(|spec| spec.cluster_id.as_ref());
    said.or_else(|| record.labels().get(label::SOURCE_CLUSTER_ID)).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const QUOTA: Quota = Quota { records: 3, bytes: 3000 };

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
        let mut gathered = Gathered::new(QUOTA, Members::default(), Noted::default());
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

    #[test]
    fn a4_of_a_flood_of_withdrawals_no_more_is_kept_than_of_others() {
        let flood = (0..100).map(|n| record("east", n, n as i64, 0, true));
        assert_eq!(gathered(flood.chain([record("west", 0, 50, 0, true)])).len(), 7);
    }

    #[test]
    fn a4_endpoints_weigh_what_they_take_and_nothing_where_nobody_reads_them() {
        let addresses = vec![json!({"ip": "10.0.0.1"}); 1000];
        let spec = json!({
            "clusterID": "east", "namespace": "shop", "name": "web", "kind": "Endpoints",
            "endpoints": {"subsets": [{"addresses": addresses}]},
        });
        let kept = |antrea: &str| {
            let mut gathered = Gathered::new(Quota::default(), Members::named(antrea), Noted::default());
            gathered.begin();
            gathered.take(serde_json::from_value(json!({"metadata": {"name": "e"}, "spec": spec})).unwrap());
            gathered.end().iter().map(Counted::bytes).sum::<usize>()
        };
        assert_eq!(kept(""), 0);
        let decoded = 2 * 1000 * size_of::<k8s_openapi::api::core::v1::EndpointAddress>();
        assert!(kept("north") > decoded, "{} of {decoded}", kept("north"));
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
