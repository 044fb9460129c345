use std::time::Duration;

use super::*;
use crate::{
    feature::{
        fixture::{access, features},
        proof::{Copies, CopiesRun},
    },
    session::health::{Health, PATIENCE, Seen, seen},
};

fn settled(table: &Table) -> Settled {
    table.settled(&Watches::default(), Instant::now())
}

#[tokio::test]
async fn a_feature_with_something_to_write_keeps_the_member_from_vouching_for_that() {
    let run = CopiesRun::new(access());
    let queue = run.queue.clone();
    let table = Table(vec![("More", Copies.begin(access())), ("Copies", Box::new(run))]);
    assert_eq!(settled(&table), Settled::Yes, "nothing to watch, nothing to write");
    queue.enqueue(["a".to_owned()]);
    let a = Unwritten::of("Copies", ["a".to_owned()]);
    assert_eq!(settled(&table), Settled::Writing(a), "and for nothing else");
    queue.enqueue((0..200).map(|n| n.to_string()));
    assert_eq!(settled(&table), Settled::Writing(Unwritten::unknown()), "too much to say");
}

#[tokio::test]
async fn a_feature_that_cannot_watch_keeps_the_member_from_vouching_and_is_named() {
    let access = access();
    let table = Table::begin(&features(), &access);
    let mut tasks = JoinSet::new();
    table.watch(&mut tasks);
    assert_eq!(settled(&table), Settled::No);
    assert!(!table.are_listed());
    let seen = |present_for| seen(&access, &table, &Watches::default(), Seen::default(), present_for);
    assert_eq!(seen(Duration::ZERO), Health::Connecting, "the list may be on its way");
    let Health::Blind(blind) = seen(PATIENCE) else { panic!("{:?}", seen(PATIENCE)) };
    assert_eq!(blind[0].feature, Some("Copies"));
    assert_eq!(blind[0].unlisted, ["ConfigMap"]);
}

#[tokio::test]
async fn a_feature_that_waits_ends_when_the_session_stops() {
    let access = access();
    let table = Table::begin(&features(), &access);
    let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
    table.watch(&mut tasks);
    let never = || Box::pin(std::future::pending()) as BoxFuture<'static, ()>;
    let ended = table.run(never, &stop);
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap();
}

#[test]
fn the_crds_of_every_feature_are_checked() {
    assert_eq!(crds(&features()), ["copies.example.com"].into());
}
