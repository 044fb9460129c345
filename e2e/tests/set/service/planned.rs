//! Issue 41: what `freeport plan` predicts comes true. Sets of exports and changes of them are drawn from a seed, predicted, applied, and
//! compared when all daemons have settled: ResourceImports, conditions of ServiceExports with their messages, and ServiceImports.

mod compared;
mod drawn;

use std::{collections::BTreeSet, env, time::Duration};

use api::ServiceName;
use cli::look_for_plan;
use e2e::{
    fixture::{CLUSTERS, World, alone},
    ground::is_simulated,
    waiting::{SWEPT, within},
};
use futures::future::join_all;
use k8s_openapi::jiff::Timestamp;
use picture::plan::{Change, Plan, plan};
use sim::random::Random;

use self::{
    compared::differences,
    drawn::{Drawn, apply, create},
};

/// Sets of exports in one Namespace: they change together, and settle together.
const TOGETHER: usize = 20;
/// Sets without [`SETS`].
const SIMULATED: usize = 100;
const REAL: usize = 5;
/// Conditions that wait until something lasts are there after this time.
const LASTS: Duration = Duration::from_secs(12);
/// Variable with the number of sets, and that with the seed.
const SETS: &str = "FREEPORT_PLAN_SETS";
const SEED: &str = "FREEPORT_PLAN_SEED";

fn number<T: std::str::FromStr>(variable: &str, without: T) -> T {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}

#[e2e::test]
fn what_is_planned_comes_true() {
    alone(async |world| {
        let seed = number(SEED, 41);
        let sets = number(SETS, if is_simulated() { SIMULATED } else { REAL });
        e2e::note!("{SEED}={seed} {SETS}={sets}");
        for first in (0..sets).step_by(TOGETHER) {
            let count = TOGETHER.min(sets - first);
            round(world, &format!("planned-{first}"), Random::new(seed + first as u64), count).await;
        }
    });
}

async fn round(world: &World, ns: &str, mut random: Random, count: usize) {
    let target = *random.pick(&CLUSTERS);
    let lacks = random.one_in(2).then(|| *random.pick(&CLUSTERS)).filter(|lacks| *lacks != target);
    let here: Vec<_> = CLUSTERS.into_iter().filter(|cluster| Some(*cluster) != lacks).collect();
    world.namespace(ns, &here).await;
    let drawn: Vec<_> =
        (0..count).map(|at| Drawn::of(&mut random, &format!("s{at}"), &here, target)).collect();
    for one in &drawn {
        create(world, ns, one).await;
    }
    world.settled().await;
    tokio::time::sleep(LASTS).await;

    let services: BTreeSet<_> = drawn.iter().map(|one| ServiceName::new(ns, &one.name)).collect();
    let looks = CLUSTERS.map(|cluster| {
        let client = world.cluster(cluster).client.clone();
        let services = &services;
        async move { look_for_plan(cluster, client, services).await }
    });
    let clusters = join_all(looks).await;
    let changes: Vec<Change> = drawn.iter().flat_map(|one| one.changes(ns)).collect();
    let planned: Plan = plan(&clusters, Some(target), &changes, Timestamp::now()).unwrap();
    assert_eq!((&planned.refused, &planned.not_looked_at), (&vec![], &vec![]), "{ns}");
    assert!(!planned.services.is_empty(), "{ns}");
    for one in &drawn {
        apply(world, ns, target, one).await;
    }
    // Reports are written at most every ten seconds, and that no endpoint can answer is said when it lasts.
    world.settled().await;
    tokio::time::sleep(LASTS).await;
    within(SWEPT, &format!("{ns}, changed in {target}, is as planned"), async || {
        let wrong = differences(world, &planned).await;
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })
    .await;
    // It stays so.
    world.settled().await;
    let wrong = differences(world, &planned).await;
    assert!(wrong.is_empty(), "{ns}, change in {target}:\n{}", wrong.join("\n"));
    world.release(ns).await;
}
