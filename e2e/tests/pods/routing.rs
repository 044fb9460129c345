//! Which Pods answer where exports differ, stick or prefer the near ones: kube-proxy decides that by what we write.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    ask::Protocol::Http,
    cluster::Cluster,
    seen::{imported, right},
    waiting::eventually,
};
use fleet::agnhost::HTTP_PORT;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::pods::world::{CLIENT, CLUSTERS, Pods, shared};

/// Servers behind Service `web` with these ports (name, number), exported. Their names.
async fn exported(cluster: &Cluster, ns: &str, ports: &[(&str, u16)]) -> BTreeSet<String> {
    let servers = cluster.run_service(ns, "web", 2).await;
    let port = |(name, port): &(&str, u16)| json!({"name": name, "port": port, "targetPort": HTTP_PORT});
    let ports: Value = ports.iter().map(port).collect();
    let _: Service = cluster.patch(ns, "web", &json!({"spec": {"ports": ports}})).await;
    cluster.export(ns, "web").await;
    servers
}

/// The address in `cluster` once both exporters take part.
async fn vip_of_both(world: &Pods, cluster: &str, ns: &str) -> String {
    eventually(&format!("both in {cluster}"), || async {
        let of = world.cluster(cluster);
        right(imported(of, ns, "web").await, |seen| seen.clusters.len() == 2).map(|seen| seen.vip)
    })
    .await
}

#[e2e::test]
fn r42_r43_only_pods_that_serve_the_very_port_answer() {
    shared(async |world| {
        let ns = "strict";
        world.namespace_everywhere(ns).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        // 80: both, whatever they call it. 70: `side` of the oldest, so 81 is left out. 90: west alone.
        let in_east = exported(east, ns, &[("http", 80), ("side", 70)]).await;
        world.vip("west", ns, "web").await;
        // Ages of exports are told in seconds.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let in_west = exported(west, ns, &[("web", 80), ("side", 81), ("admin", 90)]).await;
        for cluster in CLUSTERS {
            let vip = vip_of_both(world, cluster, ns).await;
            world.answer(cluster, Http, (&vip, 80), &(&in_east | &in_west)).await;
            world.answer(cluster, Http, (&vip, 70), &in_east).await;
            world.answer(cluster, Http, (&vip, 90), &in_west).await;
            world.nobody_answers(cluster, (&vip, 81)).await;
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r45_a_client_stays_with_its_pod() {
    shared(async |world| {
        let ns = "sticky";
        world.namespace_everywhere(ns).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let all = &exported(east, ns, &[("http", 80)]).await | &exported(west, ns, &[("http", 80)]).await;
        let mut vips = Vec::new();
        for cluster in CLUSTERS {
            let vip = vip_of_both(world, cluster, ns).await;
            world.answer(cluster, Http, (&vip, 80), &all).await;
            vips.push((cluster, vip));
        }
        for cluster in [east, west] {
            let sticky = json!({"spec": {"sessionAffinity": "ClientIP"}});
            let _: Service = cluster.patch(ns, "web", &sticky).await;
        }
        for (cluster, vip) in &vips {
            let answers = || world.cluster(cluster).answers_to(CLIENT, Http, (vip, 80));
            let one = eventually(&format!("one Pod answers {cluster}"), || async {
                match answers().await {
                    Ok(seen) if seen.len() == 1 && seen.is_subset(&all) => Ok(seen),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
            let same = eventually("all are answered once more", || async {
                answers().await.map_err(|why| format!("{why:?}"))
            })
            .await;
            assert_eq!(same, one, "and goes on to");
        }
        world.release(ns).await;
    });
}

#[e2e::test]
fn r46_near_pods_are_preferred_and_local_ones_alone_if_so_said() {
    shared(async |world| {
        let ns = "near";
        world.namespace_everywhere(ns).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let in_east = exported(east, ns, &[("http", 80)]).await;
        let in_west = exported(west, ns, &[("http", 80)]).await;
        let all = &in_east | &in_west;
        let say = async |spec: Value| {
            for cluster in [east, west] {
                let _: Service = cluster.patch(ns, "web", &json!({"spec": spec})).await;
            }
        };
        let mut vips = Vec::new();
        for cluster in CLUSTERS {
            vips.push((cluster, vip_of_both(world, cluster, ns).await));
        }
        say(json!({"trafficDistribution": "PreferSameNode"})).await;
        for (cluster, vip) in &vips {
            let near = match *cluster {
                "east" => &in_east,
                "west" => &in_west,
                _ => &all,
            };
            world.answer(cluster, Http, (vip, 80), near).await;
        }
        say(json!({"trafficDistribution": null, "internalTrafficPolicy": "Local"})).await;
        for (cluster, vip) in &vips {
            match *cluster {
                "east" => world.answer(cluster, Http, (vip, 80), &in_east).await,
                "west" => world.answer(cluster, Http, (vip, 80), &in_west).await,
                _ => world.nobody_answers(cluster, (vip, 80)).await,
            }
        }
        say(json!({"internalTrafficPolicy": "Cluster"})).await;
        for (cluster, vip) in &vips {
            world.answer(cluster, Http, (vip, 80), &all).await;
        }
        world.release(ns).await;
    });
}
