//! Whatever is wrong with a link while something happens: when it is over, all is as if nothing had been wrong.

mod narrow;

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use api::cluster_set::ClusterSet;
use e2e::{
    daemon::LEADER,
    disturbed::{Disturbed, Side},
    faults::Fault,
    fixture::{SET, SYSTEM, World, alone},
    ground::is_simulated,
    promised::{HALF_OPEN, promised},
    seen::{imported, not_imported, records, right},
    waiting::eventually,
};

/// How long something is wrong after something happened.
const LASTS: Duration = Duration::from_secs(2);
/// Services of a round: one that changes, one that is withdrawn, one that is new, and one that changes during a restart.
const SERVICES: [&str; 4] = ["changes", "goes", "comes", "restarts"];
/// What the disturbed member exports beside the leader's.
const BESIDE: &str = "changes";
const PORT: (&str, i32) = ("http", 8080);

/// What happens in a round, in this order.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// An export, a change and a withdrawal, beside each other.
    Exports,
    /// A change, and the daemon is killed and starts.
    Restart,
    /// The member leaves the ClusterSet.
    Leave,
}

/// What users see of the Services, in the leader's cluster and that of the member, and the names of the records.
async fn state(world: &World, member: &str, ns: &str) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for service in SERVICES {
        for cluster in ["leader", member] {
            let of = world.cluster(cluster);
            let seen = match imported(of, ns, service).await {
                Ok(seen) => {
                    format!("{:?} {:?} {:?} {:?}", seen.ports, seen.clusters, seen.endpoints, seen.not_ready)
                }
                Err(why) => not_imported(of, ns, service).await.map_or(why, |()| "nothing".to_owned()),
            };
            state.insert(format!("{service} in {cluster}"), seen);
        }
        let records = records(world, ns, service).await;
        // The name of the Namespace is a part of theirs.
        let mut records: Vec<_> = records.iter().map(|record| record.replace(ns, "NS")).collect();
        records.sort();
        state.insert(format!("records of {service}"), records.join(" "));
    }
    state
}

/// Exports what there is before anything is wrong.
async fn prepare(world: &World, member: &str, ns: &str) {
    world.namespace(ns, &["leader", member]).await;
    let of = world.cluster(member);
    for (service, address) in [(BESIDE, "10.1.0.1"), ("goes", "10.1.0.2"), ("restarts", "10.1.0.3")] {
        of.exported(ns, service, &[address]).await;
    }
    world.leader().exported(ns, BESIDE, &["10.2.0.1"]).await;
}

async fn export(world: &World, member: &str, ns: &str) {
    let of = world.cluster(member);
    of.exported(ns, "comes", &["10.1.0.4"]).await;
    of.replace_slice(ns, BESIDE, "changes-1", &["10.1.0.5", "10.1.0.6"], &[PORT]).await;
    of.unexport(ns, "goes").await;
}

async fn change(world: &World, member: &str, ns: &str) {
    world.cluster(member).replace_slice(ns, "restarts", "restarts-1", &["10.1.0.7"], &[PORT]).await;
}

/// Waits until the state is this one.
async fn becomes(world: &World, member: &str, ns: &str, what: &str, want: &BTreeMap<String, String>) {
    eventually(what, || async {
        let seen = state(world, member, ns).await;
        let differs = |(key, seen): (&String, &String)| {
            (want.get(key) != Some(seen)).then(|| format!("{key}: {seen}, not {:?}", want.get(key)))
        };
        let differs: Vec<_> = seen.iter().filter_map(differs).collect();
        if differs.is_empty() { Ok(()) } else { Err(differs.join("\n")) }
    })
    .await;
}

/// `Ok` if nothing of the round is left of a member that left.
async fn has_left(world: &World, member: &str, ns: &str) -> Result<(), String> {
    for service in SERVICES {
        not_imported(world.cluster(member), ns, service).await?;
        let records = records(world, ns, service).await;
        if records.iter().any(|record| record.starts_with(member)) {
            return Err(format!("{records:?}"));
        }
    }
    Ok(())
}

/// What there is after each step where nothing is wrong.
struct Undisturbed {
    exported: BTreeMap<String, String>,
    restarted: BTreeMap<String, String>,
    left: BTreeMap<String, String>,
}

impl Undisturbed {
    async fn run(world: &'static World, member: &str, ns: &str) -> Self {
        prepare(world, member, ns).await;
        export(world, member, ns).await;
        world.settled().await;
        let exported = state(world, member, ns).await;
        change(world, member, ns).await;
        world.settled().await;
        let restarted = state(world, member, ns).await;
        let set: ClusterSet = world.cluster(member).take(SYSTEM, SET).await;
        eventually("it has left", || has_left(world, member, ns)).await;
        eventually("its exports are not in the leader's cluster", || async {
            for service in ["goes", "comes", "restarts"] {
                not_imported(world.leader(), ns, service).await?;
            }
            right(imported(world.leader(), ns, BESIDE).await, |seen| seen.clusters.len() == 1)
        })
        .await;
        let left = state(world, member, ns).await;
        world.cluster(member).put_back(set).await;
        becomes(world, member, ns, "it is back", &restarted).await;
        for state in [&exported, &restarted, &left] {
            e2e::note!("{member}, undisturbed: {state:#?}");
        }
        world.release(ns).await;
        Self { exported, restarted, left }
    }

    /// One fault while each of it happens, and what there is when it is over.
    async fn disturb(
        &self,
        world: &'static World,
        member: &str,
        (disturbed, side): (&Disturbed, Side),
        fault: Fault,
    ) {
        let ns = &format!("{fault:?}-{member}").to_lowercase();
        prepare(world, member, ns).await;
        eventually("all is there", || async {
            for cluster in ["leader", member] {
                for service in SERVICES.into_iter().filter(|service| *service != "comes") {
                    imported(world.cluster(cluster), ns, service).await?;
                }
            }
            Ok(())
        })
        .await;
        let mut set = None;
        for happens in [Happens::Exports, Happens::Restart, Happens::Leave] {
            disturbed.set(side, Some(fault));
            match happens {
                Happens::Exports => export(world, member, ns).await,
                Happens::Restart => {
                    change(world, member, ns).await;
                    disturbed.restart().await;
                }
                Happens::Leave => set = Some(world.cluster(member).take::<ClusterSet>(SYSTEM, SET).await),
            }
            tokio::time::sleep(LASTS).await;
            disturbed.set(side, None);
            let (over, what) = (Instant::now(), format!("{side:?} {fault:?} {happens:?}"));
            match happens {
                Happens::Exports => becomes(world, member, ns, &what, &self.exported).await,
                Happens::Restart => becomes(world, member, ns, &what, &self.restarted).await,
                Happens::Leave => {
                    eventually(&what, || has_left(world, member, ns)).await;
                    becomes(world, member, ns, &what, &self.left).await;
                }
            }
            let took = over.elapsed();
            e2e::note!("{what}: as if nothing had been wrong after {:.2} s", took.as_secs_f64());
            if fault == Fault::HalfOpen {
                promised(&format!("{what}: as if nothing had been wrong"), took, HALF_OPEN);
            }
        }
        world.cluster(member).put_back(set.unwrap()).await;
        becomes(world, member, ns, "it is back", &self.restarted).await;
        world.release(ns).await;
    }
}

/// Each fault is tried on one of the links, and on the simulated ground, or with `FREEPORT_FAULTS=all`, on both.
fn are_tried(side: Side) -> impl Iterator<Item = Fault> {
    let all = is_simulated() || env::var("FREEPORT_FAULTS").is_ok_and(|which| which == "all");
    let is_tried = move |at: usize| match side {
        Side::Leader => all || !at.is_multiple_of(2),
        Side::Local => all || at.is_multiple_of(2),
    };
    Fault::ALL.into_iter().enumerate().filter(move |(at, _)| is_tried(*at)).map(|(_, fault)| fault)
}

/// Each fault on a link of this daemon while all of it happens in the member's cluster.
async fn disturb_all(world: &'static World, member: &str, (daemon, side): (&str, Side)) {
    let disturbed = Disturbed::of(world, daemon).await;
    let ns = format!("undisturbed-{side:?}").to_lowercase();
    let undisturbed = Undisturbed::run(world, member, &ns).await;
    for fault in are_tried(side) {
        undisturbed.disturb(world, member, (&disturbed, side), fault).await;
    }
    disturbed.free().await;
}

/// Issue 18: each fault beside each of export, change, withdrawal, restart and leave.
#[e2e::test]
fn whatever_is_wrong_with_a_link_is_over_when_it_is_over() {
    alone(async |world| {
        let lane = async |member: &str, side| {
            disturb_all(world, member, (&format!("freeport-member-{member}"), side)).await;
        };
        tokio::join!(lane("east", Side::Leader), lane("west", Side::Local));
    });
}

/// The same with the leader's link to its own API server.
#[e2e::test]
fn whatever_is_wrong_with_the_leaders_link_is_over_when_it_is_over() {
    alone(async |world| disturb_all(world, "east", (LEADER, Side::Local)).await);
}
