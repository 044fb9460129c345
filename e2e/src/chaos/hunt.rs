//! Trials of many seeds on the simulated ground.

use std::{any::Any, time::Duration};

use kit::planted::{Defect, plant};
use sim::{net::Rates, random::Random, world::Plan};

use super::{
    coverage::Coverage,
    places::Places,
    plan::{Step, plan},
    trial::{Trial, trial},
};
use crate::{
    fixture::{FAMILIES, SET},
    ground::on_own_stack,
    simulated,
};

/// What a seed decides.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub seed: u64,
    /// How long users and faults do something.
    pub lasts: Duration,
    /// Of the plan only these steps.
    pub only: Option<Vec<usize>>,
    pub planted: Option<Defect>,
}

/// What became of it.
pub struct Report {
    /// Why it failed.
    pub failure: Option<Failure>,
    pub coverage: Coverage,
    /// Virtual time.
    pub lasted: Duration,
    pub requests: u64,
    /// The log of the network, and that of the daemons if it was kept.
    pub network: String,
    pub daemons: Vec<u8>,
}

/// Why a trial failed.
#[derive(Clone, Debug)]
pub struct Failure(pub String);

impl Failure {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Self(text.unwrap_or_else(|| "a panic without words".to_owned()))
    }

    /// What was found wrong: `invariant kept`, `oracle`, or the first words of another failure.
    pub fn verdict(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }

    /// Its first line.
    pub fn line(&self) -> String {
        let lines: Vec<_> = self.0.lines().take(2).map(str::trim).collect();
        lines.join(" ").chars().take(300).collect()
    }
}

impl Attempt {
    /// The plan's steps with their numbers.
    pub fn steps(&self) -> Vec<(usize, Step)> {
        let all = plan(self.seed, self.lasts, &self.places()).into_iter().enumerate();
        all.filter(|(number, _)| self.only.as_ref().is_none_or(|only| only.contains(number))).collect()
    }

    /// How many clusters there are is drawn, too.
    fn places(&self) -> Places {
        Places::drawn("chaos", self.seed)
    }

    /// What goes wrong on all links: in every third run nothing.
    fn rates(&self) -> Rates {
        let mut random = Random::new(self.seed ^ 0x5EED);
        if random.one_in(3) {
            return Rates::default();
        }
        let below = |random: &mut Random, limit: usize| random.below(limit) as u64;
        Rates {
            refused: below(&mut random, 20),
            unanswered: below(&mut random, 20),
            cut_after: Duration::from_secs(below(&mut random, 30)),
            late: Duration::from_millis(below(&mut random, 3000)),
        }
    }

    /// Runs it in a simulation of its own. Keeps the daemons' log only if `logs`.
    pub fn run(&self, logs: bool) -> Report {
        on_own_stack(|| {
            let steps: Vec<_> = self.steps().into_iter().map(|(_, step)| step).collect();
            let (rates, planted) = (self.rates(), self.planted);
            let places = self.places();
            let clusters: Vec<_> = places.clusters().into_iter().map(with_families).collect();
            let plan = simulated::plan(&clusters, &[(SET, &clusters)]);
            let set = Plan { seed: self.seed, ..plan };
            let ended = simulated::simulate(set, logs, |world| async move {
                trial(world, &places, &Trial { steps: &steps, rates, planted }).await
            });
            plant(None);
            let (coverage, failure) = match &ended.result {
                Ok(passed) => (Coverage::of(&passed.log), None),
                Err(panic) => (Coverage::default(), Some(Failure::of(&**panic))),
            };
            let (lasted, requests) = (ended.lasted, ended.requests);
            Report { failure, coverage, lasted, requests, network: ended.network, daemons: ended.daemons }
        })
    }
}

/// The name of a cluster with its IP families.
fn with_families(cluster: &'static str) -> &'static str {
    let is_it = |with: &&&str| with.split_once('=').is_some_and(|(name, _)| name == cluster);
    FAMILIES.iter().find(is_it).unwrap_or(&cluster)
}

#[cfg(test)]
mod tests;
