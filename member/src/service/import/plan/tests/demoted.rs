//! Clusters of which no endpoint answers from here.

use api::{resource_import::Evicted, view::Lenient};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::service::{import::reachable::standing, index::links::Links};

fn at() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// What `west` knows, where these are not reached, and the other ones are.
fn known(entry: &ServiceEntry, unreached: &[&str]) -> Known {
    let reached = ["east", "north"].into_iter().filter(|cluster| !unreached.contains(cluster));
    let reached = reached.map(str::to_owned).collect();
    let unreached = unreached.iter().map(|cluster| ((*cluster).to_owned(), at())).collect();
    let silent = [("north".to_owned(), None), ("gone".to_owned(), None)].into();
    let links = Links { unreached, reached, silent, ..Links::default() };
    known_with("west", entry, Settings { links, ..Settings::default() })
}

fn imports(entry: &ServiceEntry, unreached: &[&str]) -> DesiredImport {
    match desired(&known(entry, unreached), &writers()) {
        Plan::Import(import) => import,
        other => panic!("{other:?}"),
    }
}

/// Whether the endpoints of each cluster are ready.
fn ready(import: &DesiredImport) -> Vec<(&str, bool)> {
    let of = |slice: &Slice| slice.endpoints.iter().all(|endpoint| endpoint.shared.is_ready());
    let from = |slice: &'_ Slice| slice.metadata.labels.as_ref().unwrap()[label::MCS_SOURCE_CLUSTER].clone();
    let clusters = ["east", "north"];
    let slices = clusters.map(|cluster| import.slices.iter().find(|slice| from(slice) == cluster));
    clusters.into_iter().zip(slices.into_iter().flatten().map(of)).collect()
}

fn says(entry: &ServiceEntry, unreached: &[&str]) -> (Status, String, String) {
    let (verdict, is_to_come) = standing(&known(entry, unreached), &imports(entry, unreached));
    assert!(!is_to_come);
    (verdict.status, verdict.reason, verdict.message)
}

#[test]
fn a_cluster_that_is_not_reached_gets_no_traffic_where_another_one_serves() {
    let both = entry(&["east", "north"]);
    let import = imports(&both, &["east"]);
    assert_eq!(ready(&import), [("east", false), ("north", true)]);
    assert_eq!(import.demoted, ["east".to_owned()].into());
    assert_eq!(import.clusters, ["east", "north"], "it takes part");
    let alone = entry(&["east"]);
    assert_eq!(ready(&imports(&alone, &["east"])), [("east", true)], "nobody else serves it");
    assert_eq!(ready(&imports(&both, &["east", "north"])), [("east", true), ("north", true)]);
    assert_eq!(ready(&imports(&both, &[])), [("east", true), ("north", true)], "when it answers again");
}

#[test]
fn a_part_that_is_only_held_counts_for_those_that_are_demoted() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    // The record of north vanished: what is here of it stays.
    entry.peers.remove("north");
    let import = imports(&entry, &["east"]);
    assert_eq!(ready(&import), [("east", false)]);
    assert_eq!(import.held.len(), 1);
}

#[test]
fn what_is_held_is_ready_again_when_its_cluster_answers_or_nobody_else_serves() {
    let mut entry = entry(&["east", "north"]);
    let import = imports(&entry, &["east"]);
    entry.imported_slices =
        import.slices.into_iter().map(|slice| (slice.name_any(), Arc::new(slice))).collect();
    // The record of east vanished after that.
    entry.peers.remove("east");
    let held = |entry: &ServiceEntry, unreached: &[&str]| {
        let held = imports(entry, unreached).held;
        (
            held.len(),
            held.iter().flat_map(|slice| &slice.endpoints).all(|endpoint| endpoint.shared.is_ready()),
        )
    };
    assert_eq!(held(&entry, &["east"]), (1, false));
    assert_eq!(held(&entry, &[]), (1, true), "it answers");
    entry.peers.remove("north");
    entry.imported_slices.retain(|_, slice| slice.labels()[label::MCS_SOURCE_CLUSTER] == "east");
    assert_eq!(held(&entry, &["east"]), (1, true), "nobody else serves");
}

#[test]
fn the_import_says_who_is_demoted_unreached_or_kept_and_since_when() {
    let both = entry(&["east", "north"]);
    let (status, reason, message) = says(&both, &["east"]);
    assert_eq!((status, reason.as_str()), (Status::False, "ClustersDemoted"));
    assert!(message.contains("serve the same: east since 1970-01-01T00:00:00Z"), "{message}");
    assert!(message.contains("is kept: north since it joined"), "{message}");
    let (status, reason, message) = says(&both, &["east", "north"]);
    assert_eq!((status, reason.as_str()), (Status::False, "ClustersUnreached"));
    assert!(!message.contains("Lease"), "it is said once how it stands with north: {message}");
    let (status, reason, message) = says(&both, &[]);
    assert_eq!(
        (status, reason.as_str()),
        (Status::True, "ClustersKept"),
        "its Lease says nothing of the way"
    );
    assert!(!message.contains("gone"), "who takes no part is not named: {message}");
    assert_eq!(says(&entry(&["east"]), &[]).1, "Reachable");
    let mut evicted = entry(&["east"]);
    let south = Evicted { cluster_id: "south".into(), since: Time(at()) };
    Arc::make_mut(evicted.leader_import.as_mut().unwrap()).spec.evicted.push(south);
    let (status, reason, message) = says(&evicted, &[]);
    assert_eq!((status, reason.as_str()), (Status::False, "ClustersEvicted"));
    assert!(message.ends_with(": south since 1970-01-01T00:00:00Z"), "{message}");
}

#[test]
fn after_a_restart_a_cluster_is_kept_until_it_is_heard_or_stays_silent() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    let (kept, _) = standing(&known(&entry, &[]), &imports(&entry, &[]));
    let since = Time(at());
    let import = Arc::make_mut(entry.import.as_mut().unwrap());
    import.status.0 = Ok(mcs::ServiceImportStatus {
        conditions: api::condition::conditions(std::slice::from_ref(&kept), &[], None, &since),
        ..mcs::ServiceImportStatus::default()
    });
    let begun = |unheard: &[&str]| {
        let unheard = unheard.iter().map(|cluster| (*cluster).to_owned()).collect();
        let settings = Settings { links: Links { unheard, ..Links::default() }, ..Settings::default() };
        standing(&known_with("west", &entry, settings), &imports(&entry, &[]))
    };
    assert_eq!(begun(&["north"]), (kept, true));
    let (verdict, is_to_come) = begun(&["gone"]);
    assert_eq!((verdict.reason.as_str(), is_to_come), ("Reachable", false));
}

/// The importer was away, and knows the import by no other than what is here of it.
#[test]
fn an_importer_that_did_not_see_a_cluster_being_evicted_believes_it_while_the_cluster_is_silent() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    entry.accepted = None;
    let says = |entry: &mut ServiceEntry, exporters: &[&str], evicted: &str| {
        let mut import = merged_import(exporters);
        import.spec.evicted = vec![Evicted { cluster_id: evicted.into(), since: Time(at()) }];
        entry.leader_import = Some(Arc::new(import));
    };
    says(&mut entry, &["east"], "north");
    let import = imports(&entry, &[]);
    assert_eq!((import.clusters.len(), import.doubts.len(), import.accepted.is_some()), (1, 0, true));
    says(&mut entry, &["north"], "east");
    assert_eq!(imports(&entry, &[]).clusters.len(), 2, "it is heard here");

    entry.imported_slices.retain(|_, slice| slice.labels()[label::MCS_SOURCE_CLUSTER] == "north");
    let alone = mcs::ServiceImportStatus {
        clusters: vec![mcs::ImportedCluster { cluster: "north".into() }],
        ..mcs::ServiceImportStatus::default()
    };
    Arc::make_mut(entry.import.as_mut().unwrap()).status = Lenient(Ok(alone));
    says(&mut entry, &[], "north");
    assert_eq!(desired(&known(&entry, &[]), &writers()), Plan::Remove);
    let withheld = Writers { withheld: Some("x".into()), ..writers() };
    assert_eq!(desired(&known(&entry, &[]), &withheld), Plan::Remove, "however much goes at once");
}
