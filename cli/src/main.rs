//! `freeport`: see [`cli::args`].

use std::process::ExitCode;

use clap::Parser;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    // An error means that a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    match cli::args::run(cli::args::Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("freeport: {error}");
            ExitCode::FAILURE
        }
    }
}
