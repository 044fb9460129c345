//! Each planted defect is found, and what is found has its name. Other plans, invariants and latencies may need other seeds:
//! `hunt --seconds 10 --planted NAME --seeds 0..200` finds them.

use super::*;

/// Short, so that the gate is quick.
const LASTS: Duration = Duration::from_secs(10);

fn finds(planted: Defect, seed: u64, verdict: &str) {
    let attempt = Attempt { seed, lasts: LASTS, only: None, planted: Some(planted) };
    match attempt.run(false).failure {
        Some(failure) => assert!(failure.verdict().starts_with(verdict), "{}", failure.0),
        None => panic!("{planted:?} was not found by seed {seed}"),
    }
}

#[test]
fn a_change_that_is_lost_is_found() {
    finds(Defect::LostEvent, 7, "oracle");
}

#[test]
fn an_absence_that_nobody_confirmed_is_found() {
    finds(Defect::SkippedVouch, 0, "invariant");
}

#[test]
fn an_absence_that_one_renewal_confirms_is_found() {
    finds(Defect::OneRenewal, 50, "invariant");
}

#[test]
fn an_import_that_goes_with_one_exporter_is_found() {
    finds(Defect::WrongDelete, 13, "invariant");
}

#[test]
fn endpoints_that_have_gone_are_found() {
    finds(Defect::StaleEndpoint, 4, "oracle");
}

#[test]
fn a_condition_that_is_not_true_is_found() {
    finds(Defect::EarlyReady, 0, "invariant ready");
}

#[test]
fn without_a_defect_the_same_seed_passes() {
    let attempt = Attempt { seed: 15, lasts: LASTS, only: None, planted: None };
    assert_eq!(attempt.run(false).failure.map(|failure| failure.0), None);
}
