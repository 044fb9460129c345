//! The leader daemon.

use std::process::ExitCode;

fn main() -> ExitCode {
    kit::boot::main(api::label::LEADER, |args: &leader::Args| &args.common, |_, env| leader::run(env))
}
