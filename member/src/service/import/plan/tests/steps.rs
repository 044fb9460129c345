//! Issue 14, A6: one step that fails does not keep the later ones from being done.

use std::sync::Arc;

use api::unwritten::SERVICES;
use kit::{index::Shared, watch::Latest, write::Writer};
use kube::Client;
use presence::vouch::Vouching;

use super::*;
use crate::{
    feature::fixture::access,
    service::{
        addresses::noting::Kept,
        attempts::breaks_at,
        import::{Importing, Room},
        index::endpoints::CoreEndpoints,
        knowledge::Knowledge,
    },
};

/// Slices that have to go.
const LEFT: [&str; 2] = ["left-1", "left-2"];
const SERVICE: &str = "POST services/antrea-mc-web";
const IMPORT: &str = "DELETE serviceimports/web";

fn importing(client: &Client) -> Importing {
    let access = access();
    let metrics = access.env.metrics;
    let writer = Writer::new(client.clone(), "test", "local", metrics.clone());
    Importing {
        us: access.us,
        knowledge: Knowledge::new(Arc::unwrap_or_clone(known("west", &[], &entry(&[])).cluster)),
        vouching: Vouching::new(SERVICES, access.leases, Latest::default()),
        withdrawals: Shared::default(),
        unanswered: Shared::default(),
        addresses: Kept::default(),
        room: Shared::new(Room::new(1)),
        antrea: access.antrea,
        leader: client.clone(),
        writer,
        events: access.env.events,
        metrics,
    }
}

/// What is tried to make an import with two slices that are new and two that have to go, and whether all was done.
async fn made(broken: Option<&str>) -> (Vec<String>, bool) {
    let families = vec!["IPv4".to_owned()];
    let mut here = entry(&["east", "north"]);
    let mut desired = imports_in("west", &families, &here);
    for name in LEFT {
        let mut slice = desired.slices[0].clone();
        slice.metadata.name = Some(name.into());
        here.imported_slices.insert(name.into(), Arc::new(by_us(slice)));
    }
    desired.leftover = LEFT.map(str::to_owned).into();
    let known =
        known_with("west", &here, Settings { families, endpoints_objects: true, ..Settings::default() });
    let (client, tried) = breaks_at(broken);
    let done = Box::pin(importing(&client).apply(&known, &writers(), desired)).await;
    (tried.with(std::mem::take), done.is_ok())
}

/// What is tried to take an import away that has two slices and Endpoints, and whether all was done.
async fn removed(broken: Option<&str>) -> (Vec<String>, bool) {
    let mut here = carried_out_in("west", &["IPv4".to_owned()], entry(&["east", "north"]));
    let endpoints = json!({"metadata": {"name": "antrea-mc-web", "namespace": "shop"}});
    here.imported_endpoints =
        Some(Arc::new(by_us(serde_json::from_value::<CoreEndpoints>(endpoints).unwrap())));
    let (client, tried) = breaks_at(broken);
    let done = importing(&client).remove(&known("west", &[], &here)).await;
    (tried.with(std::mem::take), done.is_ok())
}

#[tokio::test]
async fn a6_a_step_of_an_import_that_fails_does_not_keep_the_later_ones_from_being_done() {
    let (all, is_done) = Box::pin(made(None)).await;
    let (status, writes) = all.split_last().unwrap();
    assert!(is_done && status == "PATCH serviceimports/web/status" && writes.len() == 7, "{all:?}");
    for broken in writes {
        let (tried, is_done) = Box::pin(made(Some(broken))).await;
        // An import and slices of a Service that is not there would tell of an address that it may not get.
        let waits = |request: &str| broken == SERVICE && request != SERVICE && request.starts_with("POST");
        let later: Vec<_> = writes.iter().filter(|request| !waits(request)).collect();
        assert_eq!(tried.iter().collect::<Vec<_>>(), later, "{broken} fails");
        assert!(!is_done, "{broken} is to be tried again");
    }
}

#[tokio::test]
async fn a6_a_removal_that_fails_does_not_keep_the_others_from_being_done() {
    let (all, is_done) = removed(None).await;
    let (last, others) = all.split_last().unwrap();
    assert!(is_done && last == IMPORT && others.len() == 4, "{all:?}");
    for broken in others {
        let (tried, is_done) = removed(Some(broken)).await;
        assert_eq!(tried, others, "{broken} fails: the ServiceImport notes what there is to finish");
        assert!(!is_done, "{broken} is to be tried again");
    }
}

/// What is tried where a ServiceImport is here that somebody else made, and whether all was done.
async fn anothers(mut here: ServiceEntry) -> (Vec<String>, bool) {
    let families = vec!["IPv4".to_owned()];
    let made_by_somebody = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "i"}, "spec": {}});
    here.import = Some(Arc::new(serde_json::from_value(made_by_somebody).unwrap()));
    let desired = imports_in("west", &families, &here);
    let known = known_with("west", &here, Settings { families, ..Settings::default() });
    let (client, tried) = breaks_at(None);
    let done = Box::pin(importing(&client).apply(&known, &writers(), desired)).await;
    (tried.with(std::mem::take), done.is_ok())
}

#[tokio::test]
async fn a6_what_is_here_of_ours_follows_though_the_serviceimport_is_anothers() {
    assert_eq!(anothers(entry(&["east", "north"])).await, (vec![], true), "nothing is here");
    let mut here = carried_out_in("west", &["IPv4".to_owned()], entry(&["east", "north"]));
    here.imported_slices.retain(|_, slice| slice.labels()[label::MCS_SOURCE_CLUSTER] == "east");
    let mut left = (**here.imported_slices.values().next().unwrap()).clone();
    left.metadata.name = Some(LEFT[0].into());
    left.metadata.labels.as_mut().unwrap().insert(label::MCS_SOURCE_CLUSTER.into(), "south".into());
    here.imported_slices.insert(LEFT[0].into(), Arc::new(left));
    let (tried, is_done) = anothers(here).await;
    assert!(is_done && !tried.iter().any(|request| request.contains("serviceimports")), "{tried:?}");
    assert!(tried.contains(&format!("DELETE endpointslices/{}", LEFT[0])), "{tried:?}");
    let is_new = |request: &&String| request.starts_with("POST endpointslices/");
    assert_eq!(tried.iter().filter(is_new).count(), 1, "{tried:?}");
}
