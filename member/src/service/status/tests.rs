use std::sync::Arc;

use api::{
    lacking::Lacking,
    mcs::VALID,
    resource_import::{Objection, ResourceImportSpec},
    view::Lenient,
};

use super::*;
use crate::service::{
    index::{
        entry::{LeaderRecord, ServiceEntry, Unexported},
        known::UnderAntrea,
    },
    offer::fixture::{Settings, entry, known, known_with, local_service, own_record, slice},
};

fn words(known: &Known) -> Vec<(&'static str, &'static str, String)> {
    desired(known).into_iter().map(|v| (v.type_, v.status.as_str(), v.reason)).collect()
}

fn says(entry: &ServiceEntry) -> Vec<(&'static str, &'static str, String)> {
    words(&known("east", entry))
}

/// Where the leader refuses the record of an EndpointSlice, in its words.
fn refusing(entry: &mut ServiceEntry, record: &str, reason: &str) -> String {
    let mut slice = own_record("u2", 1);
    let condition =
        serde_json::json!({"type": "Failure", "status": "False", "reason": reason, "message": "too much"});
    slice.status =
        Lenient(Ok(serde_json::from_value(serde_json::json!({"conditions": [condition]})).unwrap()));
    entry.own_slices.insert(record.into(), Arc::new(slice));
    let of_slice = desired(&known("east", entry)).remove(1);
    assert_eq!((of_slice.status, of_slice.reason.as_str()), (Status::False, "Failed"));
    entry.own_slices.clear();
    of_slice.message
}

fn verdict(observed: &str, refused: Option<Objection>) -> LeaderRecord {
    let exporter =
        Exporter { cluster_id: "east".into(), observed: observed.into(), refused, ..Exporter::default() };
    let spec = ResourceImportSpec { exporters: Some(vec![exporter]), ..ResourceImportSpec::default() };
    LeaderRecord { spec, ..LeaderRecord::default() }
}

#[test]
fn r10_r11_conditions_follow_the_export_on_its_way() {
    let mut entry = entry();
    assert_eq!(says(&entry)[0], (VALID, "True", "Valid".into()));
    assert_eq!(says(&entry)[1], (READY, "Unknown", PENDING.into()));

    entry.own_service = Some(Arc::new(own_record("u1", 2)));
    entry.leader_import = Some(Arc::new(verdict("u1/1", None)));
    assert_eq!(says(&entry)[1], (READY, "Unknown", PENDING.into()), "a verdict on an older record");
    assert_eq!(says(&entry).len(), 2, "nor does it of conflicts");
    entry.leader_import = Some(Arc::new(verdict("u1/2", None)));
    assert_eq!(says(&entry)[1], (READY, "True", "Exported".into()));
    assert_eq!(says(&entry)[2], (CONFLICT, "False", "NoConflicts".into()));
    entry.refused = Some("exceeded quota".into());
    assert_eq!(says(&entry)[1], (READY, "False", "Refused".into()), "one of its slices");
    assert!(desired(&known("east", &entry))[1].message.ends_with(": exceeded quota"));
    entry.refused = None;
    let gone = refusing(&mut entry, "s", "OverQuota");
    assert!(gone.ends_with("an EndpointSlice (ResourceExport s): OverQuota: too much"), "{gone}");
    entry.slices.insert("big-3".into(), Arc::new(slice(&["10.1.0.1"])));
    let record = name::slice_export("east", &known("east", &entry).service, "big-3");
    let large = refusing(&mut entry, &record, "TooLarge");
    assert!(large.ends_with("but EndpointSlice big-3 is too large: split it"), "{large}");
    entry.slices.remove("big-3");
    let too_many = Objection { reason: "TooManyPorts".into(), message: "m".into() };
    entry.leader_import = Some(Arc::new(verdict("u1/2", Some(too_many))));
    assert_eq!(says(&entry)[1], (READY, "False", "Failed".into()));

    entry.leader_import = Some(Arc::new(verdict("u1/2", None)));
    let exporters = verdict("u1/2", None).spec.exporters.unwrap();
    let mut settings = Settings {
        antrea_leads: true,
        under_antrea: UnderAntrea { rival: None, exporters },
        ..Settings::default()
    };
    let under_antrea = |settings: &Settings| words(&known_with("east", &entry, settings.clone()));
    assert_eq!(
        under_antrea(&settings)[1..],
        [(READY, "True", "Exported".into())],
        "Antrea's leader reports no conflicts"
    );
    settings.under_antrea.rival = Some(ServiceName::new("shop-web", "x"));
    assert_eq!(
        under_antrea(&settings)[1..],
        [(READY, "False", "Failed".into())],
        "and has one record for both"
    );

    let many = serde_json::json!(
        (1..=101).map(|n| serde_json::json!({"port": n, "name": format!("p{n}")})).collect::<Vec<_>>()
    );
    entry.service = Some(Arc::new(local_service(|service| service["spec"]["ports"] = many)));
    assert_eq!(
        says(&entry)[..2],
        [(VALID, "False", "TooManyPorts".into()), (READY, "True", "Exported".into())]
    );
    let said = desired(&known("east", &entry));
    assert!(
        said[0].message.starts_with("the Service has 101 ports, and at most 100 can be exported. "),
        "{}",
        said[0].message
    );
    assert!(said[0].message.contains("the last valid export is still served"), "{}", said[0].message);
    assert_eq!(said[1].message, "the leader has merged the last valid export");
    entry.service = None;
    assert_eq!(says(&entry)[0], (VALID, "False", "NoService".into()));
    (entry.export, entry.unexported) = (None, Some(Unexported::Decided));
    assert!(says(&entry).is_empty());
}

#[test]
fn r39_all_conflicts_are_said_at_once_and_stay_until_there_is_another_verdict() {
    let objection = |reason: &str| Objection { reason: reason.into(), message: format!("{reason} it is") };
    let both = conflict(&[objection("PortConflict"), objection("LabelsConflict")]);
    assert_eq!((both.status, both.reason.as_str()), (Status::True, "PortConflict,LabelsConflict"));
    assert_eq!(both.message, "PortConflict it is. LabelsConflict it is");

    let now = Time(Timestamp::UNIX_EPOCH);
    let have = conditions(&[both], &[], Some(1), &now);
    let says = |valid, ready, reason| {
        [Verdict::new(VALID, valid, "Valid", ""), Verdict::new(READY, ready, reason, "")]
    };
    let pending = says(Status::True, Status::Unknown, PENDING);
    let kept = says(Status::False, Status::True, "Exported");
    for takes_part in [pending, kept] {
        let mut want = conditions(&takes_part, &have, Some(2), &now);
        keep_conflict(&mut want, &have);
        assert_eq!(want[2], have[0]);
    }
    let mut invalid = conditions(&says(Status::False, Status::False, PENDING), &have, Some(2), &now);
    keep_conflict(&mut invalid, &have);
    assert_eq!(invalid.len(), 2, "it takes no part");
    let mut decided = conditions(&[conflict(&[])], &have, Some(2), &now);
    keep_conflict(&mut decided, &have);
    assert_eq!(decided.len(), 1);
}

#[test]
fn an_export_names_the_clusters_that_lack_its_namespace() {
    let mut entry = entry();
    entry.own_service = Some(Arc::new(own_record("u1", 2)));
    entry.leader_import = Some(Arc::new(verdict("u1/2", None)));
    let ready = |lacking: Option<&[&str]>| {
        let lacks = ["shop".to_owned()].into();
        let members: Vec<_> = lacking.into_iter().flatten().map(|id| (*id).to_owned()).collect();
        let lacking = lacking.map(|_| Lacking::of(members.iter().map(|id| (id, &lacks))));
        desired(&known_with("east", &entry, Settings { lacking, ..Settings::default() })).remove(1)
    };
    assert_eq!(ready(Some(&[])).message, "the leader has merged this export");
    let some = ready(Some(&["north", "west"]));
    let said = "the leader has merged this export. It is not imported in north, west, because there is no Namespace shop; ";
    assert!(some.status == Status::True && some.message.starts_with(said), "{}", some.message);

    let now = Time(Timestamp::UNIX_EPOCH);
    let have = conditions(&[some], &[], Some(1), &now);
    let mut want = conditions(&[ready(None)], &have, Some(1), &now);
    keep_lack(&mut want, &have);
    assert_eq!(want, have, "after a restart nothing is written before it is known");
    let mut failed = conditions(&[Verdict::new(READY, Status::False, "Failed", "m")], &have, Some(1), &now);
    keep_lack(&mut failed, &have);
    assert_eq!(failed[0].message, "m");
}

#[test]
fn what_services_do_not_get_is_said_and_the_export_is_valid() {
    let mut entry = entry();
    let mut export = entry.export.as_deref().unwrap().clone();
    let spec = serde_json::json!({"exportedLabels": {"app.kubernetes.io/instance": "shop", "team": "shop"}});
    export.spec = Lenient(Ok(serde_json::from_value(spec).unwrap()));
    entry.export = Some(Arc::new(export));
    let valid = desired(&known("east", &entry)).remove(0);
    assert_eq!((valid.status, valid.reason.as_str()), (Status::True, "Valid"));
    assert!(valid.message.contains("do not get app.kubernetes.io/instance,"), "{}", valid.message);
}
