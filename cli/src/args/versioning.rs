//! The command line of `freeport version`.

use clap::{Args as ClapArgs, ValueEnum};

use super::{
    Outcome, aside,
    reaching::Looked,
    showing::{json, print},
};
use crate::{Error, VersionOptions, printable::printable, version};

#[derive(ClapArgs, Debug)]
pub(super) struct VersionArgs {
    /// Print the version of this program alone, and ask no cluster.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    clusters: Looked,
    /// Form.
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = Form::Text, hide_default_value = true)]
    output: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// For machines, in a shape that stays.
    Json,
}

/// Prints versions; on stderr, what was not looked at.
pub(super) async fn show(args: VersionArgs) -> Result<Outcome, Error> {
    let contexts = if args.client { vec![] } else { args.clusters.try_into()? };
    let versions = Box::pin(version(&VersionOptions { contexts })).await?;
    match args.output {
        Form::Text => print(&versions.text())?,
        Form::Json => print(&(json(&versions)? + "\n"))?,
    }
    for line in &versions.not_looked_at {
        aside(&format!("note: {}", printable(line)));
    }
    Ok(Outcome::Well)
}
