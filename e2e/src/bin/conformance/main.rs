//! Writes `docs/conformance.md`, or with `--check` fails when it differs from what rules and tests say.
//!
//! | module | holds |
//! |---|---|
//! | `rules` | the rules of the Multi-Cluster Services API, and the standing of those without a test |
//! | `tests` | the tests of the workspace that name rules: `fn r7_...`, `fn r37_r39_...` |
//! | `page` | the page, made of both |
//!
//! A new test needs no change here: it is found by its name.

mod page;
mod rules;
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;

/// Writes which rule of the Multi-Cluster Services API is held by which test.
#[derive(Parser)]
struct Args {
    /// Write nothing; fail if the page differs from what would be written.
    #[arg(long)]
    check: bool,
    /// Folder of the workspace.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    workspace: PathBuf,
}

/// Why there is no page, or not this one.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Rules and tests do not fit.
    #[error("{}", .0.join("\n"))]
    Misfits(Vec<String>),
    /// The page differs, with `--check`.
    #[error("docs/conformance.md is out of date; run `cargo run -p e2e --bin conformance`")]
    Differs,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args.workspace, args.check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(workspace: &Path, check: bool) -> Result<(), Error> {
    let tests = tests::find(workspace).map_err(|(path, source)| Error::File { path, source })?;
    let misfits = page::misfits(rules::RULES, &tests);
    if !misfits.is_empty() {
        return Err(Error::Misfits(misfits));
    }
    let (path, page) = (workspace.join("docs/conformance.md"), page::page(rules::RULES, &tests));
    if !check {
        return std::fs::write(&path, page).map_err(|source| Error::File { path, source });
    }
    let there = std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
    if there == page { Ok(()) } else { Err(Error::Differs) }
}
