//! Headless imports and IP families.

use super::*;

/// What the leader merged, changed.
fn merged(entry: &mut ServiceEntry, change: impl FnOnce(&mut ServiceImportSpec)) {
    change(
        &mut Arc::make_mut(entry.leader_import.as_mut().unwrap()).spec.service_import.as_mut().unwrap().spec,
    );
}

fn families(families: &[&str]) -> Vec<String> {
    families.iter().map(|family| (*family).to_owned()).collect()
}

/// An import of two clusters, each with an endpoint of either family.
fn dual() -> ServiceEntry {
    let mut entry = entry(&["east", "north"]);
    merged(&mut entry, |spec| spec.ip_families = families(&["IPv4", "IPv6"]));
    for (cluster, slices) in &mut entry.peers {
        let six = SlicePayload { address_type: "IPv6".into(), ..payload(&["fd00::1"]) };
        slices.insert(name::slice_export(cluster, &service(), "web-six"), Arc::new(six));
    }
    entry
}

/// What is there after a cluster `west` with these families has imported it.
fn carried_out(here: &[&str], entry: ServiceEntry) -> ServiceEntry {
    carried_out_in("west", &families(here), entry)
}

fn import(entry: &ServiceEntry) -> ServiceImportSpec {
    entry.import.as_deref().unwrap().spec.0.clone().unwrap()
}

fn address_types(entry: &ServiceEntry) -> Vec<&str> {
    let mut all: Vec<_> = entry.imported_slices.values().map(|slice| slice.address_type.as_str()).collect();
    all.sort_unstable();
    all
}

#[test]
fn r26_an_import_has_an_address_and_slices_of_each_family_that_both_sides_have() {
    for (here, ips) in [
        (vec!["IPv4", "IPv6"], vec!["10.96.0.9", "fd00:96::9"]),
        (vec!["IPv6", "IPv4"], vec!["10.96.0.9", "fd00:96::9"]),
        (vec!["IPv4"], vec!["10.96.0.9"]),
        (vec!["IPv6"], vec!["fd00:96::9"]),
    ] {
        let entry = carried_out(&here, dual());
        let import = import(&entry);
        assert_eq!(import.ips, ips, "{here:?}");
        let of: Vec<_> = ips.iter().map(|ip| api::family::of(ip)).collect();
        assert_eq!(import.ip_families, of);
        assert_eq!(address_types(&entry).len(), 2 * ips.len());
        assert!(address_types(&entry).iter().all(|address_type| of.contains(address_type)));
        assert_eq!(carried_out(&here, entry.clone()), entry, "a second reconcile changes nothing");
    }
}

#[test]
fn r24_a_cluster_without_a_family_of_the_exporters_says_so_and_has_no_address() {
    let mut entry = carried_out(&["IPv4"], dual());
    merged(&mut entry, |spec| spec.ip_families = families(&["IPv6"]));
    let desired = imports_in("west", &families(&["IPv4"]), &entry);
    let verdict = ready("web", &desired, &Refusals::default());
    assert_eq!((verdict.status, verdict.reason.as_str()), (Status::False, "IPFamilyNotSupported"));
    assert!(verdict.message.contains("has IPv6 in the whole set"), "{}", verdict.message);
    let entry = carried_out(&["IPv4"], entry);
    assert_eq!(
        (import(&entry).ips.len(), entry.derived.is_some(), address_types(&entry).len()),
        (0, false, 0)
    );
    let entry = carried_out(&["IPv4", "IPv6"], entry);
    assert_eq!(import(&entry).ips, ["fd00:96::9"]);
}

#[test]
fn r31_a_family_more_on_either_side_keeps_the_first_address() {
    let here = ["IPv6", "IPv4"];
    let mut entry = dual();
    merged(&mut entry, |spec| spec.ip_families = families(&["IPv6"]));
    let mut entry = carried_out(&here, entry);
    assert_eq!(import(&entry).ips, ["fd00:96::9"]);
    merged(&mut entry, |spec| spec.ip_families = families(&["IPv4", "IPv6"]));
    let entry = carried_out(&here, entry);
    assert_eq!(import(&entry).ips, ["fd00:96::9", "10.96.0.9"], "the exporters' side");
    let entry = carried_out(&["IPv4"], dual());
    let entry = carried_out(&here, entry);
    assert_eq!(import(&entry).ips, ["10.96.0.9", "fd00:96::9"], "this cluster's side");
}

#[test]
fn r25_r27_a_headless_import_has_endpoints_with_or_without_ports_and_no_address() {
    for ports in [vec![], vec![merged_port(Some("http"), 80)]] {
        let here = ["IPv4", "IPv6"];
        let mut entry = dual();
        merged(&mut entry, |spec| (spec.type_, spec.ports) = (ServiceImportType::Headless, ports.clone()));
        let entry = carried_out(&here, entry);
        let (import, derived) = (import(&entry), entry.derived.as_deref().unwrap());
        assert_eq!((import.type_, import.ips.len()), (ServiceImportType::Headless, 0));
        assert_eq!(import.ip_families, ["IPv4", "IPv6"]);
        assert!(derived.spec.is_headless());
        assert_eq!(entry.imported_slices.len(), 4);
        assert!(entry.imported_slices.values().all(|slice| slice.ports.len() == ports.len()));
        assert_eq!(carried_out(&here, entry.clone()), entry, "a second reconcile changes nothing");
        let mut vanished = entry;
        vanished.leader_import = None;
        assert_eq!(
            carried_out(&here, vanished.clone()),
            vanished,
            "nor does what vanishes without being withdrawn"
        );
    }
}

#[test]
fn r44_who_leaves_may_turn_the_import_and_no_endpoint_of_the_others_goes_for_a_moment() {
    let here = ["IPv4"];
    let mut entry = carried_out(&here, dual());
    let [_, theirs] =
        ["east", "north"].map(|cluster| entry.imported_from(cluster).cloned().collect::<Vec<_>>());
    for (type_, ips) in [(ServiceImportType::Headless, 0), (ServiceImportType::ClusterSetIP, 1)] {
        let there = Arc::make_mut(entry.leader_import.as_mut().unwrap());
        there.spec.exporters.as_mut().unwrap().retain(|e| e.cluster_id == "north");
        merged(&mut entry, |spec| spec.type_ = type_);
        let desired = imports_in("west", &families(&here), &entry);
        assert!(theirs.iter().all(|slice| !desired.leftover.contains(slice)));
        entry = carried_out(&here, entry);
        assert_eq!((import(&entry).type_, import(&entry).ips.len()), (type_, ips));
        assert_eq!(entry.imported_slices.keys().cloned().collect::<Vec<_>>(), theirs);
    }
}
