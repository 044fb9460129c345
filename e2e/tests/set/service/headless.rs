//! Headless Services: an import without an address, and what becomes of it when exporters differ.

use std::{collections::BTreeSet, time::Duration};

use api::mcs::{ServiceImport, ServiceImportType};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::ResourceExt;
use serde_json::{Value, json};

use e2e::{
    cluster::Cluster,
    fixture::{CLUSTERS, shared},
    seen::{imported, imported_slices, not_imported, right, says},
    waiting::eventually,
    watched::Watched,
};

/// Service `db` without an address, with these ports, and a slice with endpoints of these host names and addresses.
async fn headless(cluster: &Cluster, ns: &str, ports: Value, endpoints: &[(&str, &str)]) {
    // Without selector it would say both families wherever both are possible.
    let spec =
        json!({"clusterIP": "None", "ports": ports, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"});
    let _: Service = cluster.create(ns, json!({"metadata": {"name": "db"}, "spec": spec})).await;
    let endpoint = |(hostname, address): &(&str, &str)| json!({"addresses": [address], "hostname": hostname, "conditions": {"ready": true}});
    let slice = json!({
        "metadata": {"name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
        "addressType": "IPv4",
        "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "ports": ports.as_array().unwrap().iter().map(|port| json!({"name": port["name"], "port": 5432})).collect::<Vec<_>>(),
    });
    let _: EndpointSlice = cluster.create(ns, slice).await;
    cluster.export(ns, "db").await;
}

/// Host name, address and ports of each endpoint of a complete headless import, or what is missing.
async fn seen(cluster: &Cluster, ns: &str) -> Result<BTreeSet<(String, String, Vec<i32>)>, String> {
    let import = cluster.api::<ServiceImport>(ns).get("db").await.map_err(|error| error.to_string())?;
    let spec = &import.spec;
    if (spec.type_, spec.ips.as_slice()) != (ServiceImportType::Headless, &[]) || spec.ip_families != ["IPv4"]
    {
        return Err(format!("{spec:?}"));
    }
    let ready = import.status.iter().flat_map(|status| &status.conditions).find(|c| c.type_ == "Ready");
    if ready.is_none_or(|ready| ready.status != "True") {
        return Err(format!("{:?}", import.status));
    }
    let derived = cluster.api::<Service>(ns).get("antrea-mc-db").await.map_err(|error| error.to_string())?;
    if derived.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) != Some("None") {
        return Err(format!("{derived:?}"));
    }
    let mut all = BTreeSet::new();
    for slice in imported_slices(cluster, ns, "db").await {
        let ports: Vec<_> = slice.ports.iter().flatten().filter_map(|port| port.port).collect();
        for endpoint in slice.endpoints.iter().flatten() {
            let hostname = endpoint.hostname.clone().unwrap_or_default();
            all.insert((hostname, endpoint.addresses[0].clone(), ports.clone()));
        }
    }
    Ok(all)
}

#[e2e::test]
fn r12_r25_r27_a_headless_service_is_one_everywhere_and_never_has_an_address() {
    shared(async |world| {
        for (ns, ports) in [("headless", json!([{"name": "sql", "port": 5432}])), ("portless", json!([]))] {
            let ns = &world.namespace(ns, &CLUSTERS).await;
            let mut watched = vec![];
            for cluster in world.clusters() {
                watched.push(Watched::<ServiceImport>::of(cluster, ns).await);
            }
            let east = world.cluster("east");
            headless(east, ns, ports.clone(), &[("db-0", "10.1.0.1"), ("db-1", "10.1.0.2")]).await;
            let numbers: Vec<_> = ports.as_array().unwrap().iter().map(|_| 5432).collect();
            let pods = [("db-0", "10.1.0.1"), ("db-1", "10.1.0.2")];
            let pods: BTreeSet<_> =
                pods.map(|(name, ip)| (name.to_owned(), ip.to_owned(), numbers.clone())).into();
            for cluster in world.clusters() {
                eventually(&format!("{} imports it", cluster.name), || async {
                    let seen = seen(cluster, ns).await?;
                    if seen == pods { Ok(()) } else { Err(format!("{seen:?}")) }
                })
                .await;
            }
            for (type_, reason) in [("Valid", "Valid"), ("Ready", "Exported")] {
                eventually(type_, || says(east, (ns, "db"), type_, "True", reason)).await;
            }
            for watched in watched {
                watched.each(|import| {
                    assert_eq!(
                        import.spec.type_,
                        ServiceImportType::Headless,
                        "from the first write on (R-25)"
                    );
                    assert!(import.spec.ips.is_empty(), "{import:?} (R-27)");
                });
            }
            east.unexport(ns, "db").await;
            for cluster in world.clusters() {
                eventually("it is gone", || not_imported(cluster, ns, "db")).await;
            }
            world.release(ns).await;
        }
    });
}

/// The uid of the imported slice that comes from a cluster.
async fn slice_from(cluster: &Cluster, ns: &str, from: &str) -> Option<String> {
    let slices = imported_slices(cluster, ns, "db").await;
    let is_from =
        |slice: &&EndpointSlice| slice.labels()["multicluster.kubernetes.io/source-cluster"] == from;
    slices.iter().find(is_from).and_then(ResourceExt::uid)
}

#[e2e::test]
fn r44_the_oldest_export_decides_and_who_leaves_may_turn_the_import_without_losing_an_endpoint() {
    shared(async |world| {
        let ns = &world.namespace("turning", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let sql = || json!([{"name": "sql", "port": 5432}]);
        headless(east, ns, sql(), &[("db-0", "10.1.0.1")]).await;
        eventually("east alone", || seen(leader, ns)).await;
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        west.service(ns, "db", &[("sql", 5432)]).await;
        west.slice(ns, "db", "db-1", &["10.2.0.1"], &[("sql", 5432)]).await;
        west.export(ns, "db").await;
        for cluster in [east, west] {
            eventually("both are told", || says(cluster, (ns, "db"), "Conflict", "True", "TypeConflict"))
                .await;
        }
        eventually("both are headless", || async {
            let seen = seen(leader, ns).await?;
            if seen.len() == 2 { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;

        let imports = Watched::<ServiceImport>::of(leader, ns).await;
        let slices = Watched::<EndpointSlice>::of(leader, ns).await;
        let before = slice_from(leader, ns, "west").await;
        east.unexport(ns, "db").await;
        eventually("west alone has an address", || async {
            right(imported(leader, ns, "db").await, |seen| {
                seen.addresses("west") == ["10.2.0.1:5432"] && seen.clusters == ["west".to_owned()].into()
            })
        })
        .await;
        assert_eq!(slice_from(leader, ns, "west").await, before, "the very slice");

        // And back.
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        east.export(ns, "db").await;
        eventually("both have an address", || async {
            right(imported(leader, ns, "db").await, |seen| seen.endpoints.len() == 2)
        })
        .await;
        let before = slice_from(leader, ns, "east").await;
        west.unexport(ns, "db").await;
        let pod = ("db-0".to_owned(), "10.1.0.1".to_owned(), vec![5432]);
        eventually("east alone again", || async {
            let seen = seen(leader, ns).await?;
            if seen == [pod.clone()].into() { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
        assert_eq!(slice_from(leader, ns, "east").await, before, "the very slice");
        imports.nothing_deleted("the ServiceImport is turned in place");
        imports.each(|import| {
            let is_headless = import.spec.type_ == ServiceImportType::Headless;
            assert_eq!(import.spec.ips.is_empty(), is_headless, "{:?} (R-26, R-27)", import.spec);
        });
        slices
            .each(|slice| assert!(slice.endpoints.as_ref().is_some_and(|all| !all.is_empty()), "{slice:?}"));
        world.release(ns).await;
    });
}
