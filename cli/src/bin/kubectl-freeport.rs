//! `kubectl freeport`: the same as `freeport`, found by kubectl on the PATH.

fn main() -> std::process::ExitCode {
    cli::args::start("kubectl freeport")
}
