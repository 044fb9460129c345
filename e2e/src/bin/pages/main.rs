//! Writes what docs say of rules, tests and messages, or with `--check` fails when it differs: `docs/conformance.md`, `docs/messages.md`,
//! `docs/troubleshooting.md`, and the numbers of tests in `docs/testing.md`.
//!
//! | module | holds |
//! |---|---|
//! | `rules` | the rules of the Multi-Cluster Services API, and the standing of those without a test |
//! | `tests` | the tests of the workspace |
//! | `conformance` | the page of rules and of the tests that name them: `fn r7_...`, `fn r37_r39_...` |
//! | `messages` | the page of all messages that users read |
//! | `numbers` | how many whole-system tests there are, and how many of them the gate has |
//!
//! A new test needs no change here: it is found by its attribute.

mod conformance;
mod messages;
mod numbers;
mod rules;
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;

/// Writes which rule of the Multi-Cluster Services API is held by which test, how many tests there are, all messages, and what `freeport why` finds.
#[derive(Parser)]
struct Args {
    /// Write nothing; fail if a page differs from what would be written.
    #[arg(long)]
    check: bool,
    /// Folder of the workspace.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    workspace: PathBuf,
}

/// Why there are no pages, or not these.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Rules, tests and the gate do not fit.
    #[error("{}", .0.join("\n"))]
    Misfits(Vec<String>),
    /// A page differs, with `--check`.
    #[error("{0} is out of date; run `cargo run -p e2e --bin pages`")]
    Differs(&'static str),
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args.workspace, args.check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pages: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(workspace: &Path, check: bool) -> Result<(), Error> {
    let tests = tests::find(workspace).map_err(|(path, source)| Error::File { path, source })?;
    let naming: Vec<_> = tests.iter().filter(|test| !test.rules().is_empty()).collect();
    let misfits = [conformance::misfits(rules::RULES, &naming), numbers::misfits(&tests)].concat();
    if !misfits.is_empty() {
        return Err(Error::Misfits(misfits));
    }
    update(workspace, "docs/conformance.md", check, |_| conformance::page(rules::RULES, &naming))?;
    let sources = messages::find(workspace).map_err(|(path, source)| Error::File { path, source })?;
    update(workspace, "docs/messages.md", check, |_| messages::page(&sources))?;
    update(workspace, "docs/troubleshooting.md", check, |_| picture::code::page())?;
    update(workspace, "docs/testing.md", check, |page| numbers::put_into(page, &tests))
}

fn update(
    workspace: &Path,
    name: &'static str,
    check: bool,
    made: impl FnOnce(&str) -> String,
) -> Result<(), Error> {
    let path = workspace.join(name);
    let there = fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    let page = made(&there);
    match there == page {
        true => Ok(()),
        false if check => Err(Error::Differs(name)),
        false => fs::write(&path, page).map_err(|source| Error::File { path, source }),
    }
}

#[test]
fn pages_are_current() {
    let done = run(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), true);
    assert!(done.is_ok(), "{}", done.unwrap_err());
}
