//! `fleet`: real Kubernetes control planes on this machine. See the library's documentation.

use std::process::ExitCode;

use clap::Parser;
use fleet::{command::Command, keeper};

fn main() -> ExitCode {
    // Before any thread is started: this program may have been started as a keeper.
    if let Some(ended) = keeper::intercept() {
        return ended;
    }
    let command = Command::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    runtime.block_on(command.run()).unwrap_or_else(|error| failed(&error))
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}
