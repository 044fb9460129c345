//! Several exporters.

use std::time::Duration;

use api::mcs::ServiceImport;
use k8s_openapi::api::core::v1::Service;

use e2e::{
    fixture::{CLUSTERS, shared},
    seen::{Imported, imported, right},
    waiting::eventually,
    watched::Watched,
};

/// The oldest names port 80 "http" and has "admin"; the younger calls it "web" and has "extra".
fn is_merged(seen: &Imported) {
    let ports = [("http".to_owned(), 80), ("admin".to_owned(), 90), ("extra".to_owned(), 99)];
    assert_eq!(seen.ports, ports, "of both, named as the oldest does (R-40)");
    let (east, west) = (&seen.endpoints["east"], &seen.endpoints["west"]);
    assert_eq!(east["http"], ["10.1.0.1:8080".to_owned()].into());
    assert_eq!(east["admin"], ["10.1.0.1:9090".to_owned()].into());
    assert_eq!(west["http"], ["10.2.0.1:1080".to_owned()].into(), "same number (R-43)");
    assert_eq!(west["extra"], ["10.2.0.1:1099".to_owned()].into());
    assert_eq!((east.len(), west.len()), (2, 2), "each serves what it exposes (R-42)");
}

#[e2e::test]
fn r4_r22_r38_r42_r43_two_exporters_are_one_service_and_one_may_leave() {
    shared(async |world| {
        let ns = world.namespace("merge", &CLUSTERS).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        let mut watched = vec![];
        for cluster in world.clusters() {
            watched.push(Watched::<ServiceImport>::of(cluster, &ns).await);
        }
        east.service(&ns, "web", &[("http", 80), ("admin", 90)]).await;
        east.slice(&ns, "web", "web-1", &["10.1.0.1"], &[("http", 8080), ("admin", 9090)]).await;
        east.export(&ns, "web").await;
        eventually("east alone", || imported(leader, &ns, "web")).await;
        let derived = Watched::<Service>::of(leader, &ns).await;
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        west.service(&ns, "web", &[("web", 80), ("extra", 99)]).await;
        west.slice(&ns, "web", "web-1", &["10.2.0.1"], &[("web", 1080), ("extra", 1099)]).await;
        west.export(&ns, "web").await;

        let mut uids = vec![];
        for cluster in world.clusters() {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, &ns, "web").await, |seen| {
                    seen.clusters.len() == 2 && seen.endpoints.len() == 2
                })
            })
            .await;
            is_merged(&seen);
            uids.push((cluster, seen.import_uid, seen.vip));
        }

        east.unexport(&ns, "web").await;
        for (cluster, uid, vip) in uids {
            let seen = eventually(&format!("west alone in {}", cluster.name), || async {
                right(imported(cluster, &ns, "web").await, |seen| {
                    seen.clusters.len() == 1
                        && !seen.endpoints.contains_key("east")
                        && seen.endpoints.len() == 1
                })
            })
            .await;
            assert_eq!((seen.import_uid, seen.vip), (uid, vip), "never deleted, and the address stays");
            assert_eq!(seen.ports, [("web".to_owned(), 80), ("extra".to_owned(), 99)], "of the oldest left");
            assert_eq!(seen.endpoints["west"]["extra"], ["10.2.0.1:1099".to_owned()].into());
        }
        for watched in &watched {
            watched
                .never_deleted_until("the watch has told of west alone (R-22)", |import| {
                    let clusters = import.status.iter().flat_map(|status| &status.clusters);
                    clusters.map(|cluster| cluster.cluster.as_str()).eq(["west"])
                })
                .await;
        }
        derived.nothing_deleted("the Service behind it (R-22)");
        world.release(&ns).await;
    });
}
