//! Names of the set, record by record, as CoreDNS answers them from what is imported.

use std::collections::BTreeSet;

use api::mcs::ServiceImport;
use e2e::{
    cluster::Cluster,
    dns::{Transport, Type, expected::records},
    seen::imported_slices,
    waiting::eventually,
};
use fleet::dns::clusterset_name;
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use serde_json::{Value, json};

use crate::pods::world::shared;

/// A Service without selector, exported.
async fn export(cluster: &Cluster, ns: &str, name: &str, spec: Value) {
    let _: Service = cluster.create(ns, json!({"metadata": {"name": name}, "spec": spec})).await;
    cluster.export(ns, name).await;
}

/// A slice of the Service.
async fn slice(cluster: &Cluster, ns: &str, service: &str, ports: &Value, endpoints: &Value) {
    let address = endpoints[0]["addresses"][0].as_str().unwrap();
    let address_type = api::family::of(address);
    let name = format!("{service}-{}", address_type.to_lowercase());
    let slice = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
        "addressType": address_type,
        "ports": ports,
        "endpoints": endpoints,
    });
    let _: EndpointSlice = cluster.create(ns, slice).await;
}

/// Each record that has to be there is, and no others of its name and type.
async fn all_are_right(cluster: &Cluster, ns: &str, service: &str, at_least: usize) {
    let expected = records(cluster, ns, service).await;
    let number: usize = expected.values().map(BTreeSet::len).sum();
    assert!(number >= at_least, "{expected:?}");
    for ((name, type_), wanted) in &expected {
        let heard = cluster.answers(name, *type_, |answer| answer.is(wanted)).await;
        assert!(heard.ttl.is_some_and(|ttl| ttl <= 30), "{heard:?}");
        if *type_ == Type::SRV {
            // What comes along is true.
            for (target, address) in heard.additional {
                let type_ = if address.contains(':') { Type::AAAA } else { Type::A };
                let target = target.trim_end_matches('.').to_owned();
                assert!(expected[&(target, type_)].contains(&address), "{address}: {expected:?}");
            }
        }
    }
}

#[e2e::test]
fn r63_r64_r65_r66_names_of_an_import_with_addresses() {
    shared(async |world| {
        let (ns, name) = ("names", clusterset_name("names", "web"));
        world.namespace_everywhere(ns).await;
        let (leader, east) = (world.cluster("leader"), world.cluster("east"));
        let ports = json!([
            {"name": "dns", "port": 53, "protocol": "TCP"},
            {"name": "dns-udp", "port": 53, "protocol": "UDP"},
            {"name": "http", "port": 80, "protocol": "TCP"},
        ]);
        let families = json!(["IPv4", "IPv6"]);
        export(
            east,
            ns,
            "web",
            json!({"ports": ports, "ipFamilyPolicy": "RequireDualStack", "ipFamilies": families}),
        )
        .await;
        let endpoint = json!([{"addresses": ["10.1.0.1"], "hostname": "web-0"}]);
        slice(east, ns, "web", &ports, &endpoint).await;
        eventually("it is imported with both families", || async {
            let import =
                leader.api::<ServiceImport>(ns).get("web").await.map_err(|error| error.to_string())?;
            if import.spec.ips.len() == 2 { Ok(()) } else { Err(format!("{import:?}")) }
        })
        .await;
        // Two addresses; of three ports two numbers by the bare name, and one record each by their own.
        all_are_right(leader, ns, "web", 2 + 2 + 3).await;
        for no_name in [
            format!("east.{name}"),
            format!("leader.{name}"),
            format!("_nothing._tcp.{name}"),
            format!("_http._udp.{name}"),
            clusterset_name(ns, "other"),
            clusterset_name("nowhere", "web"),
        ] {
            for type_ in [Type::A, Type::AAAA, Type::SRV] {
                leader.answers(&no_name, type_, |answer| answer.is_no_name()).await;
            }
        }
        // A port without a name has none in DNS either.
        export(east, ns, "unnamed", json!({"ports": [{"port": 80}]})).await;
        let unnamed = clusterset_name(ns, "unnamed");
        let srv = leader.answers(&unnamed, Type::SRV, |answer| answer.records.len() == 1).await;
        assert_eq!(srv.records, [format!("80 {unnamed}.")]);
        for no_name in ["_unnamed", "_p80", "_80"].map(|port| format!("{port}._tcp.{unnamed}")) {
            leader.answers(&no_name, Type::SRV, |answer| answer.is_no_name()).await;
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r67_r68_r69_r70_r72_names_of_a_headless_import_and_of_each_of_its_endpoints() {
    shared(async |world| {
        let (ns, name) = ("endpoints", clusterset_name("endpoints", "db"));
        world.namespace_everywhere(ns).await;
        let (leader, east) = (world.cluster("leader"), world.cluster("east"));
        let families = json!(["IPv4", "IPv6"]);
        for (number, cluster) in [(1, east), (2, leader)] {
            let ports = json!([
                {"name": "sql", "port": 5432, "protocol": "TCP"},
                {"name": "sql-udp", "port": 5432, "protocol": "UDP"},
                {"name": "metrics", "port": 9090, "protocol": "TCP"},
            ]);
            let spec = json!({"clusterIP": "None", "ports": ports, "ipFamilyPolicy": "RequireDualStack", "ipFamilies": families});
            export(cluster, ns, "db", spec).await;
            // Endpoints have other numbers than the Service.
            let ports = json!([
                {"name": "sql", "port": 15432, "protocol": "TCP"},
                {"name": "sql-udp", "port": 15432, "protocol": "UDP"},
                {"name": "metrics", "port": 19090, "protocol": "TCP"},
            ]);
            let endpoints = |address: &dyn Fn(u8) -> String| {
                json!([
                    {"addresses": [address(1)], "hostname": "db-0", "conditions": {"ready": true}},
                    {"addresses": [address(2)], "conditions": {"ready": true}},
                    {"addresses": [address(3)], "hostname": "db-2", "conditions": {"ready": false}},
                ])
            };
            slice(cluster, ns, "db", &ports, &endpoints(&|last| format!("10.1.{number}.{last}"))).await;
            slice(cluster, ns, "db", &ports, &endpoints(&|last| format!("fd00:{number}::{last}"))).await;
        }
        for cluster in [leader, east] {
            eventually(&format!("both are imported in {}", cluster.name), || async {
                let slices = imported_slices(cluster, ns, "db").await;
                if slices.len() == 4 { Ok(()) } else { Err(format!("{slices:?}")) }
            })
            .await;
            // Eight endpoints are ready. Those of one host name have one target for both families.
            all_are_right(cluster, ns, "db", 8 + 8).await;
            for no_name in [
                format!("db-2.east.{name}"),
                format!("db-0.nowhere.{name}"),
                format!("db-0.{name}"),
                format!("east.{name}"),
                format!("_nothing._tcp.{name}"),
            ] {
                for type_ in [Type::A, Type::AAAA, Type::SRV] {
                    cluster.answers(&no_name, type_, |answer| answer.is_no_name()).await;
                }
            }
        }
        let empty = clusterset_name(ns, "empty");
        export(east, ns, "empty", json!({"clusterIP": "None"})).await;
        eventually("it is imported", || async {
            leader.api::<ServiceImport>(ns).get("empty").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        leader.answers(&empty, Type::A, |answer| answer.is_no_name()).await;
        world.release(ns).await;
    });
}

/// CoreDNS says 1.1.0, where the specification of the set's names says 1.0.0.
#[e2e::test]
fn r62_the_version_is_told() {
    shared(async |world| {
        let told = world
            .cluster("east")
            .answers("dns-version.clusterset.local", Type::TXT, |answer| answer.records == ["1.1.0"]);
        let told = told.await;
        assert_eq!(told.ttl, Some(28_800));
    });
}

#[e2e::test]
fn r71_r72_long_names_other_types_letter_case_and_answers_that_do_not_fit_a_packet() {
    shared(async |world| {
        let (ns, long) = ("limits", "x".repeat(63));
        world.namespace_everywhere(ns).await;
        let (leader, east) = (world.cluster("leader"), world.cluster("east"));
        let ports = json!([{"name": "sql", "port": 5432, "protocol": "TCP"}]);
        export(east, ns, &long, json!({"clusterIP": "None", "ports": ports})).await;
        let endpoint = |n: usize| json!({"addresses": [format!("10.1.3.{n}")], "hostname": format!("{}-{n}", "h".repeat(60))});
        let endpoints: Vec<_> = (1..=90).map(endpoint).collect();
        slice(east, ns, &long, &ports, &json!(endpoints)).await;
        eventually("it is imported", || async {
            let slices = imported_slices(leader, ns, &long).await;
            if slices.len() == 1 { Ok(()) } else { Err(format!("{slices:?}")) }
        })
        .await;
        let name = clusterset_name(ns, &long);
        let all = leader.answers(&name, Type::A, |answer| answer.records.len() == 90).await;
        let packet = leader.lookup_by(Transport::Udp, &name, Type::A).await.unwrap();
        assert!(
            packet.truncated && packet.records.iter().all(|record| all.records.contains(record)),
            "{packet:?}"
        );
        all_are_right(leader, ns, &long, 90 + 90 + 90 + 90).await;
        let pod = format!("{}-7.east.{name}", "h".repeat(60));
        for name in [name.to_uppercase(), name.replace("svc", "Svc")] {
            assert_eq!(leader.lookup(&name, Type::A).await.unwrap().records, all.records);
        }
        for type_ in [Type::AAAA, Type::TXT, Type::MX] {
            for name in [&name, &pod] {
                let answer = leader.lookup(name, type_).await.unwrap();
                assert!(answer.is_no_record(), "{type_} of {name}: {answer:?}");
            }
        }
        world.release(ns).await;
    });
}
