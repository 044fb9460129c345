use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use proptest::prelude::*;
use serde_json::json;

use super::{account::READMIT, *};
use api::ServiceName;

const QUOTA: Quota = Quota { records: 4, bytes: 100 };

/// A slice of `cluster`, made at this second.
fn record(cluster: &str, name: &str, created: i64, bytes: usize) -> Judged {
    let metadata = json!({
        "name": format!("{cluster}-{name}"), "namespace": "cs", "uid": name, "generation": 1, "resourceVersion": "1",
        "creationTimestamp": Timestamp::from_second(created).unwrap(),
    });
    Judged {
        metadata: serde_json::from_value(metadata).unwrap(),
        cluster: cluster.into(),
        bytes,
        judgement: Judgement::Passed,
        remark: None,
        conditions: vec![],
    }
}

fn service(cluster: &str, name: &str, created: i64, withdrawn: bool) -> Judged {
    let payload = api::resource_export::ServicePayload { withdrawn, ..Default::default() };
    let service = ServiceName::new("shop", name);
    let judgement = Judgement::Service { cluster: cluster.into(), service, payload: Box::new(payload) };
    Judged { judgement, ..record(cluster, name, created, 10) }
}

/// A ledger, with time enough between two changes for what has room to be admitted at once.
struct Slow(Ledger, Instant);

impl Slow {
    fn new() -> Self {
        Self(Ledger::new(QUOTA), Instant::now())
    }

    fn change(&mut self, change: Change<Judged>) -> Vec<Change<Judged>> {
        self.1 += READMIT;
        self.0.change(change, self.1)
    }

    fn wants_list(&mut self) -> bool {
        self.0.wants_list(self.1)
    }
}

/// What readers of the changes know.
#[derive(Default)]
struct Readers {
    refused: BTreeMap<String, String>,
    to_read: BTreeSet<String>,
}

impl Readers {
    fn take(&mut self, changes: Vec<Change<Judged>>) {
        for change in changes {
            match change {
                Change::Apply(record) => self.judge(record),
                Change::Remove(record) => drop(self.refused.remove(&record.name_any())),
                Change::Reset(records) => records.into_iter().for_each(|record| self.judge(record)),
            }
        }
    }

    fn judge(&mut self, record: Judged) {
        let name = record.name_any();
        self.refused.remove(&name);
        self.to_read.remove(&name);
        match record.judgement {
            Judgement::Refused { objection, .. } => drop(self.refused.insert(name, objection.reason)),
            Judgement::Unread { .. } => drop(self.to_read.insert(name)),
            _ => {}
        }
    }

    fn refused(&self) -> Vec<&str> {
        self.refused.keys().map(String::as_str).collect()
    }
}

#[test]
fn a4_the_newest_records_of_a_member_that_has_too_many_are_refused_until_there_is_room() {
    let (mut ledger, mut readers) = (Slow::new(), Readers::default());
    for n in 0..6 {
        readers.take(ledger.change(Change::Apply(record("east", &n.to_string(), n, 10))));
        readers.take(ledger.change(Change::Apply(record(
            "west",
            &n.to_string(),
            n,
            if n < 4 { 10 } else { 0 },
        ))));
        if n == 4 {
            readers.take(ledger.change(Change::Remove(record("west", "4", n, 0))));
        }
    }
    assert_eq!(readers.refused(), ["east-4", "east-5", "west-5"]);
    assert!(readers.refused.values().all(|reason| reason == "OverQuota"));
    assert_eq!(ledger.0.over(), 3);
    readers.take(ledger.change(Change::Remove(record("east", "1", 1, 10))));
    assert_eq!(readers.refused(), ["east-5", "west-5"]);
    assert_eq!(readers.to_read.iter().collect::<Vec<_>>(), ["east-4"], "its content was not kept");
    readers.take(ledger.change(Change::Apply(record("east", "0", 0, 75))));
    assert_eq!(readers.refused(), ["east-4", "east-5", "west-5"], "an old one has grown");
    assert!(readers.to_read.is_empty());
    readers.take(ledger.change(Change::Apply(record("east", "0", 0, 101))));
    assert_eq!(
        readers.refused(),
        ["east-0", "east-2", "east-3", "east-4", "east-5", "west-5"],
        "alone too much"
    );
}

#[test]
fn a4_of_a_flood_little_is_known_and_it_is_listed_again_when_there_is_room() {
    let (mut ledger, mut readers) = (Slow::new(), Readers::default());
    for n in 0..50 {
        readers.take(ledger.change(Change::Apply(record("east", &n.to_string(), n, 1))));
    }
    assert_eq!(readers.refused(), ["east-4", "east-5", "east-6", "east-7"]);
    readers.take(ledger.change(Change::Apply(service("east", "60", 60, true))));
    assert_eq!(readers.refused().len(), 4, "a withdrawal is always heard");
    for n in 0..4 {
        readers.take(ledger.change(Change::Remove(record("east", &n.to_string(), n, 1))));
        assert!(!ledger.wants_list());
    }
    readers.take(ledger.change(Change::Remove(record("east", "4", 4, 1))));
    assert!(ledger.wants_list() && !ledger.wants_list());
}

#[test]
fn a4_a_withdrawal_gets_through_and_does_not_count() {
    let (mut ledger, mut readers) = (Slow::new(), Readers::default());
    for n in 0..5 {
        readers.take(ledger.change(Change::Apply(service("east", &n.to_string(), n, false))));
    }
    assert_eq!(readers.refused(), ["east-4"]);
    readers.take(ledger.change(Change::Apply(service("east", "4", 4, true))));
    assert!(readers.refused().is_empty());
    readers.take(ledger.change(Change::Apply(service("east", "0", 0, true))));
    readers.take(ledger.change(Change::Apply(service("east", "5", 5, false))));
    assert!(readers.refused().is_empty(), "{:?}", readers.refused);
}

#[test]
fn a2_a_record_that_was_refused_stays_so_until_it_is_another_version() {
    let mut ledger = Slow::new();
    let web = service("east", "web", 1, false);
    ledger.change(Change::Apply(web.clone()));
    let refused = ledger.0.refuse(&web.metadata, Objection::new("ImportRefused", "m")).unwrap();
    assert_eq!(refused.judgement.of(), Some(("east".into(), ServiceName::new("shop", "web"))));
    let reason = |changes: Vec<Change<Judged>>| match changes.into_iter().next() {
        Some(Change::Apply(Judged { judgement: Judgement::Refused { objection, .. }, .. })) => {
            objection.reason
        }
        other => format!("{other:?}"),
    };
    let mut with_status = web.clone();
    with_status.metadata.resource_version = Some("2".into());
    assert_eq!(reason(ledger.change(Change::Apply(with_status.clone()))), "ImportRefused");
    assert!(ledger.0.is_current(&with_status.metadata) && !ledger.0.is_current(&web.metadata));
    assert!(matches!(&ledger.change(Change::Reset(vec![web.clone()]))[..], [Change::Reset(all)]
        if matches!(all[0].judgement, Judgement::Refused { .. })));
    let mut mended = with_status;
    mended.metadata.generation = Some(2);
    assert!(matches!(&ledger.change(Change::Apply(mended))[..], [Change::Apply(record)]
        if matches!(record.judgement, Judgement::Service { .. })));
    assert!(ledger.0.refuse(&web.metadata, Objection::new("ImportRefused", "m")).is_none(), "not any more");
}

#[test]
fn a4_who_changes_one_record_again_and_again_does_not_have_all_others_written_about_each_time() {
    let mut ledger = Ledger::new(QUOTA);
    let begun = Instant::now();
    for n in 1..4 {
        ledger.change(Change::Apply(record("east", &n.to_string(), n, 10)), begun);
    }
    let mut turned = |bytes: usize, seconds: u64| {
        let now = begun + Duration::from_secs(seconds);
        let changes = ledger.change(Change::Apply(record("east", "0", 0, bytes)), now);
        (changes.len() - 1, ledger.admit_late(now).len(), ledger.over())
    };
    assert_eq!(turned(75, 0), (1, 0, 1), "the last has no room");
    for second in 1..30 {
        assert_eq!(turned(10, second), (0, 0, 1), "it stays refused");
        assert_eq!(turned(75, second), (0, 0, 1));
    }
    assert_eq!(turned(10, 29), (0, 0, 1));
    assert_eq!(ledger.admit_late(begun + READMIT).len(), 1);
    assert_eq!(ledger.over(), 0);
}

#[test]
fn a4_no_more_withdrawals_are_kept_than_records() {
    let (mut ledger, mut readers) = (Slow::new(), Readers::default());
    let withdrawn = |n: i64| service("east", &n.to_string(), n, true);
    let heard = |changes: &[Change<Judged>]| !changes.is_empty();
    let told: Vec<_> = (0..20).map(|n| ledger.change(Change::Apply(withdrawn(n)))).collect();
    assert_eq!(told.iter().filter(|changes| heard(changes)).count(), 8);
    assert!(heard(&ledger.change(Change::Apply(withdrawn(3)))), "it is known");
    readers.take(ledger.change(Change::Apply(service("east", "30", 30, false))));
    assert!(readers.refused().is_empty());
    for n in 0..5 {
        assert!(!ledger.wants_list());
        ledger.change(Change::Remove(withdrawn(n)));
    }
    assert!(ledger.wants_list(), "of others nothing is known");
}

fn records() -> impl Strategy<Value = Vec<(usize, i64, usize)>> {
    prop::collection::vec((0..8usize, 0..4i64, 0..40usize), 0..30)
}

proptest! {
    /// Whatever came in whatever order, what is refused is what a list of all records shows.
    #[test]
    fn a4_the_order_of_arrival_does_not_matter(changes in records(), removed in prop::collection::btree_set(0..8usize, 0..4)) {
        let (mut ledger, mut readers) = (Slow::new(), Readers::default());
        let mut there = BTreeMap::new();
        for (number, created, bytes) in changes {
            let record = record("east", &number.to_string(), created, bytes);
            there.insert(number, record.clone());
            readers.take(ledger.change(Change::Apply(record)));
        }
        for number in removed {
            if let Some(record) = there.remove(&number) {
                readers.take(ledger.change(Change::Remove(record)));
            }
        }
        let (mut listed, mut seen) = (Slow::new(), Readers::default());
        seen.take(listed.change(Change::Reset(there.into_values().collect())));
        prop_assert_eq!(readers.refused(), seen.refused());
        prop_assert_eq!(ledger.0.over(), listed.0.over());
        prop_assert_eq!(ledger.0.over(), seen.refused.len());
    }
}
