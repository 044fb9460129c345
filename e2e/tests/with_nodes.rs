//! Tests of the whole on clusters with nodes, on which Pods run. They need root and some packages, and say so where they have not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::process::ExitCode;

mod nodes;
mod pods;

fn main() -> ExitCode {
    e2e::harness::main()
}
