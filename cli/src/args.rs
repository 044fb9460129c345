//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

mod leaving;

use self::leaving::LeaveArgs;
use crate::{Error, InitOptions, Installed, JoinOptions, KubeContext, init, join, leave};

/// Sets up ClusterSets, so that a Service exported in one cluster can be used in all of them.
#[derive(Parser, Debug)]
#[command(name = "freeport", version)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a cluster the leader of a ClusterSet, and by default its first member.
    ///
    /// Installs CRDs, the leader's rights, the Common Area (Namespace clusterset-NAME) and the ClusterSet in it. Run
    /// again, it changes only what differs.
    Init(InitArgs),
    /// Make a cluster a member of a ClusterSet that `freeport init` has set up.
    ///
    /// On the leader: a ServiceAccount with a Role in the Common Area and a token. In the member: CRDs, the member's
    /// rights, a Secret with that token, and the ClusterSet. Run again, it changes only what differs.
    Join(JoinArgs),
    /// End a cluster's membership in its ClusterSet.
    ///
    /// Run in the cluster that leaves: its member withdraws its exports and removes its imports, then its ClusterSet and
    /// credential are deleted. With --force: without the leader. With --force --cluster-id, run at the leader: a member
    /// that will not return is removed there. Run again, it does what is left to do.
    Leave(LeaveArgs),
}

#[derive(ClapArgs, Debug)]
struct InitArgs {
    /// ID of this cluster in the set: a DNS label, or two with a dot between.
    #[arg(long, value_name = "ID")]
    cluster_id: String,
    /// Only lead: do not make this cluster a member as well.
    #[arg(long)]
    dedicated: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(ClapArgs, Debug)]
struct JoinArgs {
    /// ID of this cluster, unique in the set: a DNS label, or two with a dot between.
    #[arg(long, value_name = "ID")]
    cluster_id: String,
    #[command(flatten)]
    leader: Leader,
    #[command(flatten)]
    common: Common,
}

#[derive(ClapArgs, Debug)]
#[group(required = true, multiple = true)]
struct Leader {
    /// Kubeconfig that reaches the leader's cluster [default: that of this cluster].
    #[arg(long, value_name = "FILE")]
    leader_kubeconfig: Option<PathBuf>,
    /// Context of the leader's cluster in its kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    leader_context: Option<String>,
}

#[derive(ClapArgs, Debug)]
struct Common {
    /// Name of the ClusterSet: a DNS label of at most 52 characters.
    #[arg(long, value_name = "NAME")]
    clusterset: String,
    /// Write the daemons' kubeconfigs into this folder; required, since the daemons run outside of the clusters so far.
    #[arg(long, value_name = "DIR")]
    external: PathBuf,
    /// Kubeconfig that reaches this cluster as an administrator [default: KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of this cluster in the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Leader's API server as members reach it, https://HOST:PORT [default: as in the leader's kubeconfig].
    #[arg(long, value_name = "URL")]
    leader_server: Option<String>,
    /// Seconds to wait for CRDs to be served, and for a token.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Print the objects instead of applying them; what the clusters hold is read, nothing is written.
    #[arg(long)]
    dry_run: bool,
    /// Form of what --dry-run prints.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml, requires = "dry_run")]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One YAML document for each object, in the order of applying.
    Yaml,
}

impl From<InitArgs> for InitOptions {
    fn from(args: InitArgs) -> Self {
        let common = args.common;
        Self {
            cluster_set: common.clusterset,
            cluster_id: args.cluster_id,
            dedicated: args.dedicated,
            external: common.external,
            cluster: KubeContext { file: common.kubeconfig, name: common.context },
            leader_server: common.leader_server,
            timeout: Duration::from_secs(common.timeout),
            dry_run: common.dry_run,
        }
    }
}

impl From<JoinArgs> for JoinOptions {
    fn from(args: JoinArgs) -> Self {
        let common = args.common;
        Self {
            cluster_set: common.clusterset,
            cluster_id: args.cluster_id,
            external: common.external,
            leader: KubeContext {
                file: args.leader.leader_kubeconfig.or_else(|| common.kubeconfig.clone()),
                name: args.leader.leader_context,
            },
            cluster: KubeContext { file: common.kubeconfig, name: common.context },
            leader_server: common.leader_server,
            timeout: Duration::from_secs(common.timeout),
            dry_run: common.dry_run,
        }
    }
}

/// Runs the command and prints what it does, line by line.
///
/// # Errors
/// Those of [`init`], [`join`] and [`leave()`].
pub async fn run(args: Args) -> Result<(), Error> {
    let say: &mut (dyn FnMut(&str) + Send) = &mut |line| println!("{line}");
    let installed = match args.command {
        Command::Init(args) => init(&args.into(), say).await?,
        Command::Join(args) => join(&args.into(), say).await?,
        Command::Leave(args) => return leave(&args.try_into()?, say).await,
    };
    next(&installed, say);
    Ok(())
}

/// What to do with the kubeconfigs.
fn next(installed: &Installed, say: &mut (dyn FnMut(&str) + Send)) {
    let daemons = [("freeport-leader", &installed.leader), ("freeport-member", &installed.member)];
    for (daemon, kubeconfig) in daemons {
        if let Some(kubeconfig) = kubeconfig {
            say(&format!("next: {daemon} --kubeconfig {}", kubeconfig.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_leader_is_found_in_the_same_kubeconfig_unless_it_has_its_own() {
        let parse = |more: &[&str]| {
            let line =
                ["freeport", "join", "--clusterset", "demo", "--cluster-id", "east", "--external", "out"];
            Args::try_parse_from(line.iter().chain(more))
        };
        let options = |more: &[&str]| match parse(more).unwrap().command {
            Command::Join(args) => JoinOptions::from(args),
            _ => panic!("join was asked for"),
        };

        assert!(parse(&[]).is_err(), "a join without a leader");
        let one = options(&["--kubeconfig", "all", "--leader-context", "leader"]);
        assert_eq!(one.leader.to_string(), "context \"leader\" of all");
        assert_eq!(one.cluster.to_string(), "current context of all");
        let two = options(&["--kubeconfig", "east", "--leader-kubeconfig", "leader"]);
        assert_eq!(two.leader.to_string(), "current context of leader");
    }
}
