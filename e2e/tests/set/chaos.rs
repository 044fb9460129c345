//! Users and faults at random, by a seed: when the faults are over, all clusters have what users want, and at no time was anything
//! missing that should have been there.

mod crowd;
mod planted;

use e2e::{
    chaos::{
        places::Places,
        plan::plan,
        run::{lasts, seed},
        trial::{Trial, trial},
    },
    fixture::alone,
    ground::is_simulated,
    say::say,
};
use sim::net::Rates;

/// How long things happen, unless the environment says otherwise.
const SECONDS: u64 = 120;
/// The same on the simulated ground, where a minute takes a third of one on a core.
const SIMULATED_SECONDS: u64 = 30;

/// Issue 18.
#[e2e::test]
fn whatever_happens_users_have_what_they_want_when_it_is_over() {
    alone(async |world| {
        let (seed, places) = (seed(), Places::new("chaos"));
        let seconds = if is_simulated() { SIMULATED_SECONDS } else { SECONDS };
        let steps = plan(seed, lasts(seconds), &places);
        let passed =
            trial(world, &places, &Trial { steps: &steps, rates: Rates::default(), planted: None }).await;
        say(&format!(
            "seed {seed}: {} steps, {} writes; nothing differed {:.1} s after the last fault",
            passed.log.len(),
            passed.writes,
            passed.converged.as_secs_f64()
        ));
        for namespace in places.all() {
            world.release(&namespace).await;
        }
    });
}
