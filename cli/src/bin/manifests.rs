//! Writes `manifests/`, or with `--check` fails when it differs from what the code says.

use std::path::PathBuf;

use clap::Parser;
use cli::manifests;

/// Writes the YAML of everything Freeport installs.
#[derive(Parser)]
struct Args {
    /// Write nothing; fail if a file differs from what would be written.
    #[arg(long)]
    check: bool,
    /// Folder of the files.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests"))]
    dir: PathBuf,
}

fn main() -> std::process::ExitCode {
    let args = Args::parse();
    let done = if args.check { manifests::check(&args.dir) } else { manifests::write(&args.dir) };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("manifests: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}
