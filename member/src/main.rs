//! The member daemon.

use std::process::ExitCode;

fn main() -> ExitCode {
    kit::boot::main(api::label::MEMBER, |args: &member::Args| &args.daemon, member::run)
}
