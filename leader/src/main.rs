//! The leader daemon.

use std::process::ExitCode;

fn main() -> ExitCode {
    kit::boot::main(
        api::label::LEADER,
        |args: &leader::Args| &args.daemon,
        |args, env| leader::run(env, args),
    )
}
