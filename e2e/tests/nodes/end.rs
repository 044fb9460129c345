//! A fleet with nodes whose keeper is killed, which nobody can clean up after: the kernel does.

use std::process::Command;

use e2e::{pod::nodes_are_possible, say::say};
use fleet::{Fleet, Lifetime};

use crate::nodes::{
    in_turn,
    pods::options,
    traces::{Places, Traces},
};

#[e2e::test]
async fn a_killed_keeper_takes_all_along() {
    if !nodes_are_possible() {
        return;
    }
    let _turn = in_turn().await;
    let before = Places::look();
    let options = options("end", &["east"], Lifetime::Attached { remove: true });
    let dir = options.dir.clone();
    let fleet = Fleet::up(options, say).await.unwrap();
    let traces = Traces::of(&fleet).await;
    let keeper: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.join("keeper.json")).unwrap()).unwrap();
    assert!(Command::new("kill").args(["-9", &keeper["pid"].to_string()]).status().unwrap().success());
    traces.have_ended().await;
    Fleet::down(&dir, say).await.unwrap();
    traces.are_gone().await;
    assert!(!dir.exists());
    assert_eq!(Places::look(), before);
}
