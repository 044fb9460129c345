//! `freeport`: see [`cli::args`].

fn main() -> std::process::ExitCode {
    cli::args::start("freeport")
}
