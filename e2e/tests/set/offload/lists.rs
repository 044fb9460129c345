//! Number of lists of a member when everything has to be listed again: its turns in a crowd are planned for that.

use std::collections::{BTreeMap, BTreeSet};

use e2e::{
    daemon::DAEMONS,
    fixture::CLUSTERS,
    ground::is_simulated,
    seen::imported,
    waiting::{VOUCHED, eventually, within},
    world::World,
};
use kit::crowd::LISTS;

use super::world::OFFLOADING;

/// Kinds of offloading, but for those of each host.
const OF_OFFLOADING: [&str; 5] =
    ["own NamespaceMap", "NamespaceMap", "own OffloadOffer", "OffloadOffer", "ShadowPod"];
/// Those of each host.
const OF_HOST: &str = "own ShadowPod";

/// The member in the leader's cluster.
const BESIDE: &str = "freeport-member-leader";

/// Number of lists of a member, by kind of the Common Area.
async fn lists(world: &World, member: &str) -> BTreeMap<String, f64> {
    let metrics = world.metrics(member).await.unwrap();
    let all = metrics.by_all("freeport_watch_lists_total", &["cluster", "kind"]);
    all.into_iter().filter_map(|(of, lists)| Some((of.strip_prefix("leader ")?.to_owned(), lists))).collect()
}

/// The log of a simulated network.
fn network_log(world: &World) -> String {
    if is_simulated() { world.sim().net.log_tail(usize::MAX) } else { String::new() }
}

/// When a member first listed a kind of the Common Area after so many lines of the network's log, in milliseconds.
fn listed(world: &World, lines: usize, member: &str, kind: &str) -> u64 {
    let log = network_log(world);
    let is_it = |line: &&str| {
        line.contains(&format!(" {member} -> leader: GET "))
            && line.contains(&format!("/{kind}?"))
            && !["watch=true", "limit=1 "].iter().any(|other| line.contains(other))
    };
    let line = log.lines().skip(lines).find(is_it).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Issue 18: of 500 members no more than 50 lists start in a second.
#[e2e::test]
fn a_member_lists_no_more_of_a_restored_leader_than_its_turns_are_planned_for() {
    OFFLOADING.alone(async |world| {
        let ns = world.namespace("lists", &CLUSTERS).await;
        let backup = world.back_up("leader").await;
        world.cluster("east").exported(&ns, "web", &["10.1.0.1"]).await;
        world.settled().await;
        let mut before = BTreeMap::new();
        for member in DAEMONS.into_iter().skip(1) {
            before.insert(member, lists(world, member).await);
        }
        let log = network_log(world).lines().count();
        world.restore(&backup).await;
        for (member, before) in &before {
            let what = format!("{member} lists everything again");
            within(VOUCHED, &what, || async {
                let now = lists(world, member).await;
                let is_again = |(kind, lists): (&String, &f64)| now.get(kind).is_some_and(|now| now > lists);
                if before.iter().all(is_again) { Ok(()) } else { Err(format!("{now:?}")) }
            })
            .await;
            let kinds: BTreeSet<_> =
                before.keys().map(String::as_str).filter(|kind| *kind != OF_HOST).collect();
            let (later, first): (Vec<_>, Vec<_>) =
                kinds.into_iter().partition(|kind| OF_OFFLOADING.contains(kind));
            e2e::note!("{member}: {first:?}, later {later:?}");
            assert!(first.len() <= LISTS as usize, "{first:?}");
            assert!(later.len() == OF_OFFLOADING.len() && later.len() <= LISTS as usize, "{later:?}");
        }
        if is_simulated() {
            // The one beside the leader begins anew with its cluster, and then waits for nobody.
            for member in before.keys().filter(|member| **member != BESIDE) {
                let [first, later] =
                    ["resourceimports", "namespacemaps"].map(|kind| listed(world, log, member, kind));
                assert!(later >= first + 300, "{member} listed at {first} and {later} ms");
            }
        }
        eventually("all is as it was", || imported(world.cluster("west"), &ns, "web")).await;
        world.release(&ns).await;
    });
}
