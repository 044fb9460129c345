//! The command line of `freeport gather`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Outcome, aside, reaching::Several};
use crate::{Error, GatherOptions, gather, printable::printable};

#[derive(ClapArgs, Debug)]
pub(super) struct GatherArgs {
    /// The file to write, as in bundle.tar.gz.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    clusters: Several,
}

/// Writes a bundle, and says on stderr what is in it and what is not.
pub(super) async fn write(args: GatherArgs) -> Result<Outcome, Error> {
    let options = GatherOptions { to: args.to, replace: args.yes, contexts: args.clusters.try_into()? };
    let gathered = Box::pin(gather(&options, &mut |line| aside(&printable(line)))).await?;
    for line in &gathered.missing {
        aside(&format!("missing: {}", printable(line)));
    }
    if gathered.seen == 0 {
        aside("no cluster could be looked at; nothing was written");
        return Ok(Outcome::Unseen);
    }
    let (to, files, cuts) = (options.to.display(), gathered.files, gathered.cuts);
    let cut = match cuts {
        0 => "nothing in them looked like a credential".to_owned(),
        1 => "one credential was cut, see cut.txt in it".to_owned(),
        _ => format!("{cuts} credentials were cut, see cut.txt in it"),
    };
    aside(&format!("wrote {to}: {files} files; {cut}"));
    aside("Of Secrets it has names, keys and sizes. Look through it before you pass it on.");
    Ok(Outcome::Well)
}
