//! A cluster whose endpoints do not answer any more: whether it is there, and whether there is a way to it, are two questions.

use std::{collections::BTreeMap, time::Instant};

use api::{
    cluster_set::IMPORTS_COMPLETE,
    mcs::{CLUSTERS_REACHABLE, ServiceImport},
};
use e2e::{
    answering::Answering,
    cluster::Cluster,
    cluster_set::status,
    daemon::End,
    fixture::{AREA, CLUSTERS, SET, SYSTEM, World, alone},
    promised::{BACK, DEMOTED, promised},
    seen::{self, event, imported, imported_slices, right},
    waiting::{always, eventually},
    watched::Watched,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;

/// The member that connects to endpoints. All others of the tests do not.
const PROBING: &str = "freeport-member-leader";
const EAST: &str = "freeport-member-east";
const SOURCE: &str = "multicluster.kubernetes.io/source-cluster";

async fn start_probing(world: &World) {
    let daemon = world.daemon(PROBING).spec.clone();
    world.real().fleet.run(daemon.args(["--probe", "on"])).await.unwrap();
}

/// Exports the Service with that server as its endpoint.
async fn exported(cluster: &Cluster, ns: &str, service: &str, server: &Answering) {
    let address = server.address.ip().to_string();
    cluster.service(ns, service, &[("http", 80)]).await;
    let port = [("http", i32::from(server.address.port()))];
    cluster.slice(ns, service, &format!("{service}-1"), &[&address], &port).await;
    cluster.export(ns, service).await;
}

/// Whether all endpoints of a slice are ready.
fn is_ready(slice: &EndpointSlice) -> bool {
    let mut endpoints = slice.endpoints.iter().flatten();
    endpoints.all(seen::is_ready)
}

/// Whether endpoints of an import are ready, by the cluster they come from.
async fn readiness(cluster: &Cluster, ns: &str, service: &str) -> BTreeMap<String, bool> {
    let slices = imported_slices(cluster, ns, service).await;
    slices.iter().map(|slice| (slice.labels()[SOURCE].clone(), is_ready(slice))).collect()
}

/// Waits until endpoints of `east` and `west` are ready as said.
async fn are_ready(what: &str, cluster: &Cluster, ns: &str, (east, west): (bool, bool)) {
    let want = [("east".to_owned(), east), ("west".to_owned(), west)].into();
    eventually(what, || async {
        let seen = readiness(cluster, ns, "web").await;
        if seen == want { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await;
}

/// Waits until the ServiceImport says this of the clusters. The message.
async fn import_says(cluster: &Cluster, ns: &str, service: &str, reason: &str) -> String {
    eventually(&format!("{service} says {reason}"), || async {
        let import = cluster.api::<ServiceImport>(ns).get(service).await.unwrap();
        let conditions = import.status.unwrap_or_default().conditions;
        match conditions.iter().find(|condition| condition.type_ == CLUSTERS_REACHABLE) {
            Some(said) if said.reason == reason => Ok(said.message.clone()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Waits until the ClusterSet of the leader's cluster says this of its imports.
async fn set_says(world: &World, reason: &str) -> String {
    eventually(&format!("the ClusterSet says {reason}"), || async {
        let conditions = status(world.leader(), SYSTEM).await?.conditions;
        let said = conditions.into_iter().find(|c| c.type_.as_deref() == Some(IMPORTS_COMPLETE));
        match said {
            Some(said) if said.reason.as_deref() == Some(reason) => Ok(said.message.unwrap_or_default()),
            other => Err(format!("{other:?}; its log:\n{}", world.log_tail(PROBING))),
        }
    })
    .await
}

/// Issue 18: control lost and data fine, data lost, and both.
#[e2e::test(real)]
fn a_cluster_that_does_not_answer_is_demoted_where_another_serves_and_comes_back() {
    alone(async |world| {
        let ns = &world.namespace("reach", &CLUSTERS).await;
        let (here, east, west) = (world.leader(), world.cluster("east"), world.cluster("west"));
        world.end(PROBING, End::Stop).await;
        start_probing(world).await;
        let (of_east, of_west) = (Answering::begin().await, Answering::begin().await);
        exported(east, ns, "web", &of_east).await;
        exported(east, ns, "alone", &of_east).await;
        exported(west, ns, "web", &of_west).await;
        are_ready("both serve", here, ns, (true, true)).await;
        eventually("both are reached", || async {
            let reached = [&of_east, &of_west].map(Answering::reached);
            if reached.iter().all(Option::is_some) { Ok(()) } else { Err(format!("{reached:?}")) }
        })
        .await;
        import_says(here, ns, "web", "Reachable").await;

        let silent = Instant::now();
        of_east.fall_silent().await;
        are_ready("demoted", here, ns, (false, true)).await;
        promised("endpoints of a cluster that does not answer are not ready", silent.elapsed(), DEMOTED);
        let message = import_says(here, ns, "web", "ClustersDemoted").await;
        assert!(message.contains("east since 20"), "{message}");
        import_says(here, ns, "alone", "ClustersUnreached").await;
        assert!(readiness(here, ns, "alone").await["east"], "never to zero");
        let message = set_says(world, "ClustersUnreached").await;
        assert!(message.contains("east since 20"), "{message}");
        eventually("its Event", || event(here, SYSTEM, SET, "ClustersUnreached")).await;
        let metrics = world.metrics(PROBING).await.unwrap();
        assert_eq!(metrics.sum("freeport_clusters_unreached"), 1.0);
        assert!(readiness(west, ns, "web").await["east"], "what one member finds out, it keeps to itself");

        let watched = Watched::<EndpointSlice>::of(here, ns).await;
        world.end(PROBING, End::Crash).await;
        start_probing(world).await;
        always("a restart forgets nothing", || async {
            match readiness(here, ns, "web").await["east"] {
                true => Err("ready".to_owned()),
                false => Ok(()),
            }
        })
        .await;
        watched.each(|slice| {
            let is_of_east = slice.labels()[SOURCE] == "east" && slice.name_any().contains("web");
            assert!(!is_of_east || !is_ready(slice), "{slice:?}");
        });

        // Both are lost.
        world.end(EAST, End::Crash).await;
        let begun = Instant::now();
        of_east.answer();
        are_ready("back", here, ns, (true, true)).await;
        let (back, contact) = (begun.elapsed(), of_east.reached().unwrap() - begun);
        promised("they are ready again", back.saturating_sub(contact), BACK);
        set_says(world, "Complete").await;
        let message = import_says(here, ns, "web", "ClustersKept").await;
        assert!(message.contains("east since 20"), "{message}");
        eventually("the leader knows that they answer", || async {
            let clusters = status(here, AREA).await?.cluster_statuses;
            let east = clusters.into_iter().find(|entry| entry.cluster_id.as_deref() == Some("east"));
            let said = east.into_iter().flat_map(|entry| entry.conditions).find_map(|said| said.message);
            if said.as_ref().is_some_and(|said| said.contains("answer other members")) {
                Ok(())
            } else {
                Err(format!("{said:?}"))
            }
        })
        .await;
        always("its endpoints are kept", || async {
            match readiness(here, ns, "web").await["east"] {
                true => Ok(()),
                false => Err("not ready".to_owned()),
            }
        })
        .await;
        world.start(EAST).await;
        import_says(here, ns, "web", "Reachable").await;
        right(imported(here, ns, "web").await, |seen| seen.clusters.len() == 2).unwrap();

        world.end(PROBING, End::Stop).await;
        world.start(PROBING).await;
        set_says(world, "Complete").await;
        world.release(ns).await;
    });
}
