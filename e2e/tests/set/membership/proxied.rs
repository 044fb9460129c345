//! A leader that is reached by a proxy alone, under a name that is not that of its certificate.

use std::fs;

use api::{cluster_set::ClusterSet, label};
use e2e::{
    cluster::Cluster,
    daemon::End,
    fixture::{SET, SYSTEM, alone},
    seen::{imported, right},
    tunnel::Tunnels,
    waiting::eventually,
};
use serde_json::json;

use super::traces::{CONNECTED, EAST, exchanged};

/// Annotates the ClusterSet with how the leader is reached; `None` removes an annotation.
async fn via(cluster: &Cluster, proxy: Option<String>, name: Option<&str>) {
    let annotations = json!({label::PROXY_URL: proxy, label::TLS_SERVER_NAME: name});
    let _: ClusterSet = cluster.patch(SYSTEM, SET, &json!({"metadata": {"annotations": annotations}})).await;
}

/// Waits until the leader's cluster imports this address of `east`.
async fn follows(leader: &Cluster, ns: &str, address: &str) {
    eventually(&format!("the leader's cluster follows to {address}"), || async {
        right(imported(leader, ns, "web").await, |seen| seen.addresses("east") == [format!("{address}:8080")])
    })
    .await;
}

#[e2e::test(real)]
fn a_leader_behind_a_proxy_is_reached_by_it_under_another_name() {
    alone(async |world| {
        let ns = "proxied";
        let before = exchanged(world, ns).await;
        let (leader, east) = (world.leader(), world.cluster("east"));
        let hub = world.real().fleet.cluster("leader").unwrap();
        let change = async |address: &str| {
            east.replace_slice(ns, "web", "web-1", &[address], &[("http", 8080)]).await;
        };
        let tunnels = Tunnels::to(hub, None).await;

        via(east, Some(tunnels.url("wrong")), Some("kubernetes")).await;
        world.leader_is_at("east", &Tunnels::server()).await;
        let message = world.member_says("east", ("False", "LeaderUnreachable")).await;
        assert!(message.contains("its proxy wants a user and a password"), "{message}");
        assert!(message.contains(&Tunnels::server()) && !message.contains("wrong"), "{message}");
        assert_eq!(tunnels.made(), 0);

        via(east, Some(tunnels.url("secret")), None).await;
        world.member_says("east", ("False", "CertificateUntrusted")).await;
        via(east, Some(tunnels.url("secret")), Some("kubernetes")).await;
        world.member_says("east", CONNECTED).await;
        assert!(tunnels.made() > 0);
        change("10.2.0.2").await;
        follows(leader, ns, "10.2.0.2").await;

        // The proxy is away, and comes back.
        let at = tunnels.address();
        drop(tunnels);
        world.member_says("east", ("False", "LeaderUnreachable")).await;
        change("10.2.0.3").await;
        let tunnels = Tunnels::to(hub, Some(at)).await;
        follows(leader, ns, "10.2.0.3").await;
        assert!(tunnels.made() > 0);

        let log =
            fs::read_to_string(world.real().fleet.dir().join("logs").join(format!("{EAST}.log"))).unwrap();
        assert!(!log.contains("secret@") && !log.contains("wrong@"), "a password is in the log");
        // The environment names the proxy, and the own API server is reached without it.
        via(east, None, Some("kubernetes")).await;
        world.end(EAST, End::Stop).await;
        let made = tunnels.made();
        let daemon = world.daemon(EAST).spec.clone().env("HTTPS_PROXY", tunnels.url("secret"));
        world.real().fleet.run(daemon).await.unwrap();
        change("10.2.0.5").await;
        follows(leader, ns, "10.2.0.5").await;
        assert!(tunnels.made() > made);

        world.end(EAST, End::Stop).await;
        via(east, None, None).await;
        world.leader_is_at("east", &hub.server()).await;
        world.start(EAST).await;
        world.member_says("east", CONNECTED).await;
        drop(tunnels);
        change("10.2.0.4").await;
        follows(leader, ns, "10.2.0.4").await;
        let after = imported(east, ns, "web").await.unwrap();
        assert_eq!((after.vip, after.import_uid), (before.vip, before.import_uid), "its import stayed");
        world.release(ns).await;
    });
}
