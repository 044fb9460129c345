use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const QUOTA: Quota = Quota { records: 3, bytes: 100 };

/// Its writer is its Namespace, its content one text.
impl Counted for ConfigMap {
    fn writer(&self) -> Option<String> {
        self.namespace()
    }

    fn bytes(&self) -> usize {
        self.data.iter().flatten().map(|(_, text)| text.len()).sum()
    }

    fn without_content(self) -> Self {
        Self { data: None, ..self }
    }
}

fn object(writer: &str, number: usize, bytes: usize) -> ConfigMap {
    let created = jiff::Timestamp::from_second(number as i64).unwrap();
    let metadata =
        json!({"name": format!("{writer}-{number}"), "namespace": writer, "creationTimestamp": created});
    serde_json::from_value(json!({"metadata": metadata, "data": {"text": "x".repeat(bytes)}})).unwrap()
}

/// What is known of each object: its size.
#[derive(Default)]
struct Known(BTreeMap<String, usize>);

impl Known {
    fn take_in(&mut self, change: Option<Change<ConfigMap>>) {
        match change {
            None => {}
            Some(Change::Apply(object)) => drop(self.0.insert(object.name_any(), object.bytes())),
            Some(Change::Remove(object)) => drop(self.0.remove(&object.name_any())),
            Some(Change::Reset(all)) => {
                self.0 = all.iter().map(|object| (object.name_any(), object.bytes())).collect();
            }
        }
    }

    fn with_content(&self) -> Vec<&str> {
        self.0.iter().filter(|(_, bytes)| **bytes > 0).map(|(name, _)| name.as_str()).collect()
    }
}

fn list(shares: &mut Shares<ConfigMap>, all: impl IntoIterator<Item = ConfigMap>) -> Known {
    let mut known = Known::default();
    shares.begin();
    all.into_iter().for_each(|object| shares.take(object));
    let listed = shares.end();
    known.take_in(shares.change(Change::Reset(listed)));
    known
}

#[test]
fn a4_of_a_flood_that_comes_one_by_one_no_more_is_kept_than_of_a_list() {
    let flood = || (0..50).map(|n| object("east", n, 10));
    let (mut shares, mut known) = (Shares::new(QUOTA), Known::default());
    for object in flood().chain([object("west", 70, 100)]) {
        known.take_in(shares.change(Change::Apply(object)));
    }
    assert_eq!(known.with_content(), ["east-0", "east-1", "east-2", "west-70"]);
    assert_eq!(known.0.len(), 7);
    let listed = list(&mut Shares::new(QUOTA), flood().chain([object("west", 70, 100)]));
    assert_eq!(known.0, listed.0);
    assert_eq!(shares.left_out(), 47);
}

#[test]
fn a4_what_was_left_out_is_listed_when_there_is_room_and_not_all_the_time() {
    let now = Instant::now();
    let later = |seconds| now + Duration::from_secs(seconds);
    let mut shares = Shares::new(QUOTA);
    let mut known = list(&mut shares, (0..4).map(|n| object("east", n, 30)));
    assert_eq!(known.with_content(), ["east-0", "east-1", "east-2"]);
    assert!(!shares.wants_list(now), "there is no room");
    assert_eq!(shares.left_out(), 1);
    known.take_in(shares.change(Change::Remove(object("east", 0, 30))));
    assert!(shares.wants_list(now) && !shares.wants_list(later(29)));
    known = list(&mut shares, (1..4).map(|n| object("east", n, 30)));
    assert_eq!(known.with_content(), ["east-1", "east-2", "east-3"]);
    assert_eq!(shares.left_out(), 0);
    assert!(!shares.wants_list(later(31)));
    for n in 4..9 {
        known.take_in(shares.change(Change::Apply(object("east", n, 0))));
    }
    assert_eq!(known.0.len(), 6);
    for n in 1..4 {
        assert!(!shares.wants_list(later(31)));
        known.take_in(shares.change(Change::Remove(object("east", n, 30))));
    }
    known.take_in(shares.change(Change::Remove(object("east", 4, 0))));
    assert!(shares.wants_list(later(31)), "of 7 and 8 nothing is known");
}

#[test]
fn a4_an_object_that_has_grown_takes_nothing_from_others() {
    let mut shares = Shares::new(QUOTA);
    let mut known = list(&mut shares, [object("east", 0, 10), object("east", 1, 80)]);
    known.take_in(shares.change(Change::Apply(object("east", 0, 50))));
    assert_eq!(known.with_content(), ["east-1"]);
    known.take_in(shares.change(Change::Apply(object("east", 0, 20))));
    assert_eq!(known.with_content(), ["east-0", "east-1"]);
    shares.set_quota(Quota { bytes: 200, ..QUOTA });
    known.take_in(shares.change(Change::Apply(object("east", 0, 90))));
    assert_eq!(known.with_content(), ["east-0", "east-1"]);
}

proptest! {
    /// Whatever comes: never more than the quota is kept, and what it is counted to be.
    #[test]
    fn a4_no_order_of_changes_gets_past_the_quota(
        changes in prop::collection::vec((0..3usize, 0..9usize, 0..60usize, any::<bool>()), 0..60),
    ) {
        let (mut shares, mut known) = (Shares::new(QUOTA), Known::default());
        for (writer, number, bytes, goes) in changes {
            let object = object(["east", "west", "north"][writer], number, bytes);
            let change = if goes { Change::Remove(object) } else { Change::Apply(object) };
            known.take_in(shares.change(change));
            for writer in ["east", "west", "north"] {
                let of: Vec<_> = known.0.iter().filter(|(name, _)| name.starts_with(writer)).map(|(_, b)| *b).collect();
                prop_assert!(of.len() <= 6 && of.iter().filter(|bytes| **bytes > 0).count() <= 3);
                prop_assert!(of.iter().sum::<usize>() <= 100);
                let counted = shares.writers.get(writer).map_or((0, 0), |share| (share.bytes, share.objects.len()));
                prop_assert_eq!(counted, (of.iter().sum::<usize>(), of.len()));
            }
        }
    }
}
