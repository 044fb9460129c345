//! Defects that are put into the daemons are found: otherwise a run that finds nothing proves nothing.

use std::{
    env,
    time::{Duration, Instant},
};

use e2e::{
    chaos::{
        beginning::begin,
        crew::Crew,
        places::Places,
        plan::plan,
        run::{differs, end, run, seed},
        vigil::Vigil,
    },
    fixture::{World, alone},
    say::say,
    waiting::{FOUND, PUT_RIGHT},
};
use kit::planted::Defect;

/// How long things happen.
const LASTS: Duration = Duration::from_secs(30);
/// A defect may do nothing by chance.
const ROUNDS: u64 = 3;

/// One by the seed, or all with `FREEPORT_CHAOS_DEFECTS=all`.
fn are_planted(seed: u64) -> Vec<Defect> {
    let all = env::var("FREEPORT_CHAOS_DEFECTS").is_ok_and(|which| which == "all");
    let one = usize::try_from(seed).unwrap() % Defect::COARSE.len();
    if all { Defect::COARSE.to_vec() } else { vec![Defect::COARSE[one]] }
}

/// What is found in a round, and after how long.
async fn finds(
    world: &'static World,
    defect: Defect,
    places: &Places,
    seed: u64,
) -> Option<(String, Duration)> {
    let mut crew = Crew::of(world).await;
    begin(world, places).await;
    let vigil = Vigil::over(world.clusters(), &places.anchors()).await;
    let begun = Instant::now();
    crew.plant(defect).await;
    let steps = plan(seed, LASTS, places);
    let found = run(world, &crew, &vigil, places, (&steps, FOUND.time)).await;
    let took = begun.elapsed();
    end(world, &crew, places, &found.log).await;
    crew.free().await;
    let differing = differs(world, places, PUT_RIGHT.time).await;
    assert!(differing.is_empty(), "{defect:?} is over: {}", differing.join("\n"));
    for namespace in places.all() {
        world.release(&namespace).await;
    }
    let first = found.wrong.into_iter().chain(found.differing).next();
    first.map(|first| (first, took))
}

/// Issue 18.
#[e2e::test(real)]
fn a_planted_defect_is_found() {
    alone(async |world| {
        let seed = seed();
        for defect in are_planted(seed) {
            let mut found = None;
            for round in 0..ROUNDS {
                let places = Places::new(&format!("{}-{round}", defect.name()));
                found = finds(world, defect, &places, seed.wrapping_add(round)).await;
                if found.is_some() {
                    break;
                }
            }
            let (first, took) =
                found.unwrap_or_else(|| panic!("{defect:?} was not found in {ROUNDS} rounds"));
            say(&format!("{defect:?} was found after {:.0} s: {first}", took.as_secs_f64()));
        }
    });
}
