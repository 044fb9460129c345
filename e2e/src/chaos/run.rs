//! A plan, carried out: lanes beside each other, with the daemons' kubelets.

use std::{
    env,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use futures::future::join_all;
use tokio::time::sleep;

use super::{
    crew::Crew,
    disorders,
    held::held,
    lost::lost,
    oracle::differences,
    places::Places,
    plan::{Happened, Happens, Lane, Step},
    users,
    vigil::Vigil,
};
use crate::{fixture::World, ground::is_simulated, say::say, waiting::eventually};

const SEED: &str = "FREEPORT_CHAOS_SEED";
const SECONDS: &str = "FREEPORT_CHAOS_SECONDS";
const DAY: u64 = 24 * 60 * 60;
/// The run on the simulated ground: it has four clusters.
const SIMULATED: u64 = 4;
/// Between two looks.
const AGAIN: Duration = Duration::from_millis(500);

/// Which run it is, unless the environment says otherwise: one for each day, and always the same one on the simulated ground, where a hunt tries
/// others.
pub fn seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let of_today = || if is_simulated() { SIMULATED } else { since.as_secs() / DAY };
    let seed = of_environment(SEED).unwrap_or_else(of_today);
    say(&format!("{SEED}={seed} gives this run again"));
    seed
}

/// For how long things happen: so many seconds, unless the environment says otherwise.
pub fn lasts(seconds: u64) -> Duration {
    Duration::from_secs(of_environment(SECONDS).unwrap_or(seconds))
}

fn of_environment(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap())
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Found {
    pub log: Vec<Happened>,
    /// What was wrong with an anchor at any time.
    pub wrong: Vec<String>,
    /// What differed from what has to be when the time to converge was over.
    pub differing: Vec<String>,
    /// How long it took until nothing differed.
    pub converged: Duration,
}

/// Carries out a plan, ends all faults, and waits for so long until there is what has to be. It ends early where the vigil sees
/// something.
pub async fn run(
    world: &World,
    crew: &Crew,
    vigil: &Vigil,
    places: &Places,
    (steps, limit): (&[Step], Duration),
) -> Found {
    let log = carry_out(world, crew, vigil, places, steps).await;
    if !vigil.wrong().is_empty() {
        return Found { log, wrong: vigil.wrong(), ..Found::default() };
    }
    end(world, crew, places, &log).await;
    let begun = Instant::now();
    let differing = tokio::select! {
        differing = differs(world, places, limit) => differing,
        () = crew.run() => vec![],
    };
    Found { log, wrong: vigil.wrong(), differing, converged: begun.elapsed() }
}

/// Waits until there is what has to be, or the time is over: what differs then.
pub async fn differs(world: &World, places: &Places, limit: Duration) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let differing = held(world, places).await.map_or_else(|error| vec![error], |all| differences(&all));
        if differing.is_empty() || begun.elapsed() > limit {
            return differing;
        }
        sleep(AGAIN).await;
    }
}

/// What happened so far.
type Log = Mutex<Vec<Happened>>;

async fn carry_out(
    world: &World,
    crew: &Crew,
    vigil: &Vigil,
    places: &Places,
    steps: &[Step],
) -> Vec<Happened> {
    let (begun, log) = (Instant::now(), Log::default());
    let lanes =
        join_all(Lane::ALL.map(|lane| carry_out_lane((world, crew, places), steps, lane, begun, &log)));
    let sees = async {
        while vigil.wrong().is_empty() {
            sleep(AGAIN).await;
        }
    };
    tokio::select! {
        _ = lanes => {}
        () = sees => {}
        () = crew.run() => {}
    }
    log.into_inner().unwrap_or_else(PoisonError::into_inner)
}

async fn carry_out_lane(
    (world, crew, places): (&World, &Crew, &Places),
    steps: &[Step],
    lane: Lane,
    begun: Instant,
    log: &Log,
) {
    for step in steps.iter().filter(|step| step.lane == lane) {
        sleep(step.at.saturating_sub(begun.elapsed())).await;
        let began = begun.elapsed();
        let done = match &step.happens {
            Happens::Deed(deed) => users::does(world, deed).await,
            Happens::Disorder(disorder) => {
                disorders::happens(world, crew, places, disorder).await;
                Ok(())
            }
        };
        let (ended, what, failed) = (begun.elapsed(), step.happens.clone(), done.err());
        let happened = Happened { began, ended, what, failed };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
    }
}

/// Ends all faults, and gives users back Namespaces that were being deleted. What they exported and a backup lacks, they end as the
/// documentation says: it stays exported until then.
pub async fn end(world: &World, crew: &Crew, places: &Places, log: &[Happened]) {
    crew.mend().await;
    world.mend().await;
    let lost = lost(log);
    let back = async {
        for cluster in world.clusters() {
            for namespace in places.all() {
                eventually(&format!("{namespace} is in {}", cluster.name), || {
                    users::make_namespace(cluster, &namespace)
                })
                .await;
            }
        }
        join_all(lost.iter().map(|place| users::ends_export(world, place))).await;
    };
    tokio::select! {
        () = back => {}
        () = crew.run() => {}
    }
}
