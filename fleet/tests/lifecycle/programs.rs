//! Where the Kubernetes programs come from.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use fleet::tools::Tool;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};

use crate::command::{fleet_command, script, text};

#[test]
fn building_says_what_is_wrong_with_go() {
    let home = TempDir::new().unwrap();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let up = || {
        let output = fleet_command(&["up"], &home.path().join("fleet"))
            .env_remove("KUBERNETES_BINARIES")
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
    assert!(failed.contains("happens once, takes about 5 min"), "{failed}");
    assert!(
        failed.contains(
            "building etcd, kube-apiserver, kube-controller-manager, kubectl failed (exit status: 1)"
        ),
        "{failed}"
    );
    assert!(failed.contains("    cannot compile"), "{failed}");
}

/// A server that has programs as `dl.k8s.io` has them, at another path than is asked first.
struct Server {
    url: String,
    task: JoinSet<()>,
}

type Files = Arc<BTreeMap<String, String>>;

impl Server {
    async fn start(files: BTreeMap<String, String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().fallback(answer).with_state(Arc::new(files));
        let mut task = JoinSet::new();
        task.spawn(async { axum::serve(listener, app).await.unwrap() });
        Self { url, task }
    }
}

async fn answer(State(files): State<Files>, request: Request) -> Response {
    let path = request.uri().path();
    match path.strip_prefix("/elsewhere/") {
        Some(file) => match files.get(file) {
            Some(content) => content.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        None => (StatusCode::FOUND, [(header::LOCATION, format!("/elsewhere{path}"))]).into_response(),
    }
}

/// Where a release has a program.
fn published(tool: Tool) -> String {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    format!("{}/bin/linux/{architecture}/{}", tool.version(), tool.name())
}

/// The control plane's programs but etcd, each with its checksum.
fn release() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for tool in Tool::CONTROL_PLANE.into_iter().filter(|tool| *tool != Tool::Etcd) {
        let program = format!("#!/bin/sh\n# {}\n", tool.name());
        files.insert(format!("{}.sha256", published(tool)), format!("{:x}", Sha256::digest(&program)));
        files.insert(published(tool), program);
    }
    files
}

/// A directory with an etcd that ends at once, and a cache.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("assets")).unwrap();
        script(&home.path().join("assets/etcd"), "exit 3");
        Self(home)
    }

    /// What `fleet up` says, which fails in any case.
    async fn up(&self, binaries: &str) -> String {
        let mut command = fleet_command(&["up", "--clusters", "east"], &self.0.path().join("fleet"));
        command
            .env("KUBEBUILDER_ASSETS", self.0.path().join("assets"))
            .env("KUBERNETES_BINARIES", binaries)
            .env("FREEPORT_CACHE", self.0.path().join("cache"))
            .env("PATH", "/nowhere");
        let output = tokio::process::Command::from(command).output().await.unwrap();
        assert!(!output.status.success());
        text(&output)
    }

    /// The programs in the cache.
    fn downloaded(&self) -> Vec<PathBuf> {
        let mut dir = self.0.path().join("cache");
        for _ in 0..2 {
            dir = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        }
        let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut programs: Vec<_> = files.filter(|path| !path.ends_with("lock")).collect();
        programs.sort();
        programs
    }
}

#[tokio::test]
async fn published_programs_are_downloaded_once() {
    let (home, mut server) = (Home::new(), Server::start(release()).await);
    let said = home.up(&server.url).await;
    assert!(
        said.contains(&format!("downloading {}/{} (0 MiB)", server.url, published(Tool::Kubectl))),
        "{said}"
    );
    assert!(said.contains("etcd ended at start (exit status 3)"), "the programs are there: {said}");
    for (path, tool) in
        home.downloaded().iter().zip([Tool::KubeApiserver, Tool::KubeControllerManager, Tool::Kubectl])
    {
        assert!(path.ends_with(tool.name()), "{}", path.display());
        assert_eq!(fs::read_to_string(path).unwrap(), release()[&published(tool)]);
    }
    server.task.shutdown().await;
    let again = home.up(&server.url).await;
    assert!(!again.contains("downloading") && again.contains("etcd ended at start"), "{again}");
}

#[tokio::test]
async fn a_download_that_cannot_be_trusted_is_refused() {
    let home = Home::new();
    let program = published(Tool::KubeApiserver);
    let mut damaged = release();
    damaged.insert(program.clone(), "other content".into());
    let server = Server::start(damaged).await;
    let said = home.up(&server.url).await;
    let url = format!("{}/{program}", server.url);
    assert!(said.contains(&format!("KUBERNETES_BINARIES: the checksum of {url} is ")), "{said}");
    assert!(said.contains(&format!(" as {url}.sha256 says")), "{said}");
    assert!(
        !home.downloaded().iter().any(|path| path.ends_with("kube-apiserver")),
        "nothing is run unverified"
    );
}

#[tokio::test]
async fn a_place_without_programs_is_named() {
    let (home, mut server) = (Home::new(), Server::start(BTreeMap::new()).await);
    let said = home.up(&format!("{}/", server.url)).await;
    let url = format!("{}/{}.sha256", server.url, published(Tool::KubeApiserver));
    let failed = format!("KUBERNETES_BINARIES: downloading {url} failed: ");
    assert!(said.contains(&format!("{failed}the server answers 404 Not Found")), "{said}");
    server.task.shutdown().await;
    let said = home.up(&server.url).await;
    assert!(said.contains(&failed) && said.contains("Connection refused"), "{said}");
    let said = home.up("ftp://127.0.0.1").await;
    assert!(
        said.contains("KUBERNETES_BINARIES=ftp://127.0.0.1: a URL begins with https:// or http://"),
        "{said}"
    );
}

#[tokio::test]
async fn a_folder_gives_what_it_has() {
    let home = Home::new();
    let folder = home.0.path().join("folder");
    for tool in [Tool::KubeApiserver, Tool::Kubectl] {
        let path = folder.join(published(tool));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        script(&path, "exit 4");
    }
    let said = home.up(folder.to_str().unwrap()).await;
    assert!(said.contains("Go is needed to build kube-controller-manager and the command"), "{said}");
    script(&folder.join("kube-controller-manager"), "exit 4");
    let said = home.up(folder.to_str().unwrap()).await;
    assert!(said.contains("etcd ended at start (exit status 3)"), "{said}");
}
