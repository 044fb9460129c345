//! A run, and everything that has to be right in it. Fails by panicking; the words begin with what is wrong.

use std::{collections::BTreeSet, time::Duration};

use sim::net::Rates;
use tokio::time::sleep;

use super::{
    beginning::{begin, versions},
    crew::Crew,
    places::Places,
    plan::{Happened, Happens, Step, disorder::Disorder},
    run::run,
    traces::{Trace, by_deposed, foreign},
    vigil::Vigil,
};
use crate::{
    audit::{self, Mark},
    fixture::World,
    ground::is_simulated,
    waiting::PUT_RIGHT,
};
use kit::planted::Defect;

/// What is exported for so long on the simulated ground is held to be kept (invariant `kept`).
const BEFORE: Duration = Duration::from_secs(61);
/// After the last difference a set is settled within this time, and then writes nothing but Leases for as long. Who restarted waits half a minute before
/// it says that clusters are reachable again.
const SETTLED: Duration = Duration::from_secs(60);

/// What happens.
pub struct Trial<'a> {
    pub steps: &'a [Step],
    /// What goes wrong on all links of a simulation meanwhile.
    pub rates: Rates,
    pub planted: Option<Defect>,
}

/// A run in which everything was right.
#[derive(Debug)]
pub struct Passed {
    pub log: Vec<Happened>,
    /// How many writes daemons made.
    pub writes: usize,
    /// How long it took after the last fault until nothing differed.
    pub converged: Duration,
}

/// Carries out a plan. The daemons of the world run again when it has passed.
pub async fn trial(world: &'static World, places: &Places, trial: &Trial<'_>) -> Passed {
    if is_simulated() {
        world.sim().check_exports();
    }
    let (mark, mut crew) = (audit::mark(world), Crew::of(world).await);
    begin(world, places).await;
    let others = versions(world, places).await;
    let vigil = Vigil::over(world.clusters(), &places.anchors()).await;
    if is_simulated() {
        sleep(BEFORE).await;
    }
    if let Some(defect) = trial.planted {
        crew.plant(defect).await;
    }
    crew.break_with(trial.rates);
    let found = run(world, &crew, &vigil, places, (trial.steps, PUT_RIGHT.time)).await;
    for happened in &found.log {
        crate::note!("{happened}");
    }
    assert!(found.wrong.is_empty(), "vigil: {:#?}\n{}", found.wrong, crew.logs());
    assert!(found.differing.is_empty(), "oracle: {}\n{}", found.differing.join("\n"), crew.logs());
    assert_eq!(versions(world, places).await, others, "others: what somebody else made");
    let writes = look_into(world, places, &mark, trial.steps);
    if is_simulated() {
        settles(world, &crew).await;
    }
    crew.free().await;
    Passed { log: found.log, writes, converged: found.converged }
}

/// Looks into the audit logs; how many writes there were.
fn look_into(world: &World, places: &Places, mark: &Mark, steps: &[Step]) -> usize {
    let written = audit::written(world, mark);
    let done = written.iter().filter(|write| write.changes_something() && write.is_done());
    let mut traces: Vec<_> = done.map(Trace::from).collect();
    let replicas = |of: &str| traces.iter().filter(|trace| trace.agent.contains(of)).count();
    assert!(replicas("(east-") > 0 && replicas("(leader-") > 0, "the log tells replicas apart");
    assert_eq!(
        foreign(&traces, &places.prefix),
        Vec::<String>::new(),
        "foreign: objects that are not theirs"
    );
    // Where a cluster was restored, the Lease of the replicas in it is one of before: who held it then has it again.
    let restored: Vec<_> = steps.iter().filter_map(restored).map(|cluster| format!("({cluster}-")).collect();
    traces.retain(|trace| !restored.iter().any(|replica| trace.agent.contains(replica)));
    let deposed = by_deposed(&traces);
    assert_eq!(deposed, Vec::<String>::new(), "deposed: by a replica that is not the active one");
    traces.len()
}

/// The cluster that a step restores, if it does.
fn restored(step: &Step) -> Option<&'static str> {
    match step.happens {
        Happens::Disorder(Disorder::Restored { cluster, .. }) => Some(cluster),
        _ => None,
    }
}

/// A settled set writes Leases alone, and each member its report once at the most: numbers in it may be five minutes old.
async fn settles(world: &World, crew: &Crew) {
    let settled = async {
        sleep(SETTLED).await;
        let mark = audit::mark(world);
        sleep(SETTLED).await;
        audit::writes(world, &mark)
    };
    let mut writes = tokio::select! {
        writes = settled => writes,
        () = crew.run() => vec![],
    };
    let mut reported = BTreeSet::new();
    writes.retain(|write| {
        let report = write.split(' ').find(|word| word.contains("/clusterreports/"));
        report.is_none_or(|report| !reported.insert(report.to_owned()))
    });
    assert!(writes.is_empty(), "unsettled: {writes:#?}");
}
