//! Hunts for seeds whose chaos run fails on the simulated ground.

mod args;
mod report;

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use clap::Parser;
use e2e::chaos::{hunt::Attempt, shrink::shrink};

use self::{args::Args, report::Sum};

/// Tries of a shrink.
const TRIES: usize = 300;

fn main() -> ExitCode {
    let args = Args::parse();
    // A trial that fails says why; the hunt shows it.
    std::panic::set_hook(Box::new(|_| {}));
    let failed = match args.seed {
        Some(seed) => repeat(&args, seed),
        None => hunt(&args),
    };
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs many seeds; whether one failed.
fn hunt(args: &Args) -> bool {
    let (begun, seeds) = (Instant::now(), args.seeds());
    let (next, sum) = (AtomicU64::new(seeds.start), Mutex::new(Sum::default()));
    let work = || {
        while args.minutes.is_none_or(|minutes| begun.elapsed().as_secs_f64() < minutes * 60.0) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            let report = args.attempt(seed).run(false);
            if let Some(failure) = &report.failure {
                println!("seed {seed}: {}\n    {}", failure.line(), args.command(seed));
            }
            sum.lock().unwrap_or_else(PoisonError::into_inner).add(report);
        }
    };
    std::thread::scope(|scope| (0..args.threads()).for_each(|_| drop(scope.spawn(work))));
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", sum.said(begun.elapsed()));
    sum.failed > 0
}

/// Runs one seed, and shows all of it; whether it failed.
fn repeat(args: &Args, seed: u64) -> bool {
    let attempt = args.attempt(seed);
    let report = attempt.run(true);
    let kept = report::keep(seed, &report);
    let Some(failure) = report.failure else {
        println!("seed {seed} passed; its logs are in {}", kept.display());
        return false;
    };
    println!("{}\n\nlogs: {}", failure.0, kept.display());
    if args.shrink {
        show_few(args, &attempt, failure.verdict());
    }
    true
}

/// Shows few steps that fail in the same way.
fn show_few(args: &Args, attempt: &Attempt, verdict: &str) {
    let numbers: Vec<_> = attempt.steps().into_iter().map(|(number, _)| number).collect();
    let with = |only: &[usize]| Attempt { only: Some(only.to_vec()), ..attempt.clone() };
    let few = shrink(&numbers, TRIES, |some| {
        with(some).run(false).failure.is_some_and(|failure| failure.verdict() == verdict)
    });
    println!("\n{} of {} steps fail in the same way ({verdict}):", few.len(), numbers.len());
    for (number, step) in with(&few).steps() {
        println!("    {number:>4} at {:7.3} s: {}", step.at.as_secs_f64(), step.happens);
    }
    let few: Vec<_> = few.iter().map(ToString::to_string).collect();
    println!("    {} --only {}", args.command(attempt.seed), few.join(","));
}
