//! The command line of `freeport leave`.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::{duration::duration, reaching::LoginArgs};
use crate::{Departure, Error, LeaveOptions};

#[derive(ClapArgs, Debug)]
pub(super) struct LeaveArgs {
    /// Do without the leader; with --cluster-id, run at the leader.
    #[arg(long)]
    force: bool,
    /// ID of the member to remove at the leader.
    #[arg(long, value_name = "ID", requires_all = ["force", "clusterset"], conflicts_with = "context")]
    cluster_id: Option<String>,
    /// Remove it even if its daemon is running.
    #[arg(long, requires = "cluster_id")]
    even_if_alive: bool,
    /// Name of the ClusterSet it is removed from.
    #[arg(long, value_name = "NAME", requires = "cluster_id")]
    clusterset: Option<String>,
    /// Kubeconfig of the cluster that leaves [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of that cluster [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Kubeconfig of the leader's cluster [default: as --kubeconfig].
    #[arg(long, value_name = "FILE")]
    leader_kubeconfig: Option<PathBuf>,
    /// Context of the leader's cluster [default: the current one].
    #[arg(long, value_name = "NAME")]
    leader_context: Option<String>,
    #[command(flatten)]
    login: LoginArgs,
    /// Limit of each wait without progress.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Print what would be deleted or changed; nothing is written.
    #[arg(long)]
    dry_run: bool,
}

impl TryFrom<LeaveArgs> for LeaveOptions {
    type Error = Error;

    fn try_from(args: LeaveArgs) -> Result<Self, Error> {
        let leader = (args.leader_kubeconfig.is_some() || args.leader_context.is_some()).then(|| {
            let file = args.leader_kubeconfig.or_else(|| args.kubeconfig.clone());
            args.login.context(file, args.leader_context)
        });
        let cluster = args.login.context(args.kubeconfig, args.context);
        let departure = match (args.force, args.cluster_id.zip(args.clusterset), leader) {
            (_, Some((cluster_id, cluster_set)), Some(leader)) => {
                Departure::Remove { leader, cluster_set, cluster_id, even_if_alive: args.even_if_alive }
            }
            (_, Some(_), None) => {
                return Err(Error::Argument(
                    "--cluster-id: say where the leader is, with --leader-context or --leader-kubeconfig"
                        .into(),
                ));
            }
            (true, None, Some(_)) => {
                return Err(Error::Argument(
                    "--force leaves without the leader: leave --leader-context and --leader-kubeconfig out, or name the \
                     member to remove there with --cluster-id"
                        .into(),
                ));
            }
            (true, None, None) => Departure::Force { cluster },
            (false, None, leader) => Departure::Withdraw { cluster, leader },
        };
        Ok(Self { departure, timeout: args.timeout, dry_run: args.dry_run })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        leave: LeaveArgs,
    }

    fn departure(line: &str) -> Result<Departure, String> {
        let words = ["leave"].into_iter().chain(line.split_whitespace());
        let args = Line::try_parse_from(words).map_err(|error| error.to_string())?.leave;
        LeaveOptions::try_from(args).map(|options| options.departure).map_err(|error| error.to_string())
    }

    #[test]
    fn each_manner_of_leaving_has_its_line() {
        let Ok(Departure::Withdraw { leader: None, .. }) = departure("") else { panic!() };
        let Ok(Departure::Withdraw { leader: Some(leader), .. }) =
            departure("--kubeconfig all --leader-context hub")
        else {
            panic!()
        };
        assert_eq!(leader.to_string(), "context \"hub\" of all");
        let Ok(Departure::Force { cluster }) = departure("--force --context east") else { panic!() };
        assert_eq!(cluster.name.as_deref(), Some("east"));
        let Ok(Departure::Remove { cluster_set, cluster_id, .. }) =
            departure("--force --clusterset demo --cluster-id east --leader-context hub")
        else {
            panic!()
        };
        assert_eq!((&cluster_set[..], &cluster_id[..]), ("demo", "east"));
    }

    #[test]
    fn half_a_removal_is_none() {
        for line in [
            "--cluster-id east --clusterset demo --leader-context hub",
            "--force --cluster-id east --leader-context hub",
            "--force --clusterset demo",
            "--force --cluster-id east --clusterset demo",
            "--force --leader-context hub",
            "--force --cluster-id east --clusterset demo --leader-context hub --context east",
        ] {
            assert!(departure(line).is_err(), "{line}");
        }
    }
}
