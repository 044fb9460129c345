//! The command line.

use std::{
    io::{ErrorKind, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

mod leaving;

use self::leaving::LeaveArgs;
use crate::{
    Daemons, Error, InitOptions, Installed, JoinOptions, KubeContext, Part, Run, StatusOptions, init, join,
    leave,
    objects::DEFAULT_IMAGE,
    status::{self, Report},
};

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
    /// Show what a cluster leads and belongs to, and what is wrong there. Changes nothing.
    ///
    /// Exits with 0 when all is well, with 1 when there are problems or the cluster cannot be asked.
    Status(StatusArgs),
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
    /// Kubeconfig that reaches this cluster as an administrator [default: KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of this cluster in the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Leader's API server as members reach it, https://HOST:PORT [default: as in the leader's kubeconfig].
    #[arg(long, value_name = "URL")]
    leader_server: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "How it is done")]
struct RunArgs {
    /// Image of the daemons, which run in their clusters as Deployments.
    #[arg(long, value_name = "IMAGE", default_value = DEFAULT_IMAGE, conflicts_with = "external")]
    image: String,
    /// Install no Deployment: the daemon runs elsewhere, with a kubeconfig written into this folder.
    #[arg(long, value_name = "DIR")]
    external: Option<PathBuf>,
    /// Do only these parts.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    only: Vec<Part>,
    /// Do not wait until the daemons are ready.
    #[arg(long)]
    no_wait: bool,
    /// Limit of each wait: for CRDs, for a token, for the daemons.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Print the objects instead of applying them: kubectl apply -f takes them, on a new cluster those of --only crds first.
    #[arg(long)]
    dry_run: bool,
    /// Form of what --dry-run prints.
    #[arg(short, long, value_enum, default_value_t = Output::Yaml, requires = "dry_run", hide_short_help = true)]
    output: Output,
}

impl From<RunArgs> for Run {
    fn from(args: RunArgs) -> Self {
        let daemons = match args.external {
            Some(dir) => Daemons::Outside(dir),
            None => Daemons::Inside { image: args.image },
        };
        Self {
            daemons,
            only: args.only,
            wait: !args.no_wait,
            timeout: Duration::from_secs(args.timeout),
            dry_run: args.dry_run,
        }
    }
}

#[derive(ClapArgs, Debug)]
struct StatusArgs {
    /// Look at this ClusterSet only.
    #[arg(long, value_name = "NAME")]
    clusterset: Option<String>,
    /// Kubeconfig that reaches the cluster [default: KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the cluster in the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Form of the report.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReportForm {
    /// For people: problems first.
    Text,
    /// For machines, in a shape that stays.
    Json,
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
            cluster: KubeContext { file: common.kubeconfig, name: common.context },
            leader_server: common.leader_server,
            run: common.run.into(),
        }
    }
}

impl From<JoinArgs> for JoinOptions {
    fn from(args: JoinArgs) -> Self {
        let common = args.common;
        Self {
            cluster_set: common.clusterset,
            cluster_id: args.cluster_id,
            leader: KubeContext {
                file: args.leader.leader_kubeconfig.or_else(|| common.kubeconfig.clone()),
                name: args.leader.leader_context,
            },
            cluster: KubeContext { file: common.kubeconfig, name: common.context },
            leader_server: common.leader_server,
            run: common.run.into(),
        }
    }
}

/// How a command ended that did what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Well,
    /// It found something that is not.
    Problems,
}

/// The whole program, called `program` in its usage lines and messages.
#[tokio::main(flavor = "current_thread")]
pub async fn start(program: &'static str) -> ExitCode {
    // An error means that a provider is installed already, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let matches = Args::command().name(program).bin_name(program).get_matches();
    let args = match Args::from_arg_matches(&matches) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match run(args).await {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::Problems) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command and prints what it does, line by line.
///
/// # Errors
/// Those of [`init`], [`join`], [`leave()`] and [`status`](status::status).
pub async fn run(args: Args) -> Result<Outcome, Error> {
    let say: &mut (dyn FnMut(&str) + Send) = &mut |line| println!("{line}");
    let installed = match args.command {
        Command::Init(args) => init(&args.into(), say).await?,
        Command::Join(args) => join(&args.into(), say).await?,
        Command::Status(args) => return show(args).await,
        Command::Leave(args) => {
            leave(&args.try_into()?, say).await?;
            return Ok(Outcome::Well);
        }
    };
    next(&installed, say);
    Ok(Outcome::Well)
}

async fn show(args: StatusArgs) -> Result<Outcome, Error> {
    let cluster = KubeContext { file: args.kubeconfig, name: args.context };
    let report = status::status(&StatusOptions { cluster, cluster_set: args.clusterset }).await?;
    let shown = match args.output {
        ReportForm::Text => status::text(&report),
        ReportForm::Json => json(&report)? + "\n",
    };
    match std::io::stdout().write_all(shown.as_bytes()) {
        // Whoever reads may stop early, as `head` does; the exit code still tells.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Error::File { path: "/dev/stdout".into(), source: error });
        }
        _ => {}
    }
    Ok(if report.is_well() { Outcome::Well } else { Outcome::Problems })
}

fn json(report: &Report) -> Result<String, Error> {
    serde_json::to_string_pretty(report).map_err(|source| Error::Json { object: "the report".into(), source })
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
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_plugin_of_kubectl_says_how_it_is_called() {
        let mut command = Args::command().name("kubectl freeport").bin_name("kubectl freeport");
        let usage = command.render_usage().to_string();
        assert!(usage.starts_with("Usage: kubectl freeport "), "{usage}");
        let error = command.try_get_matches_from(["kubectl-freeport", "status", "--no-such"]).unwrap_err();
        assert!(error.to_string().contains("Usage: kubectl freeport status "), "{error}");
        assert_eq!(error.exit_code(), 2);
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
