//! Golden JSON: what travels between clusters reads and writes to the letter. A change here is a change of the wire
//! contract, and a cluster that runs another version of Freeport, or Antrea, has to live with it.

#![cfg(test)]

use api::{
    ServiceName,
    about::ClusterProperty,
    announce::MemberClusterAnnounce,
    antrea::{Members, RECORD_FINALIZERS, TOUCHED},
    cluster_claim::ClusterClaim,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
    name,
    resource_export::ResourceExport,
    resource_import::ResourceImport,
};
use kube::ResourceExt;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Decodes the golden record and demands that encoding gives back exactly the same JSON.
fn golden<K: DeserializeOwned + Serialize>(text: &str) -> K {
    let want: Value = serde_json::from_str(text).unwrap();
    let object: K = serde_json::from_value(want.clone()).unwrap();
    assert_eq!(serde_json::to_value(&object).unwrap(), want);
    object
}

#[test]
fn exports() {
    let service: ResourceExport = golden(include_str!("golden/export-service.json"));
    assert_eq!(service.name_any(), name::service_export("east", &ServiceName::new("shop", "web")));
    assert!(!service.spec.service.unwrap().withdrawn);

    let withdrawn: ResourceExport = golden(include_str!("golden/export-service-withdrawn.json"));
    assert!(withdrawn.spec.service.unwrap().withdrawn);

    let slice: ResourceExport = golden(include_str!("golden/export-slice.json"));
    assert!(name::is_slice_export(&slice.name_any(), "east", &ServiceName::new("shop", "web")));

    let empty: ResourceExport = golden(include_str!("golden/export-slice-empty.json"));
    assert!(empty.spec.endpoint_slice.unwrap().endpoints.is_empty());

    golden::<ResourceExport>(include_str!("golden/export-failed.json"));

    let endpoints: ResourceExport = golden(include_str!("golden/export-endpoints.json"));
    assert_eq!(endpoints.name_any(), name::endpoints_export("east", &ServiceName::new("shop", "web")));
}

/// What an Antrea member writes, where it differs from ours in name and form.
#[test]
fn exports_of_antrea() {
    let (members, web) = (Members::named("north-1"), ServiceName::new("shop", "web"));
    let service: ResourceExport = golden(include_str!("golden/export-service-antrea.json"));
    assert_eq!(service.name_any(), members.service_export("north-1", &web));
    let endpoints: ResourceExport = golden(include_str!("golden/export-endpoints-antrea.json"));
    assert_eq!(endpoints.name_any(), members.endpoints_export("north-1", &web));
    for record in [service, endpoints] {
        assert!(record.finalizers().iter().all(|finalizer| RECORD_FINALIZERS.contains(&finalizer.as_str())));
    }
}

/// What a member of ours writes to a leader of Antrea's.
#[test]
fn exports_to_antrea() {
    let (all, web) = (Members::everyone(), ServiceName::new("team-a", "web"));
    let service: ResourceExport = golden(include_str!("golden/export-service-to-antrea.json"));
    assert_eq!(service.name_any(), all.service_export("east", &web));
    let endpoints: ResourceExport = golden(include_str!("golden/export-endpoints-to-antrea.json"));
    assert_eq!(endpoints.name_any(), all.endpoints_export("east", &web));
    for record in [service, endpoints] {
        assert_eq!(record.finalizers(), [RECORD_FINALIZERS[0]]);
    }
}

#[test]
fn imports() {
    let import: ResourceImport = golden(include_str!("golden/import-service.json"));
    assert_eq!(import.name_any(), name::service_import(&ServiceName::new("shop", "web")));

    let nobody: ResourceImport = golden(include_str!("golden/import-service-nobody.json"));
    assert_eq!(nobody.spec.exporters, Some(vec![]), "an empty list is said, so it must not be left out");

    let antrea: ResourceImport = golden(include_str!("golden/import-service-antrea.json"));
    assert_eq!(antrea.spec.exporters, None, "a missing list says nothing");

    golden::<ResourceImport>(include_str!("golden/import-endpoints-antrea.json"));
    let endpoints: ResourceImport = golden(include_str!("golden/import-endpoints-of-all.json"));
    assert_eq!(endpoints.name_any(), name::endpoints_import(&ServiceName::new("shop", "web")));
}

#[test]
fn membership() {
    let announce: MemberClusterAnnounce = golden(include_str!("golden/announce.json"));
    assert_eq!(announce.name_any(), name::announce("east"));
    let heartbeat: MemberClusterAnnounce = golden(include_str!("golden/announce-antrea.json"));
    assert!(heartbeat.annotations().contains_key(TOUCHED));
    let to_antrea: MemberClusterAnnounce = golden(include_str!("golden/announce-to-antrea.json"));
    assert!(to_antrea.annotations().contains_key(TOUCHED));
    golden::<ClusterSet>(include_str!("golden/cluster-set-member.json"));
    golden::<ClusterSet>(include_str!("golden/cluster-set-leader.json"));
    golden::<ClusterClaim>(include_str!("golden/cluster-claim.json"));
    golden::<ClusterProperty>(include_str!("golden/cluster-property.json"));
}

#[test]
fn mcs() {
    golden::<ServiceExport>(include_str!("golden/service-export.json"));
    golden::<ServiceImport>(include_str!("golden/service-import.json"));
}
