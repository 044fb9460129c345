use kit::watch::Gather;
use serde_json::json;

use super::{gather::Gathered, *};

fn record(origin: &str, number: usize) -> PeerPod {
    let name = format!("1.{origin}.east.u{number}");
    let made = format!("2026-11-01T12:{:02}:{:02}Z", number / 60 % 60, number % 60);
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "area", "creationTimestamp": made},
        "spec": {
            "origin": origin, "destination": "east", "namespace": "shop-west", "pod": format!("web-{number}"),
            "uid": format!("u{number}"), "sealed": "content",
        },
    }))
    .unwrap()
}

fn accepting(homes: &[&str]) -> Room {
    let room = Room::default();
    room.accept(homes.iter().map(|home| (*home).to_owned()).collect());
    room
}

/// The content that is kept when this one comes; none if nothing is known of it.
fn applied(room: &Room, record: PeerPod) -> Option<String> {
    let Admitted { change, due, wants_list } = room.admit(Change::Apply(record));
    assert!(due.is_empty() && !wants_list);
    match change {
        Some(Change::Apply(record)) => Some(record.asked().unwrap().sealed.clone()),
        None => None,
        other => panic!("{other:?}"),
    }
}

fn removed(room: &Room, record: PeerPod) -> (Vec<Due>, bool) {
    let admitted = room.admit(Change::Remove(record));
    assert!(matches!(admitted.change, Some(Change::Remove(_))));
    (admitted.due, admitted.wants_list)
}

/// What is kept of this list: with content, and without.
fn listed(room: &Room, records: impl IntoIterator<Item = PeerPod>) -> (Vec<String>, Vec<String>) {
    let mut gathered = Gathered::new(room.clone());
    gathered.begin();
    let mut most = 0;
    for record in records {
        gathered.take(record);
        most = most.max(gathered.size());
    }
    assert!(most <= KNOWN_MAX, "{most}");
    let admitted = room.admit(Change::Reset(gathered.end()));
    let Some(Change::Reset(all)) = admitted.change else { panic!() };
    let (over, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(PeerPod::is_over);
    assert!(over.iter().all(|record| record.asked().unwrap().sealed.is_empty()));
    let uids = |all: Vec<PeerPod>| all.iter().map(|record| record.asked().unwrap().uid.clone()).collect();
    (uids(kept), uids(over))
}

#[test]
fn of_each_home_so_many_records_are_kept_and_as_many_by_name_alone() {
    let room = accepting(&["west", "north"]);
    for number in 0..RECORDS_MAX {
        assert_eq!(applied(&room, record("west", number)).as_deref(), Some("content"));
    }
    let over = record("west", RECORDS_MAX);
    assert_eq!(applied(&room, over.clone()).as_deref(), Some(""));
    assert_eq!(applied(&room, over.clone()).as_deref(), Some(""));
    assert_eq!(room.left_out("west"), 1);
    assert_eq!(
        applied(&room, record("north", 0)).as_deref(),
        Some("content"),
        "another home has its own room"
    );
    assert_eq!(applied(&room, record("west", 3)).as_deref(), Some("content"), "it has its room already");

    assert_eq!(removed(&room, record("west", RECORDS_MAX + 1)), (vec![], false), "it had none");
    let next = ("shop-west/web-500".to_owned(), over.name_any());
    assert_eq!(removed(&room, record("west", 7)), (vec![next], false));
    assert_eq!(applied(&room, over).as_deref(), Some("content"));
    assert_eq!(applied(&room, record("west", 7)).as_deref(), Some(""));
}

#[test]
fn of_a_flood_so_many_are_known_and_the_others_when_there_is_room() {
    let room = accepting(&["west"]);
    let all = || (0..4 * KNOWN_MAX).map(|number| record("west", number));
    let known: Vec<_> = all().filter_map(|record| applied(&room, record)).collect();
    assert_eq!(known.len(), KNOWN_MAX);
    assert_eq!(known.iter().filter(|content| !content.is_empty()).count(), RECORDS_MAX);
    assert_eq!(room.left_out("west"), 4 * KNOWN_MAX - RECORDS_MAX);
    let wants_list: Vec<_> = all().take(RECORDS_MAX + 2).map(|record| removed(&room, record).1).collect();
    let when: Vec<_> = wants_list.iter().enumerate().filter(|(_, wants)| **wants).map(|(at, _)| at).collect();
    assert_eq!(when, [RECORDS_MAX], "once, when half of what is known has gone");

    let (kept, over) = listed(&room, all().skip(RECORDS_MAX + 2));
    assert_eq!((kept.len(), over.len()), (RECORDS_MAX, RECORDS_MAX));
    assert_eq!(room.left_out("west"), 4 * KNOWN_MAX - 2 * RECORDS_MAX - 2);
}

#[test]
fn a_list_takes_nobodys_room_and_gives_what_is_free_to_the_oldest() {
    let room = accepting(&["west"]);
    assert_eq!(applied(&room, record("west", RECORDS_MAX + 5)).as_deref(), Some("content"));
    let (kept, over) = listed(&room, (0..RECORDS_MAX + 6).rev().map(|number| record("west", number)));
    assert_eq!(kept.len(), RECORDS_MAX);
    assert_eq!(over, ["u499", "u500", "u501", "u502", "u503", "u504"]);
    assert_eq!(listed(&room, [record("west", 504)]), (vec!["u504".into()], vec![]));
    assert_eq!(room.left_out("west"), 0);
}

#[test]
fn of_a_home_that_is_not_accepted_no_content_is_kept() {
    let room = accepting(&["north"]);
    let all = || (0..4 * KNOWN_MAX).map(|number| record("west", number));
    assert_eq!(applied(&room, record("west", 0)).as_deref(), Some(""));
    let (kept, over) = listed(&room, all());
    assert_eq!((kept.len(), over.len()), (0, KNOWN_MAX));
    assert_eq!(room.left_out("west"), 3 * KNOWN_MAX);

    let due = room.accept(["west".to_owned()].into());
    assert_eq!((due.len(), &due[0].0), (RECORDS_MAX, &"shop-west/web-0".to_owned()));
    assert_eq!(room.accept(BTreeSet::new()), vec![]);
    assert_eq!(applied(&room, record("west", 0)).as_deref(), Some("content"), "what was kept of it stays");
    assert_eq!(removed(&room, record("west", 0)), (vec![], false));
    assert_eq!(applied(&room, record("west", 0)).as_deref(), Some(""), "nothing more is");
}

#[test]
fn a_home_that_is_accepted_while_a_list_is_read_has_its_room_after_it() {
    let room = Room::default();
    let mut gathered = Gathered::new(room.clone());
    gathered.begin();
    gathered.take(record("west", 1));
    assert_eq!(room.accept(["west".to_owned()].into()), vec![]);
    let admitted = room.admit(Change::Reset(gathered.end()));
    assert_eq!(admitted.due, [("shop-west/web-1".to_owned(), "1.west.east.u1".to_owned())]);
}

/// Its Pod has finished here.
fn finished(mut record: PeerPod) -> PeerPod {
    record.status = serde_json::from_value(json!({"pod": {"phase": "Succeeded"}})).unwrap();
    record
}

#[test]
fn a_pod_that_has_finished_gives_its_room_to_one_that_waits() {
    let room = accepting(&["west"]);
    let all = || (0..600).map(|number| record("west", number));
    all().for_each(|record| drop(applied(&room, record)));
    for number in 0..600 {
        let Admitted { change, due, wants_list } =
            room.admit(Change::Apply(finished(record("west", number))));
        let Some(Change::Apply(known)) = change else { panic!("{change:?}") };
        assert!(known.is_over() && known.asked().unwrap().sealed.is_empty() && !wants_list);
        let next = (number < 100).then(|| record("west", RECORDS_MAX + number).name_any());
        assert_eq!(due.first().map(|(_, name)| name.clone()), next);
    }
    assert_eq!(room.left_out("west"), 0);
    let more = (600..1200).map(|number| record("west", number));
    let (kept, over) = listed(&room, all().map(finished).chain(more));
    assert_eq!((kept.len(), over.len()), (RECORDS_MAX, 700), "nor do they after a list");
    assert_eq!(room.left_out("west"), 100);
    assert_eq!(removed(&room, finished(record("west", 0))), (vec![], false), "it had no room");
    assert_eq!(removed(&room, record("west", 600)).0.len(), 1);
}

#[test]
fn as_pods_of_a_flood_finish_the_others_are_listed() {
    let room = accepting(&["west"]);
    let all = || (0..2 * KNOWN_MAX).map(|number| record("west", number));
    all().for_each(|record| drop(applied(&room, record)));
    let wants_list =
        all().take(RECORDS_MAX + 1).map(|record| room.admit(Change::Apply(finished(record))).wants_list);
    assert_eq!(wants_list.filter(|wants| *wants).count(), 1);
}
