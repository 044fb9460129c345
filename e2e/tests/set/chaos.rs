//! Users and faults at random, by a seed: when the faults are over, all clusters have what users want, and at no time was anything
//! missing that should have been there.

mod crowd;
mod planted;

use e2e::{
    audit,
    chaos::{
        beginning::{begin, versions},
        crew::Crew,
        places::Places,
        plan::{Happens, Step, disorder::Disorder, plan},
        run::{lasts, run, seed},
        traces::{Trace, by_deposed, foreign},
        vigil::Vigil,
    },
    fixture::alone,
    ground::is_simulated,
    say::say,
    waiting::PUT_RIGHT,
};

/// How long things happen, unless the environment says otherwise.
const SECONDS: u64 = 120;
/// The same on the simulated ground, where a minute takes a third of one on a core.
const SIMULATED_SECONDS: u64 = 30;

fn is_restored(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step.happens, Happens::Disorder(Disorder::Restored { .. })))
}

/// Issue 18.
#[e2e::test]
fn whatever_happens_users_have_what_they_want_when_it_is_over() {
    alone(async |world| {
        let (seed, places) = (seed(), Places::new("chaos"));
        let (mark, crew) = (audit::mark(world), Crew::of(world).await);
        begin(world, &places).await;
        let others = versions(world, &places).await;
        let vigil = Vigil::over(world.clusters(), &places.anchors()).await;
        let seconds = if is_simulated() { SIMULATED_SECONDS } else { SECONDS };
        let steps = plan(seed, lasts(seconds), &places);

        let found = run(world, &crew, &vigil, &places, (&steps, PUT_RIGHT.time)).await;
        for line in &found.log {
            e2e::note!("{line}");
        }
        assert!(found.wrong.is_empty(), "{:#?}\n{}", found.wrong, crew.logs());
        assert!(found.differing.is_empty(), "{}\n{}", found.differing.join("\n"), crew.logs());
        assert_eq!(versions(world, &places).await, others, "what somebody else made");

        let written = audit::written(world, &mark);
        let done = written.iter().filter(|write| write.changes_something() && write.is_done());
        let mut traces: Vec<_> = done.map(Trace::from).collect();
        let replicas = |of: &str| traces.iter().filter(|trace| trace.agent.contains(of)).count();
        assert!(replicas("(east-") > 0 && replicas("(leader-") > 0, "the log tells replicas apart");
        assert_eq!(foreign(&traces, &places.prefix), Vec::<String>::new(), "objects that are not theirs");
        // Where its cluster was restored, the Lease of the leader's replicas is one of before: who held it then has it again.
        traces.retain(|trace| !is_restored(&steps) || !trace.agent.contains("(leader-"));
        assert_eq!(by_deposed(&traces), Vec::<String>::new(), "by a replica that is not the active one");
        say(&format!(
            "seed {seed}: {} steps, {} writes; nothing differed {:.1} s after the last fault",
            found.log.len(),
            traces.len(),
            found.converged.as_secs_f64()
        ));
        crew.free().await;
        for namespace in places.all() {
            world.release(&namespace).await;
        }
    });
}
