//! The command lines of `freeport offload` and `freeport unoffload`.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use api::offload::namespace::{NamespaceMappingStrategy, PodOffloadingStrategy};
use clap::{
    Args as ClapArgs, Subcommand, ValueEnum,
    builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser},
};
use serde::de::DeserializeOwned;

use super::{
    Outcome,
    duration::duration,
    reaching::Where,
    showing::{ReportForm, shown},
};
use crate::{
    AcceptOptions, Error, OffloadOptions, OffloadStatusOptions, UnoffloadOptions, UseOptions, accept,
    maps_text, offload_maps, offload_namespaces, offload_status, offload_text, unoffload_namespaces,
    use_peer,
};

#[derive(ClapArgs, Debug)]
pub(super) struct OffloadArgs {
    #[command(subcommand)]
    command: OffloadCommand,
}

#[derive(Subcommand, Debug)]
enum OffloadCommand {
    /// Let another cluster bring Namespaces and Pods here.
    ///
    /// Writes spec.incoming of the OffloadPeer of that name. Run again, it adds what the flags say; kubectl edit changes the rest.
    Accept(AcceptArgs),
    /// Make another cluster, which has accepted this one, a node here.
    ///
    /// Writes spec.outgoing of the OffloadPeer of that name, and waits until the node is there.
    Use(UseArgs),
    /// Give Namespaces twins in other clusters, and let their new Pods run there.
    ///
    /// Writes the NamespaceOffloading of each, and waits until its twins are there and new Pods are placed as it says. Run again, it
    /// changes what the flags say.
    Namespace(NamespaceArgs),
    /// Show what this cluster offloads, and what other clusters offload to it. Changes nothing.
    ///
    /// Exits with 0 if all that was asked for works, with 1 if not.
    Status(OffloadStatusArgs),
    /// List Namespaces and their twins, of this cluster and of others. Changes nothing.
    ///
    /// Twins of Namespaces of this cluster in other clusters, and twins of other clusters' Namespaces here. Exits with 0, or with 1 if that may not be all, or not be so any more.
    Maps(OffloadMapsArgs),
}

#[derive(ClapArgs, Debug)]
pub(super) struct UnoffloadArgs {
    #[command(subcommand)]
    command: UnoffloadCommand,
}

#[derive(Subcommand, Debug)]
enum UnoffloadCommand {
    /// End the offloading of Namespaces: their twins go, with all that is in them.
    ///
    /// Says what goes where. With --yes it deletes their NamespaceOffloadings, and waits until the twins have gone.
    Namespace(UnoffloadNamespaceArgs),
}

#[derive(ClapArgs, Debug)]
struct AcceptArgs {
    /// ID of the other cluster.
    id: String,
    /// End the consent: nothing new comes.
    #[arg(long, conflicts_with_all = ["label", "namespace"])]
    remove: bool,
    /// Label of this cluster as a node there; repeat for several.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,
    /// Names that Namespaces may have here, besides NAME-ID; * is any text.
    #[arg(long, value_name = "PATTERN")]
    namespace: Vec<String>,
    /// Also if twins go that labels of an earlier consent selected; without this they are only named.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: Where,
}

#[derive(ClapArgs, Debug)]
struct UseArgs {
    /// ID of the other cluster.
    id: String,
    /// Stop using it: its node here goes, and twins there with all that is in them.
    #[arg(long)]
    remove: bool,
    /// Also if no member of the ClusterSet has this ID.
    #[arg(long, conflicts_with = "remove")]
    force: bool,
    /// With --remove: delete twins; without this they are only named.
    #[arg(long, requires = "remove")]
    yes: bool,
    /// Do not wait until the node is there, or gone.
    #[arg(long)]
    no_wait: bool,
    /// Limit of the wait.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    place: Where,
}

const STRATEGIES: &[&str] = &["Local", "Remote", "LocalAndRemote"];
const MAPPINGS: &[&str] = &["DefaultName", "EnforceSameName", "SelectedName"];

#[derive(ClapArgs, Debug)]
struct NamespaceArgs {
    /// Namespaces of this cluster.
    #[arg(required_unless_present = "ns_selector", value_name = "NAME")]
    names: Vec<String>,
    /// In place of names: the Namespaces that have these labels now.
    #[arg(long, value_name = "REQUIREMENTS", conflicts_with = "names", value_parser = NonEmptyStringValueParser::new())]
    ns_selector: Option<String>,
    /// Where new Pods may run [default: as before, else LocalAndRemote].
    #[arg(long, value_name = "STRATEGY", value_parser = one_of::<PodOffloadingStrategy>(STRATEGIES))]
    pod_offloading_strategy: Option<PodOffloadingStrategy>,
    /// What twins are called [default: as before, else DefaultName].
    #[arg(long, value_name = "STRATEGY", value_parser = one_of::<NamespaceMappingStrategy>(MAPPINGS))]
    namespace_mapping_strategy: Option<NamespaceMappingStrategy>,
    /// Name of the twin, for SelectedName.
    #[arg(long, value_name = "NAME")]
    remote_namespace_name: Option<String>,
    /// Only clusters whose nodes have these labels; '' is all clusters.
    ///
    /// Requirements as kubectl writes them, with commas between: key=value, key!=value, key, !key. All of one --selector have to hold,
    /// and one --selector of several.
    #[arg(short = 'l', long, value_name = "REQUIREMENTS")]
    selector: Vec<String>,
    /// Change the selector also if that deletes twins.
    #[arg(long)]
    yes: bool,
    /// Print the objects for kubectl apply -f; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Form of what --dry-run prints.
    #[arg(short, long, value_enum, default_value_t = Printed::Yaml, requires = "dry_run")]
    output: Printed,
    /// Do not wait until twins are there and Pods are placed.
    #[arg(long)]
    no_wait: bool,
    /// Limit of the wait for each Namespace.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    place: Where,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Printed {
    /// One YAML document for each object, in the order of applying.
    Yaml,
    /// One List of all objects, in that order.
    Json,
}

#[derive(ClapArgs, Debug)]
struct OffloadStatusArgs {
    /// Only this Namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Form of the report.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
    #[command(flatten)]
    place: Where,
}

#[derive(ClapArgs, Debug)]
struct OffloadMapsArgs {
    /// Form of the list.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
    #[command(flatten)]
    place: Where,
}

#[derive(ClapArgs, Debug)]
struct UnoffloadNamespaceArgs {
    /// Namespaces of this cluster.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Delete; without this it is only said what would go.
    #[arg(long)]
    yes: bool,
    /// End Pods in twins at once, also where nothing serves in their place.
    ///
    /// Without it, Pods of Deployments and ReplicaSets that are ready in twins are evicted one after the other, so that each is replaced here
    /// before the next one ends; PodDisruptionBudgets hold.
    #[arg(long, requires = "yes")]
    now: bool,
    /// Limit of the wait for each Namespace, and for each Pod that is replaced.
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    place: Where,
}

/// Runs `freeport offload`.
pub(super) async fn offload(args: OffloadArgs, say: &mut (dyn FnMut(&str) + Send)) -> Result<Outcome, Error> {
    match args.command {
        OffloadCommand::Accept(args) => accept(&args.into(), say).await?,
        OffloadCommand::Use(args) => use_peer(&args.into(), say).await?,
        OffloadCommand::Namespace(args) => offload_namespaces(&args.into(), say).await?,
        OffloadCommand::Status(args) => {
            let OffloadStatusArgs { namespace, output, place } = args;
            let report = offload_status(&OffloadStatusOptions { cluster: place.into(), namespace }).await?;
            return shown(&report, output, offload_text, report.is_well());
        }
        OffloadCommand::Maps(args) => {
            let maps = offload_maps(&args.place.into()).await?;
            return shown(&maps, args.output, maps_text, maps.problems.is_empty());
        }
    }
    Ok(Outcome::Well)
}

/// Runs `freeport unoffload`.
pub(super) async fn unoffload(
    args: UnoffloadArgs,
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Outcome, Error> {
    let UnoffloadCommand::Namespace(args) = args.command;
    let options = UnoffloadOptions {
        cluster: args.place.into(),
        namespaces: args.names,
        yes: args.yes,
        now: args.now,
        timeout: args.timeout,
    };
    unoffload_namespaces(&options, say).await?;
    Ok(Outcome::Well)
}

/// Takes one of these words, as the API writes them.
fn one_of<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it has no '='")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl From<AcceptArgs> for AcceptOptions {
    fn from(args: AcceptArgs) -> Self {
        Self {
            cluster: args.place.into(),
            peer: args.id,
            remove: args.remove,
            labels: BTreeMap::from_iter(args.label),
            namespaces: args.namespace,
            yes: args.yes,
        }
    }
}

impl From<UseArgs> for UseOptions {
    fn from(args: UseArgs) -> Self {
        Self {
            cluster: args.place.into(),
            peer: args.id,
            force: args.force,
            remove: args.remove,
            yes: args.yes,
            wait: !args.no_wait,
            timeout: args.timeout,
        }
    }
}

impl From<NamespaceArgs> for OffloadOptions {
    fn from(args: NamespaceArgs) -> Self {
        Self {
            cluster: args.place.into(),
            namespaces: args.names,
            ns_selector: args.ns_selector,
            strategy: args.pod_offloading_strategy,
            mapping: args.namespace_mapping_strategy,
            remote_name: args.remote_namespace_name,
            selectors: args.selector,
            yes: args.yes,
            dry_run: args.dry_run,
            as_json: matches!(args.output, Printed::Json),
            wait: !args.no_wait,
            timeout: args.timeout,
        }
    }
}
