//! `pause`: the process that holds the namespaces of a Pod. It does nothing until it is told to end, except that it
//! takes note of the end of processes that have lost their parent, for Pods whose containers share process ids.

use std::process::ExitCode;

use nix::{
    errno::Errno,
    sys::{
        signal::{SigSet, Signal},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};

fn main() -> ExitCode {
    match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pause: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hold() -> Result<(), Errno> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD]);
    signals.thread_block()?;
    loop {
        match signals.wait()? {
            Signal::SIGCHLD => {
                while waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG))
                    .is_ok_and(|state| state.pid().is_some())
                {}
            }
            _ => return Ok(()),
        }
    }
}
