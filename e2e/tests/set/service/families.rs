//! IPv4 and IPv6. `leader` and `east` have both, `west` has IPv4 alone.

use std::{collections::BTreeSet, time::Duration};

use api::mcs::ServiceImport;
use k8s_openapi::api::{
    core::v1::{ResourceQuota, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::json;

use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{CLUSTERS, SYSTEM, alone, shared},
    seen::{conditions, imported_slices, says},
    waiting::eventually,
    watched::Watched,
};

const BOTH: &[&str] = &["IPv4", "IPv6"];

/// Service `web` of these families, with an endpoint in each.
async fn service(cluster: &Cluster, ns: &str, families: &[&str], endpoints: [&str; 2]) {
    service_with(cluster, ns, families, endpoints, None).await;
}

/// [`service`] with this in place of an address of its own.
async fn service_with(
    cluster: &Cluster,
    ns: &str,
    families: &[&str],
    endpoints: [&str; 2],
    cluster_ip: Option<&str>,
) {
    let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
    let spec = json!({
        "clusterIP": cluster_ip,
        "ipFamilies": families,
        "ipFamilyPolicy": policy,
        "ports": [{"name": "http", "port": 80}],
    });
    let _: Service = cluster.create(ns, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    for address in endpoints {
        let address_type = api::family::of(address);
        let slice = json!({
            "metadata": {
                "name": format!("web-{}", address_type.to_lowercase()),
                "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": address_type,
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        let _: EndpointSlice = cluster.create(ns, slice).await;
    }
}

/// Addresses of the import, which agree with its families and its Service, and those of its endpoints.
async fn seen(cluster: &Cluster, ns: &str) -> Result<(Vec<String>, BTreeSet<String>), String> {
    let import = cluster.api::<ServiceImport>(ns).get("web").await.map_err(|error| error.to_string())?;
    let service = cluster.api::<Service>(ns).get("antrea-mc-web").await.map_err(|error| error.to_string())?;
    let spec = service.spec.unwrap_or_default();
    if Some(&import.spec.ips) != spec.cluster_ips.as_ref() {
        return Err(format!("{:?} and {spec:?}", import.spec));
    }
    let families: Vec<_> = import.spec.ips.iter().map(|ip| api::family::of(ip)).collect();
    assert_eq!(import.spec.ip_families, families, "R-26");
    let mut endpoints = BTreeSet::new();
    for slice in imported_slices(cluster, ns, "web").await {
        for address in slice.endpoints.iter().flatten().flat_map(|endpoint| &endpoint.addresses) {
            assert_eq!(api::family::of(address), slice.address_type, "R-52");
            endpoints.insert(address.clone());
        }
    }
    Ok((import.spec.ips, endpoints))
}

/// The addresses of the import, once it has these families and endpoints.
async fn served(cluster: &Cluster, ns: &str, families: &[&str], endpoints: &[&str]) -> Vec<String> {
    let what = format!("{} serves it by {families:?} at {endpoints:?}", cluster.name);
    eventually(&what, || async {
        let (ips, at) = seen(cluster, ns).await?;
        let is_right = ips.iter().map(|ip| api::family::of(ip)).eq(families.iter().copied())
            && at.iter().map(String::as_str).eq(endpoints.iter().copied());
        if is_right { Ok(ips) } else { Err(format!("{ips:?} at {at:?}")) }
    })
    .await
}

#[e2e::test]
fn r26_r31_a_family_that_is_added_brings_an_address_and_leaves_the_first_one() {
    shared(async |world| {
        for (ns, first, order, endpoints) in [
            ("addsix", "IPv4", ["IPv4", "IPv6"], ["10.1.0.1", "fd00:1::1"]),
            ("addfour", "IPv6", ["IPv6", "IPv4"], ["fd00:1::1", "10.1.0.1"]),
        ] {
            let ns = &world.namespace(ns, &["leader", "east"]).await;
            let (leader, east) = (world.leader(), world.cluster("east"));
            let told = Watched::<ServiceImport>::of(leader, ns).await;
            service(east, ns, &[first], endpoints).await;
            east.export(ns, "web").await;
            let one = served(leader, ns, &[first], &endpoints[..1]).await;
            east.change_families(ns, "web", &order).await;
            let both = served(leader, ns, &order, &["10.1.0.1", "fd00:1::1"]).await;
            assert_eq!(both[..1], one[..], "the first address stays (R-31)");
            east.change_families(ns, "web", &[first]).await;
            assert_eq!(served(leader, ns, &[first], &endpoints[..1]).await, one);
            told.each(|import| {
                let of = import.spec.ips.iter().map(|ip| api::family::of(ip));
                assert!(of.eq(import.spec.ip_families.iter()), "{:?} (R-26)", import.spec);
            });
            told.nothing_deleted("the import is changed in place");
            world.release(ns).await;
        }
    });
}

#[e2e::test]
fn r24_r52_each_cluster_serves_an_import_in_the_families_it_has_and_says_if_there_is_none() {
    shared(async |world| {
        let ns = &world.namespace("families", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        service(east, ns, BOTH, ["10.1.0.1", "fd00:1::1"]).await;
        east.export(ns, "web").await;
        for cluster in [leader, east] {
            served(cluster, ns, BOTH, &["10.1.0.1", "fd00:1::1"]).await;
        }
        served(west, ns, &["IPv4"], &["10.1.0.1"]).await;

        // An API server does not change the first family of a Service.
        east.delete::<Service>(ns, "web").await;
        let spec = json!({"ipFamilies": ["IPv6"], "ports": [{"name": "http", "port": 80}]});
        let _: Service = east.create(ns, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        served(leader, ns, &["IPv6"], &["fd00:1::1"]).await;
        eventually("west cannot reach it, and says so", || async {
            let import = west.api::<ServiceImport>(ns).get("web").await.map_err(|error| error.to_string())?;
            let conditions = import.status.iter().flat_map(|status| &status.conditions);
            let ready = conditions.into_iter().find(|c| c.type_ == "Ready").ok_or("no Ready")?;
            let slices = imported_slices(west, ns, "web").await.len();
            match (ready.status.as_str(), ready.reason.as_str(), import.spec.ips.len(), slices) {
                ("False", "IPFamilyNotSupported", 0, 0) => Ok(()),
                _ => Err(format!("{import:?}, {slices} slices")),
            }
        })
        .await;
        east.change_families(ns, "web", &["IPv6", "IPv4"]).await;
        served(west, ns, &["IPv4"], &["10.1.0.1"]).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn r48_clusters_that_differ_in_families_are_told_and_what_all_have_is_used() {
    shared(async |world| {
        let ns = &world.namespace("difference", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        service(east, ns, BOTH, ["10.1.0.1", "fd00:1::1"]).await;
        east.export(ns, "web").await;
        let both = served(leader, ns, BOTH, &["10.1.0.1", "fd00:1::1"]).await;
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        west.service(ns, "web", &[("http", 80)]).await;
        west.slice(ns, "web", "web-1", &["10.2.0.1"], &[("http", 8080)]).await;
        west.export(ns, "web").await;
        for cluster in [east, west] {
            eventually("both are told", || {
                says(cluster, (ns, "web"), "Conflict", "True", "IPFamilyConflict")
            })
            .await;
        }
        let told = conditions(east, ns, "web").await.remove("Conflict").unwrap().message;
        assert!(told.contains("IPv4 is used") && told.contains("disagrees (1 of 2)"), "{told}");
        let one = served(leader, ns, &["IPv4"], &["10.1.0.1", "10.2.0.1"]).await;
        assert_eq!(one, both[..1], "the first address stays (R-38)");
        west.unexport(ns, "web").await;
        let again = served(leader, ns, BOTH, &["10.1.0.1", "fd00:1::1"]).await;
        assert_eq!(again[0], both[0]);
        eventually("no conflict", || says(east, (ns, "web"), "Conflict", "False", "NoConflicts")).await;
        world.release(ns).await;
    });
}

/// Nobody's coming takes away the address that everybody uses.
#[e2e::test]
fn r38_a_younger_export_without_the_oldest_ones_family_takes_nothing_away() {
    shared(async |world| {
        let ns = &world.namespace("younger", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        service(east, ns, BOTH, ["10.1.0.1", "fd00:1::1"]).await;
        east.export(ns, "web").await;
        let before = served(leader, ns, BOTH, &["10.1.0.1", "fd00:1::1"]).await;
        let in_west = served(west, ns, &["IPv4"], &["10.1.0.1"]).await;
        let derived = Watched::<Service>::of(west, ns).await;
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        service(leader, ns, &["IPv6"], ["10.3.0.1", "fd00:3::1"]).await;
        leader.export(ns, "web").await;
        for cluster in [east, leader] {
            eventually("both are told", || {
                says(cluster, (ns, "web"), "Conflict", "True", "IPFamilyConflict")
            })
            .await;
        }
        let after = served(leader, ns, BOTH, &["10.1.0.1", "fd00:1::1", "fd00:3::1"]).await;
        assert_eq!(after, before);
        assert_eq!(served(west, ns, &["IPv4"], &["10.1.0.1"]).await, in_west);
        derived.nothing_deleted("west keeps its address");
        world.release(ns).await;
    });
}

/// Its API server does not tell which families it has, for want of room for one more Service where the member asks.
#[e2e::test(real)]
fn a_member_that_cannot_ask_for_families_imports_with_one() {
    alone(async |world| {
        let ns = &world.namespace("unasked", &CLUSTERS).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"services": "0"}}});
        let _: ResourceQuota = west.create(SYSTEM, quota).await;
        eventually("the quota is in force", || async {
            let quota = west.api::<ResourceQuota>(SYSTEM).get("none").await.map_err(|e| e.to_string())?;
            let hard = quota.status.as_ref().and_then(|status| status.hard.as_ref());
            if hard.is_some() { Ok(()) } else { Err(format!("{:?}", quota.status)) }
        })
        .await;
        world.end("freeport-member-west", End::Stop).await;
        world.start("freeport-member-west").await;
        service(east, ns, BOTH, ["10.1.0.1", "fd00:1::1"]).await;
        east.export(ns, "web").await;
        served(west, ns, &["IPv4"], &["10.1.0.1"]).await;
        east.unexport(ns, "web").await;
        west.delete::<ResourceQuota>(SYSTEM, "none").await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn a_headless_import_follows_its_exporters_in_families_too() {
    shared(async |world| {
        let ns = &world.namespace("headlessfamilies", &["leader", "east"]).await;
        let (leader, east) = (world.leader(), world.cluster("east"));
        let derived = Watched::<Service>::of(leader, ns).await;
        service_with(east, ns, &["IPv4"], ["10.1.0.1", "fd00:1::1"], Some("None")).await;
        east.export(ns, "web").await;
        for families in [&["IPv4"], BOTH, &["IPv4"]] {
            east.change_families(ns, "web", families).await;
            eventually(&format!("headless with {families:?}"), || async {
                let import = leader.api::<ServiceImport>(ns).get("web").await.map_err(|e| e.to_string())?;
                let service =
                    leader.api::<Service>(ns).get("antrea-mc-web").await.map_err(|e| e.to_string())?;
                let spec = service.spec.unwrap_or_default();
                let of: BTreeSet<_> =
                    imported_slices(leader, ns, "web").await.into_iter().map(|s| s.address_type).collect();
                let is_right = import.spec.ips.is_empty()
                    && import.spec.ip_families == families
                    && spec.ip_families.as_ref() == Some(&import.spec.ip_families)
                    && of.iter().eq(families);
                if is_right { Ok(()) } else { Err(format!("{:?}, {spec:?}, slices of {of:?}", import.spec)) }
            })
            .await;
        }
        derived.nothing_deleted("the Service is changed in place");
        world.release(ns).await;
    });
}
