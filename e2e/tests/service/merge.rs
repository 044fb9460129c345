//! Several exporters.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use api::mcs::ServiceImport;
use kube::api::{WatchEvent, WatchParams};

use crate::{
    fixture::{Cluster, eventually, shared},
    seen::{imported, right},
};

/// Counts deletions of ServiceImports in a Namespace, from now on (rule R-22 is watched, not polled).
async fn deletions(cluster: &Cluster, namespace: &str) -> Arc<AtomicUsize> {
    let imports = cluster.api::<ServiceImport>(namespace);
    let version = imports.list(&Default::default()).await.unwrap().metadata.resource_version.unwrap();
    let deleted = Arc::new(AtomicUsize::new(0));
    let count = deleted.clone();
    let client = cluster.client.clone();
    let namespace = namespace.to_owned();
    let watch = async move {
        let imports = kube::Api::<ServiceImport>::namespaced(client, &namespace);
        let events = imports.watch(&WatchParams::default(), &version).await.unwrap();
        let mut events = std::pin::pin!(events);
        while let Some(event) = futures::StreamExt::next(&mut events).await {
            if let Ok(WatchEvent::Deleted(_)) = event {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    tokio::task::JoinSet::spawn(Box::leak(Box::default()), watch);
    deleted
}

#[test]
fn two_exporters_are_one_service_and_one_may_leave() {
    shared(async |world| {
        let ns = world.namespace("merge", &["leader", "east", "west"]).await;
        let (leader, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        // The oldest names port 80 "http"; the younger calls it "web" and has another port besides.
        east.service(&ns, "web", &[("http", 80), ("admin", 90)]).await;
        east.slice(&ns, "web", "web-1", &["10.1.0.1"], &[("http", 8080), ("admin", 9090)]).await;
        east.export(&ns, "web").await;
        eventually("east alone", || imported(leader, &ns, "web")).await;
        tokio::time::sleep(Duration::from_millis(1100)).await; // ages are told in seconds
        west.service(&ns, "web", &[("web", 80), ("extra", 99)]).await;
        west.slice(&ns, "web", "web-1", &["10.2.0.1"], &[("web", 1080), ("extra", 1099)]).await;
        west.export(&ns, "web").await;

        let mut uids = vec![];
        for cluster in [leader, east, west] {
            let seen = eventually(&format!("both in {}", cluster.name), || async {
                right(imported(cluster, &ns, "web").await, |seen| {
                    seen.clusters.len() == 2 && seen.endpoints.len() == 2
                })
            })
            .await;
            assert_eq!(seen.ports, [("http".to_owned(), 80), ("admin".to_owned(), 90)], "of the oldest");
            assert_eq!(seen.endpoints["east"]["http"], ["10.1.0.1:8080".to_owned()].into());
            assert_eq!(seen.endpoints["east"]["admin"], ["10.1.0.1:9090".to_owned()].into());
            assert_eq!(
                seen.endpoints["west"]["http"],
                ["10.2.0.1:1080".to_owned()].into(),
                "same number (R-43)"
            );
            assert_eq!(seen.endpoints["west"].len(), 1, "no other port of the younger one is served");
            uids.push((cluster, seen.import_uid, seen.vip));
        }

        let deleted = deletions(leader, &ns).await;
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
        assert_eq!(deleted.load(Ordering::SeqCst), 0, "R-22");
        for cluster in [leader, east, west] {
            cluster.delete_namespace(&ns).await;
        }
    });
}
