//! The command line of `freeport status`.

use std::io::{ErrorKind, Write};

use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;

use super::{
    Outcome,
    color::marked,
    reaching::{BundleArgs, Where},
};
use crate::{Error, KubeContext, StatusOptions, status};

#[derive(ClapArgs, Debug)]
pub(super) struct StatusArgs {
    /// Look at this ClusterSet only.
    #[arg(long, value_name = "NAME")]
    clusterset: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    bundle: BundleArgs,
    /// Form of the report.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ReportForm {
    /// For people: problems first.
    Text,
    /// For machines, in a shape that stays.
    Json,
}

/// Prints the report; whether all is well.
pub(super) async fn show(args: StatusArgs) -> Result<Outcome, Error> {
    let cluster = KubeContext { bundle: args.bundle.read()?, ..KubeContext::from(args.place) };
    let report = status::status(&StatusOptions { cluster, cluster_set: args.clusterset }).await?;
    shown(&report, args.output, status::text, report.is_well())
}

/// Prints a report; whether all `is_well`.
pub(super) fn shown<R: Serialize>(
    report: &R,
    form: ReportForm,
    text: impl Fn(&R) -> String,
    is_well: bool,
) -> Result<Outcome, Error> {
    match form {
        ReportForm::Text => print_marked(&text(report))?,
        ReportForm::Json => print(&(json(report)? + "\n"))?,
    }
    Ok(if is_well { Outcome::Well } else { Outcome::Problems })
}

/// Prints lines for people, with marks in colours where these are wanted.
pub(super) fn print_marked(text: &str) -> Result<(), Error> {
    to(&mut anstream::stdout(), &marked(text))
}

/// Prints what a program may read.
pub(super) fn print(text: &str) -> Result<(), Error> {
    to(&mut std::io::stdout(), text)
}

/// Prints. The reader may stop early, as `head` does: the work goes on, and the exit code still says how it went.
fn to(stream: &mut impl Write, text: &str) -> Result<(), Error> {
    match stream.write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::File { path: "/dev/stdout".into(), source: error })
        }
        _ => Ok(()),
    }
}

/// What a program reads.
pub(super) fn json<R: Serialize>(report: &R) -> Result<String, Error> {
    serde_json::to_string_pretty(report).map_err(|source| Error::Json { object: "the report".into(), source })
}
