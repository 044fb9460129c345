//! What ends fleets.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use fleet::Fleet;
use tempfile::TempDir;

use crate::command::{eventually, options, processes_of, run, say, text};

/// Environment of a test program that plays the owner of a fleet.
const OWNER_DIR: &str = "FLEET_TEST_OWNER_DIR";

#[tokio::test]
async fn fleets_end_with_their_owner_and_do_not_disturb_each_other() {
    let home = TempDir::new().unwrap();
    let (owned, detached) = (home.path().join("owned"), home.path().join("detached"));
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "owner::owner", "--ignored", "--nocapture"])
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
