//! Fleets on this machine, with the real programs. The first run ever builds them, which takes minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use fleet::{Cluster, Component, Error, Exit, Fleet, Lifetime, Options, ProcessSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{
    Api, Client, Config,
    api::{ListParams, ObjectMeta, PostParams},
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use tempfile::TempDir;
use tokio::time::sleep;

/// A condition takes as long as it takes; this is for one that never comes.
const LIMIT: Duration = Duration::from_secs(90);
/// Environment of a test program that plays the owner of a fleet.
const OWNER_DIR: &str = "FLEET_TEST_OWNER_DIR";

fn options(dir: &Path, clusters: &[&str]) -> Options {
    Options {
        dir: dir.to_owned(),
        clusters: clusters.iter().map(|cluster| cluster.parse().unwrap()).collect(),
        nodes: false,
        lifetime: Lifetime::Attached { remove: true },
    }
}

fn say(line: &str) {
    eprintln!("{line}");
}

fn fleet_command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleet"));
    command.args(args).arg("--dir").arg(dir).env_remove("KUBEBUILDER_ASSETS").stdin(Stdio::null());
    command
}

fn run(args: &[&str], dir: &Path) -> Output {
    let output = fleet_command(args, dir).output().unwrap();
    eprintln!("fleet {args:?}: {}\n{}", output.status, text(&output));
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < LIMIT, "still not: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Process ids of everything that has the directory in its command line, keeper included.
fn processes_of(dir: &Path) -> Vec<u32> {
    let dir = dir.to_str().unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(dir).then_some(pid)
    });
    pids.filter(|pid| *pid != std::process::id()).collect()
}

fn script(path: &Path, body: &str) {
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

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
    let fleet = Fleet::up(options(&dir, &["east"]), say).await.unwrap();
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
    assert_eq!(text(&output), "10.96.0.1");
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

#[tokio::test]
async fn fleets_end_with_their_owner_and_do_not_disturb_each_other() {
    let home = TempDir::new().unwrap();
    let (owned, detached) = (home.path().join("owned"), home.path().join("detached"));
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner", "--ignored", "--nocapture"])
        .env(OWNER_DIR, &owned)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    assert!(run(&["up", "--clusters", "west"], &detached).status.success());
    eventually("the owner has its fleet", async || {
        assert!(owner.try_wait().unwrap().is_none(), "the owner has ended");
        Fleet::open(&owned).await.is_ok()
    })
    .await;
    let pids = processes_of(&owned);
    assert!(pids.len() >= 4, "{pids:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("all has ended with its owner", async || processes_of(&owned).is_empty()).await;
    eventually("the directory is removed", async || !owned.exists()).await;

    let status = run(&["status"], &detached);
    assert!(status.status.success());
    assert!(text(&status).contains("west     kube-apiserver"), "{}", text(&status));
    let again = run(&["up", "--clusters", "west"], &detached);
    assert!(again.status.success() && text(&again).contains("already running"));
    for others in ["west,east", "west=dual"] {
        let other = run(&["up", "--clusters", others], &detached);
        assert!(!other.status.success() && text(&other).contains("take it down first"), "{others}");
    }

    kill_keeper(&detached);
    eventually("all has ended with the keeper", async || processes_of(&detached).is_empty()).await;
    assert!(!run(&["status"], &detached).status.success());
    for _ in 0..2 {
        assert!(run(&["down"], &detached).status.success());
        assert!(!detached.exists());
    }
}

#[tokio::test]
async fn services_have_addresses_of_their_clusters_families() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("fleet");
    let fleet = Fleet::up(options(&dir, &["a=dual", "b=ipv6", "c"]), say).await.unwrap();
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
    let [ipv4_of_a, ipv6_of_a, of_b, of_c] = addresses.as_slice() else { panic!("{addresses:?}") };
    for (address, network) in [
        (ipv4_of_a, "10.96."),
        (ipv6_of_a, "fd46:7265:6570::"),
        (of_b, "fd46:7265:6570:1::"),
        (of_c, "10.98."),
    ] {
        assert!(address.starts_with(network), "{addresses:?}");
    }
    let status = text(&run(&["status"], &dir));
    assert!(status.contains("IP families: a=dual, b=ipv6; ipv4 otherwise\n"), "{status}");
}

/// Not a test: the program that [`fleets_end_with_their_owner_and_do_not_disturb_each_other`] kills.
#[tokio::test]
#[ignore = "played by another test"]
async fn owner() {
    let Some(dir) = std::env::var_os(OWNER_DIR).map(PathBuf::from) else {
        return;
    };
    let _fleet = Fleet::up(options(&dir, &["east"]), say).await.unwrap();
    std::future::pending::<()>().await;
}

fn kill_keeper(dir: &Path) {
    let keeper: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("keeper.json")).unwrap()).unwrap();
    let pid = keeper["pid"].to_string();
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
}

#[test]
fn a_component_that_dies_at_start_shows_its_log() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("fleet");
    let assets = home.path().join("assets");
    fs::create_dir(&assets).unwrap();
    script(&assets.join("etcd"), "for n in $(seq 30); do echo line $n; done; exit 3");
    let mut command = fleet_command(&["up", "--clusters", "east"], &dir);
    let output = command.env("KUBEBUILDER_ASSETS", &assets).output().unwrap();
    let said = text(&output);
    assert!(!output.status.success());
    assert!(said.contains("error: east: etcd ended at start (exit status 3)"), "{said}");
    assert!(said.contains("    line 30\n") && !said.contains("line 15\n"), "{said}");
    assert!(processes_of(&dir).is_empty());
    assert!(dir.join("east/logs/etcd.log").is_file(), "the whole log can be read");
    assert!(run(&["down"], &dir).status.success());
    assert!(!dir.exists());
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let home = TempDir::new().unwrap();
    let precious = home.path().join("precious");
    fs::write(&precious, "work").unwrap();
    for args in [&["up", "--clusters", "east"][..], &["down"]] {
        let output = run(args, home.path());
        assert!(!output.status.success());
        assert!(text(&output).contains("holds something else than a fleet"), "{}", text(&output));
    }
    assert_eq!(fs::read_to_string(precious).unwrap(), "work");
}

#[test]
fn building_says_what_is_wrong_with_go() {
    let home = TempDir::new().unwrap();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let up = || {
        let output = fleet_command(&["up"], &home.path().join("fleet"))
            .env("FREEPORT_CACHE", home.path().join("cache"))
            .env("PATH", &bin)
            .output()
            .unwrap();
        assert!(!output.status.success());
        text(&output)
    };
    let missing = up();
    assert!(missing.contains("the command `go` was not found: install Go 1."), "{missing}");
    script(&bin.join("go"), "echo go1.19.2");
    let old = up();
    assert!(old.contains("Go 1.19.2 is too old"), "{old}");
    script(&bin.join("go"), "[ $1 = env ] && echo go1.99 && exit; echo cannot compile >&2; exit 1");
    let failed = up();
    assert!(failed.contains("happens once, takes about 8 min"), "{failed}");
    assert!(failed.contains("building kube-apiserver failed (exit status: 1)"), "{failed}");
    assert!(failed.contains("    cannot compile"), "{failed}");
}
