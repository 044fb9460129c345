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
    fixture::alone_among,
    say::say,
};
use sim::net::Rates;

/// How long things happen, unless the environment says otherwise.
const SECONDS: u64 = 120;

/// Issue 18. The seed says how many clusters there are, too.
#[e2e::test]
fn whatever_happens_users_have_what_they_want_when_it_is_over() {
    let seed = seed();
    let places = &Places::drawn("chaos", seed);
    alone_among(places.clusters().len(), async |world| {
        let steps = plan(seed, lasts(SECONDS), places);
        let passed =
            trial(world, places, &Trial { steps: &steps, rates: Rates::default(), planted: None }).await;
        say(&format!(
            "seed {seed}, {} clusters: {} steps, {} writes; nothing differed {:.1} s after the last fault",
            places.clusters().len(),
            passed.log.len(),
            passed.writes,
            passed.converged.as_secs_f64()
        ));
        for namespace in places.all() {
            world.release(&namespace).await;
        }
    });
}
