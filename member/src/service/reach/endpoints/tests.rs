use std::{collections::BTreeSet, sync::Arc};

use api::{label, name};
use serde_json::{Value, json};

use super::*;
use crate::service::{
    index::{entry::ServiceEntry, links::Links},
    offer::fixture::{Settings, known_with, service, with},
};

fn endpoint(address: &str, ready: bool) -> Value {
    json!({"addresses": [address], "conditions": {"ready": ready}})
}

/// An imported slice, named after its record.
fn slice(cluster: &str, record: &str, protocol: &str, endpoints: &[Value]) -> (String, Arc<Slice>) {
    let name = name::imported_slice(&service().name, record);
    let slice = json!({
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {label::MANAGED_BY: label::FREEPORT, label::MCS_SOURCE_CLUSTER: cluster},
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": 8080, "protocol": protocol}],
    });
    (name, Arc::new(serde_json::from_value(slice).unwrap()))
}

fn known(entry: &ServiceEntry, unreached: &[&str]) -> Known {
    let unreached = unreached.iter().map(|cluster| ((*cluster).to_owned(), Timestamp::UNIX_EPOCH));
    let links = Links { unreached: unreached.collect(), ..Links::default() };
    known_with("west", entry, Settings { links, ..Settings::default() })
}

/// The addresses to ask, by cluster.
fn asked(entry: &ServiceEntry, unreached: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = Endpoints::new();
    add(&known(entry, unreached), &mut all);
    let named = |endpoints: BTreeMap<u64, SocketAddr>| endpoints.values().map(ToString::to_string).collect();
    all.into_iter().map(|(cluster, endpoints)| (cluster, named(endpoints))).collect()
}

#[test]
fn those_are_asked_that_are_ready_here_and_of_a_lost_cluster_all() {
    let east = slice("east", "e", "TCP", &[endpoint("10.1.0.1", true), endpoint("10.1.0.2", false)]);
    let own = slice("west", "w", "TCP", &[endpoint("10.2.0.1", true)]);
    let udp = slice("north", "n", "UDP", &[endpoint("10.3.0.1", true)]);
    let entry = with(ServiceEntry::default(), |entry| entry.imported_slices = [east, own, udp].into());
    let of = |cluster: &str, these: &[&str]| {
        (cluster.to_owned(), these.iter().map(|socket| (*socket).to_owned()).collect())
    };
    let nobody = of("north", &[]);
    assert_eq!(asked(&entry, &[]), [of("east", &["10.1.0.1:8080"]), nobody.clone()].into());
    let both = of("east", &["10.1.0.1:8080", "10.1.0.2:8080"]);
    assert_eq!(asked(&entry, &["east"]), [both, nobody].into());
}

#[test]
fn a_service_of_many_endpoints_does_not_take_all_places_and_clusters_ask_different_ones() {
    let many: Vec<_> = (0..50).map(|n| endpoint(&format!("10.1.0.{n}"), true)).collect();
    let slices = [slice("east", "e", "TCP", &many)];
    let entry = with(ServiceEntry::default(), |entry| entry.imported_slices = slices.into());
    assert_eq!(asked(&entry, &[])["east"].len(), OF_ONE);
    let [one, other] = ["west", "north"].map(|us| {
        let mut all = Endpoints::new();
        add(&known_with(us, &entry, Settings::default()), &mut all);
        all["east"].values().copied().collect::<Vec<_>>()
    });
    assert_ne!(one, other);
}

#[test]
fn who_was_demoted_before_is_known_by_its_slices() {
    let away = slice("east", "e", "TCP", &[endpoint("10.1.0.1", false)]);
    let mut marked = (*slice("north", "n", "TCP", &[endpoint("10.3.0.1", false)]).1).clone();
    let said = [(label::DEMOTED.to_owned(), "1970-01-01T00:00:07Z".to_owned())];
    marked.metadata.annotations = Some(said.into());
    let entry = with(ServiceEntry::default(), |entry| {
        entry.imported_slices = [away, ("n".to_owned(), Arc::new(marked))].into();
    });
    let since = Timestamp::from_second(7).unwrap();
    assert_eq!(demoted(&known(&entry, &[])).collect::<Vec<_>>(), [("north".to_owned(), since)]);
}
