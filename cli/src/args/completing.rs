//! Completion of command lines: the script of a shell, and the values that it asks for while somebody types.

use std::{ffi::OsStr, path::PathBuf, sync::mpsc, thread, time::Duration};

use api::{label::IMPORTED_PREFIX, view::Named};
use clap::{Arg, Args as ClapArgs, Command, CommandFactory, ValueEnum};
use clap_complete::{
    ArgValueCompleter, CompleteEnv, CompletionCandidate,
    env::{self, EnvCompleter},
};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, ResourceExt};

use super::{Args, Outcome, showing::print};
use crate::{Error, GetOptions, KubeContext, Listed, cluster::Cluster, get, listed_names};

#[derive(ClapArgs, Debug)]
pub(super) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The program that the script is for.
const NAME: &str = "freeport";

/// Variable with which the script calls this program.
const VARIABLE: &str = "FREEPORT_COMPLETE";

/// How long somebody who types waits for the answer of a cluster.
const PATIENCE: Duration = Duration::from_millis(300);

/// Answers the script of a shell and ends the program, if that script runs it.
pub(super) fn answer(program: &'static str) {
    let command = || offering(Args::command().name(program).bin_name(program));
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// Prints the script that a shell sources.
pub(super) fn script(args: &CompletionArgs) -> Result<Outcome, Error> {
    print(&registration(args.shell)?)?;
    Ok(Outcome::Well)
}

fn registration(shell: Shell) -> Result<String, Error> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &env::Bash,
        Shell::Zsh => &env::Zsh,
        Shell::Fish => &env::Fish,
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, NAME, NAME, NAME, &mut script)
        .map_err(|source| Error::File { path: PathBuf::from("/dev/stdout"), source })?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// The command, whose arguments know where their values come from.
fn offering(command: Command) -> Command {
    let is_new_cluster = ["init", "join"].contains(&command.get_name());
    let is_export = command.get_name() == "export";
    let offer = |arg: Arg| match arg.get_id().as_str() {
        "context" | "contexts" | "leader_context" | "provider_context" => {
            arg.add(ArgValueCompleter::new(contexts))
        }
        "namespace" | "names" => arg.add(ArgValueCompleter::new(namespaces)),
        "services" if is_export => arg.add(ArgValueCompleter::new(own_services)),
        "service" | "services" | "unexport" => arg.add(ArgValueCompleter::new(services)),
        "from" | "id" => arg.add(ArgValueCompleter::new(cluster_ids)),
        "cluster_id" if !is_new_cluster => arg.add(ArgValueCompleter::new(cluster_ids)),
        _ => arg,
    };
    command.mut_args(offer).mut_subcommands(offering)
}

/// Contexts of the kubeconfig; of several, the last one is completed.
fn contexts(current: &OsStr) -> Vec<CompletionCandidate> {
    contexts_of(&KubeContext::default(), current)
}

fn contexts_of(kubeconfig: &KubeContext, current: &OsStr) -> Vec<CompletionCandidate> {
    let names = kubeconfig.all().unwrap_or_default().into_iter().filter_map(|context| context.name);
    matching(current, names)
}

/// Namespaces of the current context's cluster.
fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(current, asked(async || Cluster::open(&here()).await.ok()?.namespaces().await.ok()))
}

/// Services that the current context's cluster exports or imports, as `NAMESPACE/NAME`.
fn services(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(current, asked(async || listed(Listed::Services).await))
}

/// Services of the current context's cluster that it could export, as `NAMESPACE/NAME`.
fn own_services(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(
        current,
        asked(async || {
            let cluster = Cluster::open(&here()).await.ok()?;
            let all: Api<Named<Service>> = Api::all(cluster.client.clone());
            let found = cluster.all(&all, "").await.ok()?;
            let own = found.into_iter().filter(|service| !service.name_any().starts_with(IMPORTED_PREFIX));
            let own = own.filter_map(|own| Some(format!("{}/{}", own.namespace()?, own.name_any())));
            Some(own.collect())
        }),
    )
}

/// IDs of clusters that the current context's cluster leads, and its own.
fn cluster_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    matching(current, asked(async || listed(Listed::Clusters).await))
}

fn here() -> KubeContext {
    KubeContext::default().within(PATIENCE)
}

async fn listed(listed: Listed) -> Option<Vec<String>> {
    let contexts = vec![here()];
    let options = GetOptions { listed, contexts, namespace: None, labels: String::new() };
    let listing = Box::pin(get(&options)).await.ok()?;
    Some(listed_names(&listing).lines().map(str::to_owned).collect())
}

/// The answer, or nothing if it takes too long.
fn asked<F>(ask: F) -> Vec<String>
where
    F: AsyncFnOnce() -> Option<Vec<String>> + Send + 'static,
{
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let names = runtime.ok().and_then(|runtime| runtime.block_on(ask()));
        // Nobody waits any more.
        drop(tell.send(names.unwrap_or_default()));
    });
    told.recv_timeout(PATIENCE).unwrap_or_default()
}

/// The names that begin with what was typed, after the last comma.
fn matching(current: &OsStr, names: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return vec![] };
    let (before, begun) = current.rfind(',').map_or(("", current), |at| current.split_at(at + 1));
    let fits = names.into_iter().filter(|name| name.starts_with(begun));
    fits.map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn words(candidates: &[CompletionCandidate]) -> Vec<String> {
        candidates.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn contexts_are_offered_also_after_a_comma() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = "{current-context: west, contexts: [{name: hub}, {name: west}, {name: east}]}";
        file.write_all(config.as_bytes()).unwrap();
        let kubeconfig = KubeContext { file: Some(file.path().into()), ..KubeContext::default() };
        let offered = |typed: &str| words(&contexts_of(&kubeconfig, OsStr::new(typed)));
        assert_eq!(offered(""), ["west", "hub", "east"]);
        assert_eq!(offered("e"), ["east"]);
        assert_eq!(offered("west,h"), ["west,hub"]);
        assert_eq!(offered("west,x"), [""; 0]);
    }

    #[test]
    fn a_cluster_that_does_not_answer_offers_nothing() {
        let silent = || async {
            tokio::time::sleep(Duration::from_secs(600)).await;
            None
        };
        assert_eq!(asked(silent), [""; 0]);
        assert_eq!(asked(async || Some(vec!["shop".to_owned()])), ["shop"]);
    }

    #[test]
    fn arguments_are_offered_what_their_commands_take() {
        let offered = |words: &[&str]| -> Vec<String> {
            let mut command = offering(Args::command());
            let line: Vec<_> = ["freeport"].iter().chain(words).map(Into::into).collect();
            let last = words.len();
            let found = clap_complete::engine::complete(&mut command, line, last, None).unwrap();
            found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(offered(&["sta"]), ["status"]);
        assert_eq!(offered(&["get", "co"]), ["conflicts"]);
        assert!(offered(&["why", "shop/web", "--all"]).contains(&"--all-contexts".to_owned()));
    }

    #[test]
    fn each_argument_with_services_has_them_offered() {
        let command = offering(Args::command());
        for (name, argument) in
            [("why", "service"), ("export", "services"), ("unexport", "services"), ("plan", "unexport")]
        {
            let command = command.find_subcommand(name).unwrap();
            let argument = command.get_arguments().find(|arg| arg.get_id() == argument).unwrap();
            assert!(argument.get::<ArgValueCompleter>().is_some(), "{name}");
        }
    }

    #[test]
    fn each_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = registration(shell).unwrap();
            assert!(script.contains(VARIABLE) && script.contains(NAME), "{script}");
        }
    }
}
