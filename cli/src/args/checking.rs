//! The command line of `freeport check`.

use std::time::Duration;

use clap::Args as ClapArgs;
use picture::code::Code;

use super::{
    Outcome, aside,
    duration::duration,
    reaching::Looked,
    showing::{print, print_marked},
};
use crate::{CheckForm, CheckOptions, Error, check};

#[derive(ClapArgs, Debug)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    clusters: Looked,
    /// Form.
    #[arg(short, long, value_enum, default_value_t = CheckForm::Table)]
    output: CheckForm,
    /// Report these codes alone, as in FP501.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    only: Vec<Code>,
    /// Skip these codes: no problem for you.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    skip: Vec<Code>,
    /// Look again for so long while that may help.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = duration, conflicts_with = "bundle")]
    wait: Duration,
}

/// Prints what is wrong with clusters; whether something is.
pub(super) async fn show(args: CheckArgs) -> Result<Outcome, Error> {
    let CheckArgs { clusters, output, only, skip, wait } = args;
    let options = CheckOptions { contexts: clusters.try_into()?, only, skip, wait };
    let checked = Box::pin(check(&options)).await?;
    let text = checked.text(output)?;
    match output {
        CheckForm::Json => print(&text)?,
        CheckForm::Table | CheckForm::Short => print_marked(&text)?,
    }
    if checked.report.seen == 0 {
        aside("no cluster could be looked at");
    }
    Ok(match (checked.report.seen, checked.report.is_well()) {
        (0, _) => Outcome::Unseen,
        (_, true) => Outcome::Well,
        (_, false) => Outcome::Problems,
    })
}
