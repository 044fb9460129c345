use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::service::{
    import::plan::DesiredImport,
    index::entry::ServiceEntry,
    offer::fixture::{Settings, known_with, service, with},
};

fn slice(name: &str, port: i32, endpoints: &Value) -> Slice {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop"},
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }))
    .unwrap()
}

fn at(ip: &str) -> Value {
    json!({"addresses": [ip], "conditions": {"ready": true}})
}

fn unready(ip: &str, terminating: bool) -> Value {
    json!({"addresses": [ip], "conditions": {"ready": false, "terminating": terminating}})
}

fn json_of(subsets: Vec<EndpointSubset>) -> Value {
    json!(canonical(subsets))
}

#[test]
fn addresses_are_grouped_by_the_ports_that_they_serve() {
    let slices = [
        slice("a", 8080, &json!([at("10.1.0.2"), unready("10.1.0.3", false), unready("10.1.0.4", true)])),
        slice("b", 8080, &json!([at("10.1.0.1"), at("10.1.0.3")])),
        slice("c", 9090, &json!([at("10.2.0.1"), unready("10.1.0.1", false)])),
    ];
    let port = |port: i32| json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    assert_eq!(
        json_of(subsets(slices.iter())),
        json!([
            {
                "addresses": [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}, {"ip": "10.1.0.3"}],
                "ports": port(8080),
            },
            {
                "addresses": [{"ip": "10.2.0.1"}],
                "notReadyAddresses": [{"ip": "10.1.0.1"}],
                "ports": port(9090),
            },
        ])
    );
}

#[test]
fn an_address_with_several_ports_is_there_once() {
    let mut both = slice("a", 80, &json!([at("10.1.0.1")]));
    both.ports.push(SlicePort { name: Some("debug".into()), port: Some(9), ..SlicePort::default() });
    let mut portless = slice("b", 80, &json!([at("10.1.0.9")]));
    portless.ports.clear();
    let found = subsets([both, portless].iter());
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].addresses.as_ref().unwrap()[0].ip, "10.1.0.9", "a headless import without ports");
    assert_eq!(found[1].ports.as_ref().unwrap().len(), 2);
    let mut renamed = slice("c", 80, &json!([at("10.1.0.1")]));
    renamed.ports.push(SlicePort { name: Some(String::new()), port: Some(80), ..SlicePort::default() });
    let found = subsets([renamed].iter());
    assert_eq!(found[0].ports.as_ref().unwrap().len(), 1, "several ports need names: {found:?}");
}

#[test]
fn nodes_pods_and_host_names_stay_with_their_address() {
    let mut slice = slice("a", 80, &json!([at("10.1.0.1")]));
    slice.endpoints[0].node_name = Some("n1".into());
    slice.endpoints[0].shared.hostname = Some("db-0".into());
    let found = subsets([slice].iter());
    assert_eq!(json!(found[0].addresses), json!([{"ip": "10.1.0.1", "hostname": "db-0", "nodeName": "n1"}]));
}

fn many(count: usize, is_ready: bool) -> Vec<EndpointAddress> {
    let address = |n: usize| EndpointAddress { ip: format!("10.{is_ready}.0.{n}"), ..Default::default() };
    (0..count).map(address).collect()
}

fn sizes(ready: &[usize], not_ready: &[usize]) -> (bool, Vec<(usize, usize)>) {
    let subset = |(ready, not_ready): (&usize, &usize)| EndpointSubset {
        addresses: Some(many(*ready, true)),
        not_ready_addresses: Some(many(*not_ready, false)),
        ports: None,
    };
    let mut subsets: Vec<_> = ready.iter().zip(not_ready).map(subset).collect();
    let truncated = truncate(&mut subsets);
    let size = |list: &Option<Vec<EndpointAddress>>| list.as_ref().map_or(0, Vec::len);
    (truncated, subsets.iter().map(|s| (size(&s.addresses), size(&s.not_ready_addresses))).collect())
}

#[test]
fn a_thousand_addresses_are_the_limit_and_those_that_are_ready_come_first() {
    assert_eq!(sizes(&[600], &[400]), (false, vec![(600, 400)]));
    assert_eq!(sizes(&[600, 100], &[200, 200]), (true, vec![(600, 150), (100, 150)]));
    assert_eq!(sizes(&[1500, 500], &[10, 0]), (true, vec![(750, 0), (250, 0)]));
    assert_eq!(sizes(&[1000, 1], &[1, 1]), (true, vec![(1000, 0)]), "nothing is left for the last");
}

#[test]
fn the_order_of_an_api_server_is_no_difference() {
    let object = |subsets: Value| -> CoreEndpoints {
        serde_json::from_value(json!({"metadata": {"name": "antrea-mc-web"}, "subsets": subsets})).unwrap()
    };
    let subset = |ips: [&str; 2], port: i32| json!({"addresses": ips.map(|ip| json!({"ip": ip})), "ports": [{"port": port}], "notReadyAddresses": []});
    let ours = object(json!([subset(["10.1.0.1", "10.1.0.2"], 80), subset(["10.1.0.3", "10.1.0.4"], 81)]));
    let theirs = object(json!([subset(["10.1.0.4", "10.1.0.3"], 81), subset(["10.1.0.2", "10.1.0.1"], 80)]));
    assert_eq!(ours, theirs);
    assert_eq!(object(Value::Null).subsets, []);
}

fn import(slices: Vec<Slice>, leftover: &[&str]) -> DesiredImport {
    DesiredImport {
        merged: api::mcs::ServiceImportSpec::default(),
        families: vec!["IPv4".into()],
        exported: api::resource_import::MergedMetadata::default(),
        taken: false,
        clusters: vec![],
        kept: BTreeSet::new(),
        slices,
        held: vec![],
        leftover: leftover.iter().map(|&name| name.to_owned()).collect(),
        doubts: vec![],
        accepted: None,
        demoted: BTreeSet::new(),
        left_out: BTreeMap::new(),
        returning: None,
    }
}

#[test]
fn they_repeat_the_slices_that_will_be_here_and_none_without_the_flag() {
    let [held, leftover, changed] = ["held", "leftover", "changed"]
        .map(|name| slice(name, 80, &json!([at(&format!("10.1.0.{}", name.len()))])));
    let there = [held.clone(), leftover, changed].map(|slice| (slice.name_any(), Arc::new(slice)));
    let entry = with(ServiceEntry::default(), |entry| entry.imported_slices = there.into());
    let mut desired = import(vec![slice("changed", 80, &json!([at("10.2.0.1")]))], &["leftover"]);
    desired.held = vec![held];
    let made = |endpoints_objects, desired: &DesiredImport| {
        endpoints(&known_with("east", &entry, Settings { endpoints_objects, ..Settings::default() }), desired)
    };
    let found = made(true, &desired).unwrap();
    assert_eq!(json!(found.subsets[0].addresses), json!([{"ip": "10.1.0.4"}, {"ip": "10.2.0.1"}]));
    let labels = found.labels();
    assert_eq!(found.name_any(), name::imported_service(&service().name));
    assert_eq!((labels[SKIP_MIRROR].as_str(), labels[label::MCS_SERVICE_NAME].as_str()), ("true", "web"));
    assert_eq!((labels.get(HEADLESS), found.metadata.annotations.as_ref()), (None, None));
    let mut headless = desired.clone();
    headless.merged.type_ = api::mcs::ServiceImportType::Headless;
    let of_headless = made(true, &headless).unwrap();
    assert_eq!(of_headless.labels()[HEADLESS], "");
    assert!(of_headless.annotations()[label::EXPORTED_METADATA].contains(HEADLESS), "so that it goes again");
    assert_eq!(made(false, &desired), None);
    assert_eq!(made(true, &DesiredImport { taken: true, ..desired.clone() }), None);
    assert_eq!(made(true, &DesiredImport { families: vec![], ..desired }), None);
}

#[test]
fn those_that_lack_addresses_say_so() {
    let endpoints_of = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| at(&format!("10.1.{}.{}", n / 250, n % 250))).collect();
        let known = known_with(
            "east",
            &ServiceEntry::default(),
            Settings { endpoints_objects: true, ..Settings::default() },
        );
        endpoints(&known, &import(vec![slice("a", 80, &json!(all))], &[])).unwrap()
    };
    assert_eq!(endpoints_of(1000).metadata.annotations, None);
    let more = endpoints_of(1001);
    assert_eq!(more.annotations()[OVER_CAPACITY], TRUNCATED);
    assert_eq!(more.subsets[0].addresses.as_ref().unwrap().len(), 1000);
}
