//! Tests of the whole on clusters without nodes. One program, so that tests that wait do so side by side: the harness starts all
//! of them at once, and how many run is decided by what they share (`e2e::shared`, `e2e::fixture`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::process::ExitCode;

mod areas;
mod bind;
mod cli;
mod model;
mod rights;
mod set;

fn main() -> ExitCode {
    e2e::harness::main()
}
