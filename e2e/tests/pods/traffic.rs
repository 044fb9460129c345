//! Pods of one cluster get answers from Pods of others, by ClusterIP and by name.

use std::collections::BTreeSet;

use e2e::ask::Protocol::{Http, Udp};
use fleet::dns::clusterset_name;
use futures::future::join_all;

use crate::pods::world::{CLUSTERS, Pods, shared};

#[e2e::test]
fn r49_a_service_of_one_cluster_answers_in_all() {
    shared(async |world| {
        let (ns, name) = ("one", clusterset_name("one", "web"));
        world.namespace_everywhere(ns).await;
        let east = world.cluster("east");
        let servers = east.run_service(ns, "web", 2).await;
        for cluster in CLUSTERS {
            world.is_no_name(cluster, &name).await;
        }
        east.export(ns, "web").await;
        let vips = join_all(CLUSTERS.map(|cluster| world.vip(cluster, ns, "web"))).await;
        for (cluster, vip) in CLUSTERS.into_iter().zip(&vips) {
            for host in [vip, &name] {
                for protocol in [Http, Udp] {
                    world.answer(cluster, protocol, (host, 80), &servers).await;
                }
            }
        }

        east.unexport(ns, "web").await;
        for (cluster, vip) in CLUSTERS.into_iter().zip(&vips) {
            world.is_no_name(cluster, &name).await;
            world.nobody_answers(cluster, (vip, 80)).await;
        }
        world.answer("east", Http, ("web.one.svc.cluster.local", 80), &servers).await;
        world.release(ns).await;
    });
}

/// the Service of the cluster itself stays as it is, whatever the set has under its name.
#[e2e::test]
fn r5_r6_r49_r50_all_backends_of_two_clusters_answer_and_local_services_stay_as_they_are() {
    shared(async |world| {
        let (ns, name) = ("both", clusterset_name("both", "web"));
        world.namespace_everywhere(ns).await;
        let [leader, east, west] = ["leader", "east", "west"].map(|name| world.cluster(name));
        let (own, in_east, in_west) = tokio::join!(
            leader.run_service(ns, "web", 1),
            east.run_service(ns, "web", 1),
            west.run_service(ns, "web", 2)
        );
        east.export(ns, "web").await;
        answers(world, ns, &name, &in_east).await;
        west.export(ns, "web").await;
        answers(world, ns, &name, &(&in_east | &in_west)).await;
        for (cluster, servers) in [("leader", &own), ("east", &in_east), ("west", &in_west)] {
            world.answer(cluster, Http, ("web.both.svc.cluster.local", 80), servers).await;
        }
        east.unexport(ns, "web").await;
        answers(world, ns, &name, &in_west).await;
        world.release(ns).await;
    });
}

async fn answers(world: &Pods, ns: &str, name: &str, servers: &BTreeSet<String>) {
    for cluster in CLUSTERS {
        let vip = world.vip(cluster, ns, "web").await;
        world.answer(cluster, Http, (&vip, 80), servers).await;
        world.answer(cluster, Http, (name, 80), servers).await;
    }
}
