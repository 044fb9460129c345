//! The command line.

mod binding;
mod checking;
mod color;
mod completing;
mod duration;
mod explaining;
mod exporting;
mod gathering;
mod getting;
mod installing;
mod leaving;
mod naming;
mod offloading;
mod planning;
mod reaching;
mod rejoining;
mod revoking;
mod showing;
mod versioning;

use std::{io::Write, process::ExitCode};

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};

use self::{
    binding::BindArgs,
    checking::CheckArgs,
    completing::CompletionArgs,
    explaining::{ExplainArgs, WhyArgs},
    exporting::{ExportArgs, UnexportArgs},
    gathering::GatherArgs,
    getting::GetArgs,
    installing::{InitArgs, JoinArgs, Leader},
    leaving::LeaveArgs,
    naming::DnsArgs,
    offloading::{OffloadArgs, UnoffloadArgs},
    planning::PlanArgs,
    rejoining::RejoinArgs,
    revoking::RevokeArgs,
    showing::StatusArgs,
    versioning::VersionArgs,
};
use crate::{Error, dns, init, join, leave, printable::printable, rejoin};

/// Sets up ClusterSets, so that a Service exported in one cluster can be used in all of them.
#[derive(Parser, Debug)]
#[command(name = "freeport", version, after_long_help = EXIT_CODES)]
pub struct Args {
    /// Colours of marks; without a terminal, with NO_COLOR and TERM=dumb none.
    #[arg(long, value_name = "WHEN", default_value_t, global = true, hide_short_help = true)]
    color: ColorChoice,
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
    /// On the leader: a ServiceAccount with a Role in the Common Area. In the member: CRDs, the member's rights, a Secret
    /// with a token of that account, which the member replaces, and the ClusterSet. Run again, it changes only what differs.
    Join(JoinArgs),
    /// Give members of a ClusterSet another leader; their imports stay.
    ///
    /// Also the same leader, where its cluster was emptied. Run `freeport init` in the new leader's cluster first. On the leader: access to the Common Area, as for `freeport join`. In each
    /// member: the credential, and the leader in its ClusterSet. Its daemon goes on. Run again, it changes only what differs.
    Rejoin(RejoinArgs),
    /// Show what a cluster leads and belongs to, and what is wrong there. Changes nothing.
    ///
    /// Exits with 0 if there are no problems, with 1 if there are some, with 3 if the cluster does not answer.
    Status(StatusArgs),
    /// List what several clusters export and import. Changes nothing.
    ///
    /// What could not be looked at is said on stderr, and the rest is listed. Exits with 0, or with 3 if no cluster could be looked at.
    Get(GetArgs),
    /// Find out why a Service of another cluster cannot be used. Changes nothing.
    ///
    /// Looks at several clusters at once, and walks from those that export the Service to the one that imports it: set, export, record,
    /// merge, import, endpoints, dns. Names the first step that is broken by a code, and a command to try. Packets are not tried. Exits with 0 if
    /// nothing was found, with 1 if something is broken or degraded, with 3 if no cluster could be looked at.
    Why(WhyArgs),
    /// Find out what is wrong with clusters and the ClusterSet that they are. Changes nothing.
    ///
    /// Looks at several clusters at once: API servers, CRDs, daemons, links with the leader, exports, imports, CoreDNS; and whether IDs and
    /// addresses differ. One cause gives one FAILED line, with a code and a command to try; what follows from it is skipped. Exits with 0
    /// if nothing is FAILED, with 1 if something is, with 3 if no cluster could be looked at.
    Check(CheckArgs),
    /// Export Services to the whole ClusterSet.
    ///
    /// Shows what the exports do, as `freeport plan` does, creates the ServiceExports in the first of the clusters, and waits until the others
    /// that are looked at import the Services. Run again, it changes only what differs.
    Export(ExportArgs),
    /// End exports of Services.
    ///
    /// Shows what that does, and asks if an import loses its last endpoint, or that is not known. Without a terminal that needs --yes.
    Unexport(UnexportArgs),
    /// Predict what a change of exports does in the whole ClusterSet. Changes nothing.
    ///
    /// From ServiceExports and Services in files, or the end of an export, and from what the clusters hold, by the rules of the leader and the
    /// members: each Service as it will be, conditions of its exports, endpoints before and after, writes. Exits with 0 if nothing is wrong,
    /// with 1 on a conflict, a refusal or an import that loses its last endpoint, with 3 if the cluster of the change could not be read.
    Plan(PlanArgs),
    /// Explain a code that `freeport why` or `freeport check` names. Asks no cluster.
    Explain(ExplainArgs),
    /// Write what a report of a problem needs into one file. Changes nothing.
    ///
    /// Objects of Freeport and those they stand for, Events, logs and metrics of the daemons, versions. `freeport status`, `get`, `check` and `why`
    /// answer from that file with --bundle. What looks like a credential is cut. Exits with 0, or with 3 if no cluster could be looked at.
    Gather(GatherArgs),
    /// Show versions: of this program and of what clusters have. Changes nothing.
    ///
    /// Exits with 0 also if no cluster answers.
    Version(VersionArgs),
    /// Print the script with which a shell completes command lines.
    ///
    /// It offers contexts of the kubeconfig, and Namespaces, Services and cluster IDs of the current context's cluster if that answers within 300 ms.
    /// bash: source <(freeport completion bash). fish: freeport completion fish | source.
    Completion(CompletionArgs),
    /// End a cluster's membership in its ClusterSet.
    ///
    /// Run in the cluster that leaves: its member withdraws its exports and removes its imports, then its ClusterSet and
    /// credential are deleted. With --force: without the leader. With --force --cluster-id, run at the leader: a member
    /// that will not return is removed there. Run again, it continues.
    Leave(LeaveArgs),
    /// Revoke a member's access to its ClusterSet, at the leader.
    ///
    /// Whether it runs or not: its tokens are refused within ten seconds, and its exports are withdrawn in its place. It keeps what it imported.
    /// Run again, it continues; `freeport join` brings the member back.
    Revoke(RevokeArgs),
    /// Give the Services of the set names in CoreDNS: SERVICE.NAMESPACE.svc.clusterset.local.
    ///
    /// Shows what CoreDNS needs: a server block in its Corefile, and the right to watch ServiceImports. With --apply it
    /// makes both changes and restarts CoreDNS. --remove undoes them, byte for byte. Run again, it changes only what differs.
    Dns(DnsArgs),
    /// Give Namespaces twins in other clusters, and let Pods run there.
    ///
    /// Needs `freeport init --offload` and `freeport join --offload`. The administrators of both clusters agree to it: one accepts, the
    /// other uses.
    Offload(OffloadArgs),
    /// End the offloading of Namespaces.
    Unoffload(UnoffloadArgs),
    /// Use an API of one cluster in another: spec up, status down.
    ///
    /// The cluster with the operator provides and offers; any other cluster binds. Needs no ClusterSet.
    Bind(BindArgs),
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, and no problem was found.
    Well,
    /// Problems were found.
    Problems,
    /// No cluster could be looked at.
    Unseen,
}

impl Outcome {
    fn exit_code(self) -> u8 {
        match self {
            Self::Well => 0,
            Self::Problems => 1,
            Self::Unseen => 3,
        }
    }
}

/// The exit codes, at the end of `--help`. Those of errors: [`Error::exit_code`].
const EXIT_CODES: &str = "\
Exit codes:
  0  done, or nothing was found
  1  something was found: a problem, a failed check
  2  the arguments or the kubeconfig are wrong, or the command takes something away and --yes is missing
  3  it could not be done or looked at: unreachable, forbidden, refused, not installed
  4  a wait ran out; run the command again to go on waiting
130  interrupted";

/// The whole program, called `program` in its usage lines and messages.
pub fn start(program: &'static str) -> ExitCode {
    completing::answer(program);
    run_program(program)
}

#[tokio::main(flavor = "current_thread")]
async fn run_program(program: &'static str) -> ExitCode {
    // An error means that a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let matches = Args::command().name(program).bin_name(program).get_matches();
    let args = match Args::from_arg_matches(&matches) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    match run(args).await {
        Ok(outcome) => outcome.exit_code().into(),
        Err(error) => {
            aside(&said(program, &error));
            error.exit_code().into()
        }
    }
}

/// The error as a terminal may get it: it may quote other clusters.
fn said(program: &str, error: &Error) -> String {
    printable(&format!("{program}: {error}"))
}

/// Prints a line beside the output. Where nobody reads that any more the work goes on.
fn aside(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Runs the command and prints what it does, line by line.
///
/// # Errors
/// Those of [`init`], [`join`], [`rejoin()`], [`leave()`], [`dns()`] and [`status`](status::status).
pub async fn run(args: Args) -> Result<Outcome, Error> {
    let mut printed = Ok(());
    let outcome = Box::pin(run_as(args, &mut |line| {
        if printed.is_ok() {
            printed = showing::print_marked(&format!("{line}\n"));
        }
    }))
    .await?;
    printed.map(|()| outcome)
}

async fn run_as(args: Args, say: &mut (dyn FnMut(&str) + Send)) -> Result<Outcome, Error> {
    color::choose(args.color);
    match args.command {
        Command::Init(args) => {
            let options = args.try_into()?;
            let installed = init(&options, say).await?;
            installing::after_init(&options, &installed, say);
        }
        Command::Join(args) => {
            let options = args.try_into()?;
            let installed = join(&options, say).await?;
            installing::after_join(&options, &installed, say);
        }
        Command::Rejoin(args) => rejoin(&args.into(), say).await?,
        Command::Status(args) => return showing::show(args).await,
        Command::Get(args) => return getting::show(args).await,
        Command::Why(args) => return explaining::show(args).await,
        Command::Check(args) => return checking::show(args).await,
        Command::Gather(args) => return gathering::write(args).await,
        Command::Version(args) => return versioning::show(args).await,
        Command::Export(args) => return exporting::start(args, say).await,
        Command::Unexport(args) => return exporting::end(args, say).await,
        Command::Plan(args) => return planning::show(args).await,
        Command::Completion(args) => return completing::script(&args),
        Command::Explain(args) => return explaining::explain(&args),
        Command::Leave(args) => leave(&args.try_into()?, say).await?,
        Command::Revoke(args) => leave(&args.into(), say).await?,
        Command::Dns(args) => dns(&args.into(), say).await?,
        Command::Offload(args) => return offloading::offload(args, say).await,
        Command::Unoffload(args) => return offloading::unoffload(args, say).await,
        Command::Bind(args) => return binding::bind(args, say).await,
    }
    Ok(Outcome::Well)
}

#[cfg(test)]
mod refusals;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_error_that_quotes_a_condition_does_not_reach_the_terminal_as_it_is() {
        let missing = "shop/web: \u{1b}]0;owned\u{7}".to_owned();
        let limit = std::time::Duration::from_secs(60);
        let line = said("freeport", &Error::Timeout { cluster: "east".into(), missing, limit });
        assert_eq!(line, "freeport: east: timed out after 60 s: shop/web:  ]0;owned ");
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut command = Args::command();
        command.build();
        // `freeport help` lists the commands, one in a line.
        for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let help = command.render_help().to_string();
            let widest = help.lines().map(|line| line.chars().count()).max().unwrap();
            let high = help.lines().count();
            assert!(widest <= 100 && high <= 24, "{}: {high} lines, {widest} columns", command.get_name());
        }
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
}
