//! What a cluster can do.

use std::{
    collections::BTreeMap, fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, time::Duration,
};

use fleet::{Cluster, Component, Error, Exit, Fleet, ProcessSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{
    Api, Client, Config,
    api::{ListParams, ObjectMeta, PostParams},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use tempfile::TempDir;

use crate::command::{eventually, options, processes_of, run, say, text};

/// A client with the cluster's kubeconfig after a change to it.
async fn client_with(cluster: &Cluster, change: impl FnOnce(&mut Kubeconfig)) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
    change(&mut kubeconfig);
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

/// How often the audit log tells of a request for an object of this name.
fn audited(cluster: &Cluster, verb: &str, name: &str) -> usize {
    let log = fs::read_to_string(cluster.audit_log()).unwrap();
    let events = log.lines().filter(|line| line.contains(&format!("\"verb\":\"{verb}\"")));
    events.filter(|line| line.contains(&format!("\"name\":\"{name}\""))).count()
}

#[tokio::test]
async fn a_cluster_serves_and_survives_what_tests_do_to_it() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("fleet");
    let fleet = Fleet::up(options(&dir, &["dual=dual", "six=ipv6", "east"]), say).await.unwrap();
    let cluster = fleet.cluster("east").unwrap();
    for secret in [fleet.kubeconfig(), cluster.kubeconfig(), cluster.dir().join("pki/ca.key")] {
        assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
    only_who_proves_it_gets_in(cluster).await;
    tokens_come_with_the_ca(cluster).await;
    writes_are_audited(cluster).await;
    kubectl_works(&fleet).await;
    the_api_server_goes_and_comes(cluster).await;
    further_processes(&fleet).await;
    services_have_addresses_of_their_clusters_families(&fleet).await;

    let pids = processes_of(&dir);
    assert!(pids.len() >= 4, "{pids:?}");
    drop(fleet);
    eventually("everything has ended with the fleet", async || processes_of(&dir).is_empty()).await;
    eventually("the directory is removed", async || !dir.exists()).await;
}

async fn only_who_proves_it_gets_in(cluster: &Cluster) {
    let nobody =
        client_with(cluster, |config| config.auth_infos[0].auth_info = Some(AuthInfo::default())).await;
    match Api::<Secret>::all(nobody).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 403);
            assert!(status.message.contains("system:anonymous"), "{}", status.message);
        }
        other => panic!("{other:?}"),
    }
    let credulous = client_with(cluster, |config| {
        config.clusters[0].cluster.as_mut().unwrap().certificate_authority_data = None;
    });
    let refused = credulous.await.apiserver_version().await.unwrap_err();
    assert!(format!("{refused:?}").contains("UnknownIssuer"), "{refused:?}");
}

async fn tokens_come_with_the_ca(cluster: &Cluster) {
    let secrets = Api::<Secret>::namespaced(cluster.client().await.unwrap(), "default");
    let mut secret =
        Secret { type_: Some("kubernetes.io/service-account-token".into()), ..Secret::default() };
    secret.metadata.name = Some("token".into());
    secret.metadata.annotations =
        Some(BTreeMap::from([("kubernetes.io/service-account.name".into(), "default".into())]));
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    eventually("the token is there", async || {
        secrets.get("token").await.unwrap().data.is_some_and(|data| data.contains_key("token"))
    })
    .await;
    let data = secrets.get("token").await.unwrap().data.unwrap();
    assert_eq!(data["ca.crt"].0, fs::read(cluster.ca_certificate()).unwrap());
    let token = String::from_utf8(data["token"].0.clone()).unwrap();
    let account = client_with(cluster, |config| {
        let auth = serde_json::json!({ "token": token });
        config.auth_infos[0].auth_info = Some(serde_json::from_value(auth).unwrap());
    });
    let refused = Api::<Secret>::all(account.await).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("system:serviceaccount:default:default"), "{refused}");
}

async fn writes_are_audited(cluster: &Cluster) {
    let maps = Api::<ConfigMap>::namespaced(cluster.client().await.unwrap(), "default");
    maps.create(&PostParams::default(), &config_map("audited")).await.unwrap();
    maps.get("audited").await.unwrap();
    maps.delete("audited", &Default::default()).await.unwrap();
    eventually("the deletion is logged", async || audited(cluster, "delete", "audited") == 1).await;
    assert_eq!(audited(cluster, "create", "audited"), 1);
    assert_eq!(audited(cluster, "get", "audited"), 0);
}

async fn kubectl_works(fleet: &Fleet) {
    let output = tokio::process::Command::new(fleet.kubectl())
        .args(["--context", "east", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"])
        .env("KUBECONFIG", fleet.kubeconfig())
        .output()
        .await
        .unwrap();
    assert_eq!(text(&output), "10.98.0.1");
}

async fn the_api_server_goes_and_comes(cluster: &Cluster) {
    let client = cluster.client().await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &config_map("kept")).await.unwrap();

    cluster.pause().await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(1), maps.get("kept")).await.is_err());
    cluster.resume().await.unwrap();
    eventually("it answers again", async || maps.get("kept").await.is_ok()).await;

    cluster.kill(Component::ApiServer).await.unwrap();
    let port: u16 = cluster.server().rsplit_once(':').unwrap().1.parse().unwrap();
    let squatter = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let taken = cluster.start(Component::ApiServer).await.unwrap_err();
    assert!(matches!(&taken, Error::PortTaken { port: named, .. } if *named == port), "{taken}");
    drop(squatter);
    cluster.start(Component::ApiServer).await.unwrap();
    maps.get("kept").await.unwrap();
}

async fn further_processes(fleet: &Fleet) {
    let sleeper = || ProcessSpec::new("sleeper", "/bin/sh").args(["-c", "echo $WORD; exec sleep 1000"]);
    let first = fleet.run(sleeper().env("WORD", "hello")).await.unwrap();
    assert!(first.is_running().await.unwrap());
    assert!(Path::new(&format!("/proc/{}", first.pid().unwrap())).exists());
    eventually("it has spoken", async || fs::read_to_string(first.log()).unwrap() == "hello\n").await;
    assert!(matches!(fleet.run(sleeper()).await, Err(Error::Keeper(_))));
    assert_eq!(first.kill().await.unwrap(), Exit::Signal("SIGKILL".into()));
    let second = fleet.run(sleeper()).await.unwrap();
    assert_eq!(second.stop().await.unwrap(), Exit::Signal("SIGTERM".into()));
    assert_eq!(second.stop().await.unwrap(), Exit::Signal("SIGTERM".into()));
    // One that is left running ends with the fleet.
    fleet.run(sleeper().arg(fleet.dir().to_str().unwrap())).await.unwrap();
}

async fn services_have_addresses_of_their_clusters_families(fleet: &Fleet) {
    let mut addresses = Vec::new();
    for (cluster, families) in
        fleet.clusters().iter().zip([["IPv4", "IPv6"].as_slice(), &["IPv6"], &["IPv4"]])
    {
        assert_eq!(cluster.families().list().iter().map(ToString::to_string).collect::<Vec<_>>(), families);
        let service: Service = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80}], "ipFamilyPolicy": "PreferDualStack"},
        }))
        .unwrap();
        let services = Api::<Service>::namespaced(cluster.client().await.unwrap(), "default");
        let spec = services.create(&PostParams::default(), &service).await.unwrap().spec.unwrap();
        assert_eq!(spec.ip_families.unwrap(), families, "{}", cluster.name());
        addresses.extend(spec.cluster_ips.unwrap());
    }
    let [ipv4_of_dual, ipv6_of_dual, of_six, of_east] = addresses.as_slice() else { panic!("{addresses:?}") };
    for (address, network) in [
        (ipv4_of_dual, "10.96."),
        (ipv6_of_dual, "fd46:7265:6570::"),
        (of_six, "fd46:7265:6570:1::"),
        (of_east, "10.98."),
    ] {
        assert!(address.starts_with(network), "{addresses:?}");
    }
    let status = text(&run(&["status"], fleet.dir()));
    assert!(status.contains("IP families: dual=dual, six=ipv6; ipv4 otherwise\n"), "{status}");
}
