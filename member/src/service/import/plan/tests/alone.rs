//! Issue 14, A3: our own part in an import, while there is no word of the leader.

use jiff::Timestamp;

use super::*;
use crate::service::{
    import::own::{OwnPart, own_part},
    index::links::Links,
};

fn alone(entry: &ServiceEntry) -> OwnPart {
    own_part(&known("east", &[], entry))
}

/// What is here of an import of `east` and `north` after `east` has started again, and the leader has not answered.
fn started() -> ServiceEntry {
    let mut own = exporting::entry();
    own.leader_import = Some(Arc::new(merged_import(&["east", "north"])));
    own.peers = entry(&["north"]).peers.clone();
    let here = carried_out("east", own);
    assert_eq!(here.imported_slices.len(), 2);
    let mut here = with(here, |here| {
        (here.leader_import, here.peers, here.accepted) = (None, BTreeMap::new(), None);
    });
    let import = Arc::make_mut(here.import.as_mut().unwrap());
    let clusters = ["east", "north"].map(|cluster| mcs::ImportedCluster { cluster: cluster.into() });
    import.status.0.as_mut().unwrap().clusters = clusters.into();
    here
}

fn addresses(own: &OwnPart) -> Vec<&str> {
    let endpoints = own.put.iter().flat_map(|slice| &slice.endpoints);
    endpoints.map(|endpoint| endpoint.shared.addresses[0].as_str()).collect()
}

#[test]
fn own_endpoints_follow_and_a_restart_alone_writes_nothing() {
    let mut here = started();
    let same = alone(&here);
    let is_there = |slice: &view::Slice| {
        here.imported_slices.get(&slice.name_any()).map(Arc::as_ref) == Some(&by_us(slice.clone()))
    };
    assert!(same.put.len() == 1 && same.put.iter().all(is_there) && same.leftover.is_empty(), "{same:?}");
    here.slices.insert("web-x".into(), Arc::new(exporting::slice(&["10.1.0.9"])));
    assert_eq!(addresses(&alone(&here)), ["10.1.0.9"]);
    here.slices.clear();
    let gone = alone(&here);
    let ours: Vec<_> = here.imported_from("east").cloned().collect();
    assert_eq!((gone.put.len(), &gone.leftover), (0, &ours), "of ours, and none of north's");
    here.service = None;
    assert_eq!(alone(&here), gone);
}

#[test]
fn what_is_not_ours_or_not_known_stays_as_it_is() {
    let nothing = |change: fn(&mut ServiceEntry)| {
        let mut here = started();
        here.slices.insert("web-x".into(), Arc::new(exporting::slice(&["10.1.0.9"])));
        change(&mut here);
        assert_eq!(alone(&here), OwnPart::default());
    };
    // A new export that the leader has not merged.
    nothing(|here| {
        here.imported_slices.retain(|_, slice| slice.labels()[api::label::MCS_SOURCE_CLUSTER] != "east");
        Arc::make_mut(here.import.as_mut().unwrap()).status.0.as_mut().unwrap().clusters.remove(0);
    });
    nothing(|here| here.import = None);
    nothing(|here| not_by_us(&mut Arc::make_mut(here.import.as_mut().unwrap()).metadata));
    nothing(|here| Arc::make_mut(here.import.as_mut().unwrap()).spec.0 = Err("odd".into()));
    // Its Service was deleted: that comes with the leader.
    let mut here = started();
    here.derived = None;
    assert_eq!(alone(&here), OwnPart::default());
    // In place of it there is one of somebody else.
    let mut here = started();
    not_by_us(&mut Arc::make_mut(here.derived.as_mut().unwrap()).metadata);
    assert_eq!((alone(&here).put.len(), alone(&here).leftover.len()), (0, 1));
}

#[test]
fn without_its_service_export_a_part_stays_until_the_leader_is_there() {
    let mut here = started();
    here.export = None;
    here.slices.insert("web-x".into(), Arc::new(exporting::slice(&["10.1.0.9"])));
    // How old our part is shows that there was an export; in an API server every slice has an age.
    for slice in here.imported_slices.values_mut() {
        let age = exporting::export().metadata.creation_timestamp;
        Arc::make_mut(slice).metadata.creation_timestamp = age;
    }
    assert_eq!(addresses(&alone(&here)), ["10.1.0.9"]);
}

#[test]
fn whether_others_get_traffic_follows_what_answers_from_here() {
    let mut here = started();
    let of_north = |entry: &ServiceEntry, unreached: &[&str]| -> Vec<Slice> {
        let unreached = unreached.iter().map(|cluster| ((*cluster).to_owned(), Timestamp::UNIX_EPOCH));
        let links = Links { unreached: unreached.collect(), ..Links::default() };
        let own = own_part(&known_with("east", entry, Settings { links, ..Settings::default() }));
        own.put.into_iter().filter(|slice| slice.labels()[label::MCS_SOURCE_CLUSTER] == "north").collect()
    };
    let are_ready = |slices: &[Slice]| {
        slices.iter().map(|slice| slice.endpoints[0].shared.is_ready()).collect::<Vec<_>>()
    };
    assert_eq!(of_north(&here, &[]), []);
    let demoted = of_north(&here, &["north"]);
    assert_eq!(are_ready(&demoted), [false]);
    here.imported_slices.extend(demoted.into_iter().map(|slice| (slice.name_any(), Arc::new(slice))));
    assert_eq!(of_north(&here, &["north"]), [], "nothing is left to write");
    assert_eq!(are_ready(&of_north(&here, &[])), [true], "it answers");
    here.slices.clear();
    assert_eq!(are_ready(&of_north(&here, &["north"])), [true], "nobody else serves");
}
