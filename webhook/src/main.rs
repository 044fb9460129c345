//! The webhook.

use std::process::ExitCode;

fn main() -> ExitCode {
    kit::boot::run("freeport-webhook", |args: &webhook::Args| args.process.clone(), webhook::run)
}
