//! The command line of `freeport revoke`.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::{Leader, duration::duration, reaching::LoginArgs};
use crate::{Departure, LeaveOptions};

#[derive(ClapArgs, Debug)]
pub(super) struct RevokeArgs {
    #[command(flatten)]
    leader: Leader,
    /// Name of the ClusterSet.
    #[arg(long, value_name = "NAME")]
    clusterset: String,
    /// ID of the member.
    #[arg(long, value_name = "ID")]
    cluster_id: String,
    /// Revoke also if its daemon is running.
    #[arg(long)]
    yes: bool,
    /// Keep its exports until the leader evicts it.
    #[arg(long)]
    keep: bool,
    /// Kubeconfig [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    login: LoginArgs,
    /// Limit of each wait without progress.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Print what would be deleted or changed; nothing is written.
    #[arg(long)]
    dry_run: bool,
}

impl From<RevokeArgs> for LeaveOptions {
    fn from(args: RevokeArgs) -> Self {
        let departure = Departure::Revoke {
            leader: args.leader.context(args.kubeconfig.as_ref(), &args.login),
            cluster_set: args.clusterset,
            cluster_id: args.cluster_id,
            yes: args.yes,
            keep: args.keep,
        };
        Self { departure, timeout: args.timeout, dry_run: args.dry_run }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        revoke: RevokeArgs,
    }

    fn departure(line: &str) -> Option<Departure> {
        let words = ["revoke"].into_iter().chain(line.split_whitespace());
        Some(LeaveOptions::from(Line::try_parse_from(words).ok()?.revoke).departure)
    }

    #[test]
    fn who_is_revoked_where_has_to_be_said() {
        let line = "--clusterset demo --cluster-id east --leader-context hub";
        let Some(Departure::Revoke { leader, cluster_id, yes: false, keep: false, .. }) = departure(line)
        else {
            panic!()
        };
        assert_eq!((leader.name.as_deref(), cluster_id.as_str()), (Some("hub"), "east"));
        let more = departure(&format!("{line} --yes --keep"));
        assert!(matches!(more, Some(Departure::Revoke { yes: true, keep: true, .. })));
        for half in ["--clusterset demo --cluster-id east", "--cluster-id east --leader-context hub"] {
            assert!(departure(half).is_none(), "{half}");
        }
    }
}
