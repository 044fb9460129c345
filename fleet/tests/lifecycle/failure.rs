//! What is said when a fleet cannot be brought up.

use std::fs;

use tempfile::TempDir;

use crate::command::{fleet_command, processes_of, run, script, text};

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
