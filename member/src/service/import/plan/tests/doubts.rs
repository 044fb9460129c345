//! What vanishes without being withdrawn.

use api::view::Lenient;

use super::*;

#[test]
fn said_removal_is_believed_at_once() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.peers.get_mut("east").unwrap().insert(record("east"), Arc::new(payload(&[])));
    let import = imports("west", &entry);
    assert_eq!((import.leftover.len(), import.doubts.len()), (1, 0), "an emptied slice");
    entry.leader_import = Some(Arc::new(merged_import(&[])));
    assert_eq!(plan("west", &entry), Plan::Remove);
    let entry = carried_out("west", entry);
    assert_eq!(plan("west", &entry), Plan::Nothing);
}

#[test]
fn what_vanishes_unsaid_stays_until_it_is_confirmed() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.peers.clear();
    let import = imports("west", &entry);
    assert_eq!(
        (import.leftover.len(), import.doubts),
        (
            0,
            vec![Doubt::Slices {
                cluster: "east".into(),
                missing: entry.imported_slices.keys().cloned().collect()
            }]
        )
    );
    let mut confirmed = entry.clone();
    confirmed.slices_gone.extend(entry.imported_slices.keys().cloned());
    let import = imports("west", &confirmed);
    assert_eq!((import.leftover.len(), import.doubts.len()), (1, 0));

    entry.leader_import = None;
    let import = imports("west", &entry);
    assert!(import.doubts.contains(&Doubt::Import) && import.doubts.contains(&part("east")));
    assert_eq!(carried_out("west", entry.clone()), entry, "nothing changes meanwhile");
    entry.import_gone = true;
    assert!(!imports("west", &entry).doubts.contains(&Doubt::Import), "the leader vouched");
    assert_eq!(carried_out("west", entry.clone()), entry, "but east did not");
    entry.parts_gone.insert("east".into());
    assert_eq!(plan("west", &entry), Plan::Remove);
}

/// Issue 14, A2: its record is there, so nobody has to vouch for anything.
#[test]
fn a2_what_was_imported_of_a_record_that_is_refused_stays_without_a_doubt() {
    let mut entry = carried_out("west", entry(&["east"]));
    entry.peers.clear();
    entry.slices_refused = entry.imported_slices.keys().cloned().collect();
    let import = imports("west", &entry);
    assert_eq!((import.leftover.len(), import.doubts.len()), (0, 0));
    assert_eq!(carried_out("west", entry.clone()), entry);
}

fn part(cluster: &str) -> Doubt {
    Doubt::Part { cluster: cluster.into() }
}

#[test]
fn another_import_is_measured_before_it_is_believed() {
    let both = carried_out("west", entry(&["east", "north"]));
    let mut replaced = both.clone();
    replaced.leader_import =
        Some(Arc::new(LeaderRecord { uid: "import-2".into(), ..merged_import(&["north"]) }));
    let import = imports("west", &replaced);
    assert_eq!((import.clusters.len(), import.doubts, import.accepted), (2, vec![part("east")], None));
    assert_eq!(ready("web", &imports("west", &replaced), &Refusals::default()).status, Status::True);
    let held = carried_out("west", replaced.clone());
    assert_eq!(held.imported_slices, both.imported_slices);
    assert_eq!(continuity::noted(&held), Some("leader-1"), "the leader is the same");

    replaced.parts_gone.insert("east".into());
    let settled = carried_out("west", replaced);
    assert_eq!((settled.imported_slices.len(), continuity::noted(&settled)), (1, Some("leader-1")));

    let mut whole = both;
    whole.leader_import =
        Some(Arc::new(LeaderRecord { uid: "import-2".into(), ..merged_import(&["east", "north"]) }));
    assert_eq!(imports("west", &whole).accepted.as_deref(), Some("import-2"));
}

/// The entry as another process finds it, where the ServiceImport's status names these clusters.
fn restarted(entry: &ServiceEntry, clusters: &[&str]) -> ServiceEntry {
    let mut entry = with(entry.clone(), |entry| entry.accepted = None);
    let named = clusters.iter().map(|cluster| mcs::ImportedCluster { cluster: (*cluster).into() });
    let status =
        mcs::ServiceImportStatus { clusters: named.collect(), ..mcs::ServiceImportStatus::default() };
    Arc::make_mut(entry.import.as_mut().unwrap()).status = Lenient(Ok(status));
    entry
}

/// East withdrew, its slice was removed here, and this member was killed before the ServiceImport's status said so.
#[test]
fn a_part_that_was_removed_before_a_restart_does_not_come_back() {
    let mut entry = restarted(&carried_out("west", entry(&["east", "north"])), &["east", "north"]);
    entry.leader_import = Some(Arc::new(merged_import(&["north"])));
    assert_eq!(imports("west", &entry).slices.len(), 2, "what is here stays");
    entry.imported_slices.remove(&name::imported_slice("web", &record("east"))).unwrap();
    let import = imports("west", &entry);
    assert_eq!((import.slices.len(), import.doubts), (1, vec![part("east")]), "and is asked about");
}

/// Nobody exports any more, and this member was killed after it had removed a slice; east was killed before it deleted its record.
#[test]
fn a_slice_that_was_removed_before_a_restart_does_not_come_back_though_its_record_is_there() {
    let mut entry = restarted(&carried_out("west", entry(&["east"])), &["east"]);
    entry.leader_import = None;
    let slices = |entry: &ServiceEntry| imports("west", entry).slices.len();
    assert_eq!(slices(&entry), 1, "what is here stays");
    entry.imported_slices.clear();
    assert_eq!(slices(&entry), 0);
    let restored = Writers { restored: true, ..writers() };
    let Plan::Import(import) = desired(&known("west", &[], &entry), &restored) else { panic!() };
    assert_eq!(import.slices.len(), 1, "after a restore a missing import means nothing");
    entry.accepted = Some("import-1".into());
    assert_eq!(slices(&entry), 1, "who knows what was imported puts it back");
}

/// Nobody exports any more, and this member was killed after it had removed slices and Service.
#[test]
fn an_import_whose_removal_began_before_a_restart_does_not_come_back() {
    let mut entry = restarted(&carried_out("west", entry(&["east"])), &["east"]);
    for gone in [Some(merged_import(&[])), None] {
        entry.leader_import = gone.map(Arc::new);
        assert!(matches!(plan("west", &entry), Plan::Import(_)), "what is here stays");
    }
    entry.imported_slices.clear();
    entry.derived = None;
    assert_eq!(plan("west", &entry), Plan::Hold(vec![part("east"), Doubt::Import]));
    entry.parts_gone.insert("east".into());
    entry.import_gone = true;
    assert_eq!(plan("west", &entry), Plan::Remove);
    entry.leader_import = Some(Arc::new(merged_import(&[])));
    assert_eq!(plan("west", &entry), Plan::Remove);
    entry.parts_gone.clear();
    assert_eq!(plan("west", &entry), Plan::Hold(vec![part("east")]));
    entry.leader_import = Some(Arc::new(merged_import(&["east"])));
    assert!(matches!(plan("west", &entry), Plan::Import(_)), "it is exported again");
}

#[test]
fn a_part_that_is_missing_keeps_the_ports_it_needs() {
    let mut entry = carried_out("west", entry(&["east", "north"]));
    let mut other = LeaderRecord { uid: "import-2".into(), ..merged_import(&["north"]) };
    other.spec.service_import.as_mut().unwrap().spec.ports = vec![merged_port(Some("other"), 81)];
    entry.leader_import = Some(Arc::new(other));
    assert_eq!(imports("west", &entry).merged.ports[0].port, 80);
}

#[test]
fn our_own_part_stays_while_a_new_leader_has_not_heard_of_it() {
    let mut own = exporting::entry();
    own.leader_import = Some(Arc::new(merged_import(&["east"])));
    let mut own = carried_out("east", own);
    own.leader_import = Some(Arc::new(LeaderRecord { uid: "import-2".into(), ..merged_import(&["north"]) }));
    assert_eq!(imports("east", &own).doubts, vec![part("east")]);
    own.leader_import = None;
    assert_eq!(imports("east", &own).slices.len(), 1);
    own.export = None;
    assert_eq!(imports("east", &own).slices.len(), 0, "ours to say");
}

#[test]
fn after_a_restore_what_a_writer_said_before_changes_nothing() {
    let before = carried_out("west", entry(&["east", "north"]));
    let mut restored = with(before.clone(), |before| before.accepted = None);
    restored.leader_import = Some(Arc::new(merged_import(&["north"])));
    restored.peers.get_mut("north").unwrap().insert(record("north"), Arc::new(payload(&[])));
    let all = [name::LEADER_LEASE.to_owned(), name::member_lease("north")];
    let outdated = |leases: &[String]| Writers {
        restored: true,
        outdated: leases.iter().cloned().collect(),
        ..writers()
    };
    let restored = known("west", &[], &restored);
    let plan = |writers: &Writers| match desired(&restored, writers) {
        Plan::Import(import) => import,
        other => panic!("{other:?}"),
    };
    let import = plan(&outdated(&all));
    assert_eq!((import.clusters.len(), import.leftover.len(), import.accepted), (2, 0, None));
    let import = plan(&outdated(&[]));
    assert_eq!(
        (import.leftover.len(), import.kept.len()),
        (1, 1),
        "north emptied its slice, east is missing"
    );
    let noted = service_import(&restored, &outdated(&[]), &import, vec![]);
    assert_eq!(noted.annotations()[api::label::HUB], "", "measured after a restart as well");
}

/// A leader may merge before it has its Lease.
#[test]
fn a_leader_that_was_not_heard_yet_is_not_noted() {
    let unheard = Writers { leader_uid: None, ..writers() };
    let imported = known("west", &[], &entry(&["east"]));
    let Plan::Import(import) = desired(&imported, &unheard) else { panic!("nothing is imported") };
    let noted = |writers: &Writers| {
        service_import(&imported, writers, &import, vec![]).annotations().get(api::label::HUB).cloned()
    };
    assert_eq!((noted(&unheard), noted(&writers())), (None, Some("leader-1".to_owned())));
    assert!(!unheard.leader_is_the_same(&imported));
}

#[test]
fn what_was_said_counts_even_if_the_deletion_comes_right_after() {
    let import_of = |exporters: serde_json::Value, uid: &str, version: &str| -> LeaderImport {
        let spec = json!({"kind": "ServiceImport", "namespace": "shop", "name": "web",
            "serviceImport": merged_import(&[]).spec.service_import, "exporters": exporters});
        let meta =
            json!({"name": "shop-web-service", "namespace": "cs", "uid": uid, "resourceVersion": version});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    };
    let mut index = Index::<ServiceName, ServiceEntry>::default();
    index.change(Change::Apply(import_of(json!([{"clusterID": "east"}]), "import-1", "1")));
    let mut entry = carried_out("west", entry(&["east"]));
    index.change(Change::Apply((**entry.import.as_ref().unwrap()).clone()));
    index.change(Change::Reset(entry.imported_slices.values().map(|slice| (**slice).clone()).collect()));
    index.note(&service(), |known| known.accepted = entry.accepted.clone());
    index.change(Change::Apply(import_of(json!([]), "import-1", "2")));
    index.change(Change::Remove(import_of(json!([]), "import-1", "3")));
    let seen = index.get(&service()).unwrap();
    (entry.import_gone, entry.taken_back) = (seen.import_gone, seen.taken_back);
    entry.leader_import = None;
    assert_eq!(plan("west", &entry), Plan::Remove);

    index.change(Change::Apply(import_of(json!([{"clusterID": "north"}]), "import-2", "4")));
    let seen = index.get(&service()).unwrap();
    assert_eq!(
        (seen.taken_back, &seen.parts_gone),
        (false, &["east".to_owned()].into()),
        "another one came at once"
    );
}

/// Issue 18: the leader takes back so much that its word does not count.
#[test]
fn what_stays_against_the_leaders_word_follows_its_clusters_and_loses_no_part_when_it_comes_back() {
    let withheld = Writers { withheld: Some("x".into()), ..writers() };
    let held = |entry: &ServiceEntry| match desired(&known("west", &[], entry), &withheld) {
        Plan::Import(import) => import,
        other => panic!("{other:?}"),
    };
    let mut entry = restarted(&carried_out("west", entry(&["east", "north"])), &["east", "north"]);
    for nobody in [Some(merged_import(&[])), None] {
        entry.leader_import = nobody.map(Arc::new);
        entry.import_gone = entry.leader_import.is_none();
        let import = held(&entry);
        assert_eq!((import.doubts, import.slices.len()), (vec![part("east"), part("north")], 2));
        entry.imported_slices.remove(&name::imported_slice("web", &record("east")));
        assert_eq!(held(&entry).slices.len(), 2, "a slice that is new there");
    }
    let known_now = |entry: &ServiceEntry| known("west", &[], entry);
    let noted = |entry: &ServiceEntry, writers: &Writers| {
        let Plan::Import(import) = desired(&known_now(entry), writers) else { panic!() };
        let import = service_import(&known_now(entry), writers, &import, vec![]);
        import.annotations().get(api::label::WITHHELD).cloned()
    };
    assert_eq!(noted(&entry, &withheld).as_deref(), Some("x"));
    let annotations = [(api::label::WITHHELD.to_owned(), "x".to_owned())].into();
    Arc::make_mut(entry.import.as_mut().unwrap()).metadata.annotations = Some(annotations);
    assert_eq!((continuity::withheld(&entry), noted(&entry, &writers())), (Some("x"), None));

    entry.leader_import = Some(Arc::new(merged_import(&["north"])));
    assert_eq!(imports("west", &entry).doubts, vec![part("east")], "it may not know of all yet");
    assert_eq!(noted(&entry, &writers()).as_deref(), Some(""), "it is not withheld any more");
}
