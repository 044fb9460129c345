//! `manifests/`, applied by the commands that docs/cli.md tells.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fleet::Fleet;

use crate::shell::shell;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests");

/// Makes `leader` the leader of ClusterSet `demo` and `member` its member `east`, without any program of ours: runs the commands of
/// docs/cli.md as they are there but for the clusters' names and the leader's address. What they print.
pub async fn apply(fleet: &Fleet, leader: &str, member: &str) -> String {
    let docs = include_str!("../../docs/cli.md");
    let (_, commands) = docs.split_once("without any program of ours:\n\n```\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let commands = commands
        .replace("--context leader", &format!("--context {leader}"))
        .replace("--context east", &format!("--context {member}"))
        .replace("manifests/clusterset-member.yaml", &edited(fleet, leader).display().to_string())
        .replace("-f manifests/", &format!("-f {FOLDER}/"));
    shell(fleet, &[], &commands).await
}

/// The member's ClusterSet with the leader's address; goes with the fleet.
fn edited(fleet: &Fleet, leader: &str) -> PathBuf {
    let leader = fleet.cluster(leader).unwrap();
    let example = fs::read_to_string(Path::new(FOLDER).join("clusterset-member.yaml")).unwrap();
    let edited = leader.dir().join("clusterset-member.yaml");
    fs::write(&edited, example.replace("https://LEADER:6443", &leader.server())).unwrap();
    edited
}
