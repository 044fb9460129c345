//! A cluster with IPv4 and IPv6, and one with IPv6 alone: their Pods and Services have these addresses, and no others.

use e2e::{
    ask::Protocol::Http, bring_up::administrators, cluster::Cluster, pod::nodes_are_possible_for, say::say,
    waiting::eventually,
};
use fleet::{Family, Fleet, Lifetime, agnhost::HTTP_PORT};
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::json;
use tokio::net::TcpStream;

use crate::nodes::{
    in_turn,
    pods::options,
    traces::{Places, Traces},
};

const CLUSTERS: [&str; 2] = ["dual=dual", "six=ipv6"];
const NAMESPACE: &str = "default";
/// The Pod in each cluster that asks and answers.
const POD: &str = "server";

#[e2e::test]
async fn pods_have_the_families_of_their_cluster() {
    if !nodes_are_possible_for(&CLUSTERS) {
        return;
    }
    let _turn = in_turn().await;
    let before = Places::look();
    let options = options("families", &CLUSTERS, Lifetime::Attached { remove: true });
    let dir = options.dir.clone();
    let fleet = Fleet::up(options, say).await.unwrap();
    let clusters = administrators(&fleet).await.unwrap();
    let [dual, six] = clusters.as_slice() else { panic!("two clusters") };
    tokio::join!(dual.run_server(NAMESPACE, POD), six.run_server(NAMESPACE, POD));

    let in_dual = addresses(dual).await;
    let [ipv4, ipv6] = in_dual.as_slice() else { panic!("{in_dual:?}") };
    assert!(Family::Ipv4.is_of(ipv4) && Family::Ipv6.is_of(ipv6), "{in_dual:?}");
    let in_six = addresses(six).await;
    let [only] = in_six.as_slice() else { panic!("{in_six:?}") };
    assert!(Family::Ipv6.is_of(only), "{in_six:?}");

    they_reach_each_other(dual, ipv6, six, only).await;
    let silence = six.ask_from((NAMESPACE, POD), Http, (ipv4, HTTP_PORT), "hostname").await;
    assert!(format!("{silence:?}").contains("network is unreachable"), "{silence:?}");
    TcpStream::connect((only.as_str(), HTTP_PORT)).await.unwrap();

    a_service_answers(dual, "both", json!(["IPv4", "IPv6"])).await;
    a_service_answers(dual, "second", json!(["IPv6"])).await;
    a_service_answers(six, "only", json!(["IPv6"])).await;

    let traces = Traces::of(&fleet).await;
    Fleet::down(&dir, say).await.unwrap();
    traces.are_gone().await;
    assert!(!dir.exists());
    assert_eq!(Places::look(), before);
}

async fn addresses(cluster: &Cluster) -> Vec<String> {
    let status = cluster.api::<Pod>(NAMESPACE).get(POD).await.unwrap().status.unwrap();
    status.pod_ips.unwrap().into_iter().map(|address| address.ip).collect()
}

/// Unmasqueraded: who asks is seen as who it is.
async fn they_reach_each_other(dual: &Cluster, in_dual: &str, six: &Cluster, in_six: &str) {
    for (asking, own, other) in [(dual, in_dual, in_six), (six, in_six, in_dual)] {
        let seen = asking.ask_from((NAMESPACE, POD), Http, (other, HTTP_PORT), "clientip").await.unwrap();
        assert_eq!(seen.rsplit_once(':').unwrap().0, format!("[{own}]"), "asked by {}", asking.name);
    }
}

/// By each of its addresses, of these families, and by name: of what has IPv6 alone there is but that to be told.
async fn a_service_answers(cluster: &Cluster, name: &str, families: serde_json::Value) {
    let policy = if families.as_array().unwrap().len() > 1 { "RequireDualStack" } else { "SingleStack" };
    let spec = json!({
        "selector": {"app": POD},
        "ports": [{"port": 80, "targetPort": HTTP_PORT}],
        "ipFamilies": families,
        "ipFamilyPolicy": policy,
    });
    let service: Service = cluster.create(NAMESPACE, json!({"metadata": {"name": name}, "spec": spec})).await;
    let mut hosts = service.spec.unwrap().cluster_ips.unwrap();
    hosts.push(format!("{name}.{NAMESPACE}.svc.cluster.local"));
    for host in hosts {
        eventually(&format!("{name} of {} answers as {host}", cluster.name), || async {
            match cluster.ask_from((NAMESPACE, POD), Http, (&host, 80), "hostname").await {
                Ok(server) if server == POD => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
}
