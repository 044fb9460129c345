//! What happens in a run, and when: the same for the same seed. Pure.

pub mod deed;
pub mod disorder;

use std::{fmt, time::Duration};

use self::{
    deed::{Deed, What, deeds, renewals},
    disorder::{Disorder, of_links, of_planes, of_processes},
};
use super::places::{LEADER, Places};
use sim::random::Random;

/// Things that happen one after the other; lanes happen beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Users,
    Namespaces,
    Processes,
    Links,
    Planes,
}

impl Lane {
    pub const ALL: [Self; 5] = [Self::Users, Self::Namespaces, Self::Processes, Self::Links, Self::Planes];
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Happens {
    Deed(Deed),
    Disorder(Disorder),
}

impl Happens {
    /// What kind of thing it is.
    pub fn kind(&self) -> String {
        let first = |text: String| text.split([' ', '(']).next().unwrap_or_default().to_owned();
        match self {
            Self::Deed(Deed { what: What::DeleteMade(made), .. }) => format!("Delete{made:?}"),
            Self::Deed(Deed { what: What::Edit(made), .. }) => format!("Edit{made:?}"),
            Self::Deed(deed) => first(format!("{:?}", deed.what)),
            Self::Disorder(Disorder::Link { side, fault, .. }) => format!("{side:?}{fault:?}"),
            Self::Disorder(Disorder::Restored { cluster, .. }) if *cluster != LEADER => {
                "RestoredMember".to_owned()
            }
            Self::Disorder(disorder) => first(format!("{disorder:?}")),
        }
    }
}

impl fmt::Display for Happens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deed(deed) => write!(f, "{deed}"),
            Self::Disorder(disorder) => write!(f, "{disorder:?}"),
        }
    }
}

/// When it happens: not before so long after the start, and when what is before it in its lane is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub at: Duration,
    pub lane: Lane,
    pub happens: Happens,
}

/// A step of a plan that was carried out.
#[derive(Clone, Debug)]
pub struct Happened {
    /// Since the first step could begin.
    pub began: Duration,
    pub ended: Duration,
    pub what: Happens,
    /// Why it was not done.
    pub failed: Option<String>,
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { began, ended, what, failed } = self;
        let failed = failed.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        write!(f, "{:.2} to {:.2} s: {what}{failed}", began.as_secs_f64(), ended.as_secs_f64())
    }
}

/// All that happens, in the order of time.
pub fn plan(seed: u64, lasts: Duration, places: &Places) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, lane) in (1..).zip(Lane::ALL) {
        // What happens in one lane does not depend on what happens in another.
        let mut random = Random::new(seed ^ u64::wrapping_mul(number, 0xD6E8_FEB8_6659_FD93));
        let of_lane: Vec<(Duration, Happens)> = match lane {
            Lane::Users => all(deeds(&mut random, lasts, places), Happens::Deed),
            Lane::Namespaces => all(renewals(&mut random, lasts, places), Happens::Deed),
            Lane::Processes => all(of_processes(&mut random, lasts, places), Happens::Disorder),
            Lane::Links => all(of_links(&mut random, lasts, places), Happens::Disorder),
            Lane::Planes => all(of_planes(&mut random, lasts, places), Happens::Disorder),
        };
        steps.extend(of_lane.into_iter().map(|(at, happens)| Step { at, lane, happens }));
    }
    steps.sort_by_key(|step| step.at);
    steps
}

fn all<T>(timed: Vec<(Duration, T)>, happens: fn(T) -> Happens) -> Vec<(Duration, Happens)> {
    timed.into_iter().map(|(at, what)| (at, happens(what))).collect()
}

/// Points in time, so far apart, until the end.
pub(crate) fn times(random: &mut Random, lasts: Duration, apart: (u64, u64)) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut at = millis(random, apart);
    while at < lasts {
        times.push(at);
        at += millis(random, apart);
    }
    times
}

/// A time between these, in milliseconds.
pub(crate) fn millis(random: &mut Random, (least, most): (u64, u64)) -> Duration {
    let more = random.below(usize::try_from(most - least).unwrap_or(usize::MAX));
    Duration::from_millis(least + more as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::chaos::places::ANCHORS;

    const TIME: Duration = Duration::from_secs(120);

    fn planned(seed: u64) -> Vec<Step> {
        plan(seed, TIME, &Places::new("chaos"))
    }

    #[test]
    fn the_same_seed_gives_the_same_and_another_one_something_else() {
        assert_eq!(planned(7), planned(7));
        assert_ne!(planned(7), planned(8));
        assert!(planned(7).is_sorted_by_key(|step| step.at));
    }

    #[test]
    fn every_lane_has_something_to_do_and_no_end_is_far() {
        for seed in 0..50 {
            let steps = planned(seed);
            for lane in Lane::ALL {
                assert!(steps.iter().any(|step| step.lane == lane), "{seed}: {lane:?}");
            }
            assert!(steps.iter().all(|step| step.at < TIME));
        }
    }

    #[test]
    fn all_kinds_of_deeds_and_disorders_come_up() {
        let steps: Vec<_> = (0..20).flat_map(planned).collect();
        let kinds = |is_deed: bool| -> BTreeSet<_> {
            let of = steps.iter().filter(|step| matches!(step.happens, Happens::Deed(_)) == is_deed);
            of.map(|step| step.happens.kind()).collect()
        };
        // Links of members lead to two clusters.
        assert_eq!(
            (kinds(true).len(), kinds(false).len()),
            (13, 8 + 20),
            "{:?} {:?}",
            kinds(true),
            kinds(false)
        );
    }

    /// What the watch takes for granted.
    #[test]
    fn anchors_are_never_taken_back_and_never_without_endpoints() {
        let places = Places::new("chaos");
        for step in (0..50).flat_map(planned) {
            let Happens::Deed(Deed { place, what }) = step.happens else { continue };
            let Some(anchor) = ANCHORS.iter().find(|anchor| anchor.service == place.service) else {
                continue;
            };
            assert_eq!(place.namespace, places.anchors());
            let is_of_its_own = anchor.always.contains(&place.cluster);
            match what {
                deed::What::Endpoints(addresses) => assert!(!addresses.is_empty()),
                deed::What::Export(_) | deed::What::Unexport => assert!(!is_of_its_own),
                deed::What::AnotherSlice(_) | deed::What::DropSlice => {}
                other => panic!("{other:?} of {place}"),
            }
        }
    }
}
