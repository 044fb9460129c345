//! The keeper: one small process per fleet that owns all of the fleet's processes.
//!
//! Statics are never dropped, a parent-death signal follows the thread that spawned, and an owner may be
//! killed: so processes are not children of the program that starts them but of a keeper, which
//!
//! * holds one end of a pipe to its owner and stops everything when the pipe closes, which the kernel does for
//!   an owner that dies for any reason (a detached keeper continues without an owner);
//! * takes its processes along when it is itself killed (`isolation`);
//! * serves requests on the socket `keeper.sock` in the fleet's directory.
//!
//! A keeper is the running program itself under another first argument. A program whose `main` begins with
//! [`intercept`] can become one; for others (test binaries) the program `fleet` is found
//! or built.

mod client;
mod identity;
mod isolation;
mod launch;
pub(crate) mod machine;
mod protocol;
mod serve;
mod table;

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::atomic::{AtomicBool, Ordering},
};

pub use self::protocol::{Exit, ProcessSpec, ProcessState, Refusal, Signal, Stage};
pub(crate) use self::{
    client::Client,
    identity::is_alive,
    isolation::OWN_EXECUTABLE,
    launch::{Leftovers, Pipe, launch},
};
pub use client::Error as ClientError;
use isolation::Isolation;
pub use launch::Error as LaunchError;

/// First argument of the process that prepares the isolation and starts the keeper.
const START: &str = "__keeper-start";
/// First argument of the keeper, followed by the kind of isolation, the directory and what it removes at last.
const RUN: &str = "__keeper-run";
/// What `ps` shows.
const NAME: &str = "fleet";
const NAMESPACE: &str = "namespace";
const DEATH_SIGNAL: &str = "death-signal";

static CAN_BECOME_KEEPER: AtomicBool = AtomicBool::new(false);

/// To be the first statement of `main` in a program that can become a keeper, before any thread is started.
/// `Some` is the end of the program: it was started as a keeper or as a keeper's child.
pub fn intercept() -> Option<ExitCode> {
    CAN_BECOME_KEEPER.store(true, Ordering::Relaxed);
    let mut args = env::args_os().skip(1);
    let first = args.next()?;
    let done = match first.to_str()? {
        isolation::CHILD => isolation::become_program(args).map(|never| match never {}),
        START => start(args.collect()),
        RUN => run(args),
        machine::SWITCH => machine::be_switch(),
        machine::MACHINE => machine::be_machine(args),
        machine::ENTER => machine::enter(args).map(|never| match never {}),
        _ => return None,
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            // What shells use for a command that cannot be run.
            ExitCode::from(127)
        }
    })
}

/// Only the *next* child of a process that unshares its PID namespace is in the new one: so the keeper is a
/// child of this process, which then ends, so that init adopts the keeper.
fn start(args: Vec<OsString>) -> io::Result<()> {
    // Ctrl-C at the terminal ends the owner alone.
    nix::unistd::setsid()?;
    let isolation = if Isolation::unshare() { NAMESPACE } else { DEATH_SIGNAL };
    Command::new(isolation::OWN_EXECUTABLE).arg0(NAME).arg(RUN).arg(isolation).args(args).spawn()?;
    Ok(())
}

fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let isolation = match args.next() {
        Some(kind) if kind == NAMESPACE => Isolation::enter_namespace()?,
        _ => Isolation::DeathSignal,
    };
    // Started by way of /proc/self/exe, it would be called `exe`.
    nix::sys::prctl::set_name(c"fleet-keeper")?;
    let dir = PathBuf::from(args.next().ok_or_else(|| io::Error::other("no directory"))?);
    let leftovers = args.next().ok_or_else(|| io::Error::other("the list of what to remove is missing"))?;
    let leftovers = serde_json::from_slice(leftovers.as_encoded_bytes())?;
    // One thread: see `isolation`.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serve::run(dir, isolation, leftovers))
}
