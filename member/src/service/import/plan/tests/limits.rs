//! Addresses that endpoints of other clusters must not have here.

use api::ranges::Bounds;

use super::*;
use crate::service::index::limits::Limits;

fn limits(ranges: &str) -> Limits {
    let services = ["10.96.0.0/16".parse().unwrap()].into();
    Limits { bounds: Bounds::said(ranges), services, ..Limits::default() }
}

fn import_within(entry: &ServiceEntry, ranges: &str) -> DesiredImport {
    let known = known_with("west", entry, Settings { limits: limits(ranges), ..Settings::default() });
    match desired(&known, &writers()) {
        Plan::Import(import) => import,
        other => panic!("{other:?}"),
    }
}

fn addresses(import: &DesiredImport) -> Vec<&str> {
    let endpoints = import.slices.iter().flat_map(|slice| &slice.endpoints);
    endpoints.flat_map(|endpoint| &endpoint.shared.addresses).map(String::as_str).collect()
}

/// `east` says that it has these.
fn with_endpoints(mut entry: ServiceEntry, of_east: &[&str]) -> ServiceEntry {
    entry.peers.get_mut("east").unwrap().insert(record("east"), Arc::new(payload(of_east)));
    entry
}

#[test]
fn endpoints_out_of_range_and_our_own_addresses_are_not_imported() {
    let entry = with_endpoints(entry(&["east", "north"]), &["10.1.0.1", "10.9.0.1", "10.96.0.1"]);
    let import = import_within(&entry, "east=10.1.0.0/16,10.96.0.0/16");
    assert_eq!(addresses(&import), ["10.1.0.1", "10.0.0.1"]);
    assert_eq!(import.left_out, [("east".to_owned(), 2)].into());
    let import = import_within(&entry, "");
    assert_eq!(addresses(&import), ["10.1.0.1", "10.9.0.1", "10.0.0.1"], "never an address of ours");
}

#[test]
fn a_slice_of_which_nothing_is_left_goes_and_nobody_doubts_it() {
    let here = carried_out("west", entry(&["east", "north"]));
    assert_eq!(here.imported_slices.len(), 2);
    let import = import_within(&here, "east=10.1.0.0/16");
    assert_eq!((import.slices.len(), import.leftover.len(), import.doubts.len()), (1, 1, 0));
    assert_eq!(import.clusters, ["east", "north"], "it still takes part");
}

/// A record that was changed so that nobody can read it keeps nothing of what its cluster must not have.
#[test]
fn what_is_held_keeps_no_address_that_its_cluster_must_not_have() {
    let mut here = carried_out("west", entry(&["east"]));
    here.peers.clear();
    here.slices_refused = here.imported_slices.keys().cloned().collect();
    let held = |ranges: &str| {
        let import = import_within(&here, ranges);
        assert_eq!((import.held.len(), import.leftover.len(), import.doubts.len()), (1, 0, 0));
        import.held[0].endpoints.len()
    };
    assert_eq!((held(""), held("east=10.0.0.0/16"), held("east=10.1.0.0/16")), (1, 1, 0));
}
