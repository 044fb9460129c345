//! The command lines of `freeport export` and `freeport unexport`.

use std::{collections::BTreeMap, time::Duration};

use clap::{Args as ClapArgs, ValueEnum};

use super::{Outcome, duration::duration, explaining::services, reaching::Several};
use crate::{DryRun, Error, ExportOptions, KubeContext, UnexportOptions, export, unexport};

#[derive(ClapArgs, Debug)]
pub(super) struct ExportArgs {
    /// Services to export.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present = "selector")]
    services: Vec<String>,
    /// Labels of Services to export, in the Namespace of -n.
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Namespace for -l [default: that of the context].
    #[arg(short, long, value_name = "NAME", requires = "selector")]
    namespace: Option<String>,
    /// Label for the ServiceImports; repeat for several.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = pair)]
    labels: Vec<(String, String)>,
    /// Annotation for the ServiceImports.
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = pair)]
    annotations: Vec<(String, String)>,
    /// Show what would be done; with -o yaml the objects.
    #[arg(long)]
    dry_run: bool,
    /// Form of --dry-run.
    #[arg(short, long, value_enum, value_name = "FORM", requires = "dry_run")]
    output: Option<Form>,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    clusters: Several,
}

#[derive(ClapArgs, Debug)]
pub(super) struct UnexportArgs {
    /// Services that are not exported any more.
    #[arg(value_name = "NAMESPACE/NAME", required = true)]
    services: Vec<String>,
    /// Do it also if an import loses its last endpoint.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    waiting: Waiting,
    #[command(flatten)]
    clusters: Several,
}

#[derive(ClapArgs, Debug)]
struct Waiting {
    /// Do not wait until it is done in all clusters.
    #[arg(long)]
    no_wait: bool,
    /// Limit of the wait for other clusters.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// The ServiceExports.
    Yaml,
}

impl Waiting {
    fn limit(&self) -> Option<Duration> {
        (!self.no_wait).then_some(self.timeout)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is no KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

impl TryFrom<ExportArgs> for ExportOptions {
    type Error = Error;

    fn try_from(args: ExportArgs) -> Result<Self, Error> {
        let services = services(&args.services, "freeport export shop/web")?;
        let contexts: Vec<KubeContext> = args.clusters.try_into()?;
        let selected = match (args.selector, args.namespace, contexts.first()) {
            (Some(labels), Some(namespace), _) => Some((namespace, labels)),
            (Some(labels), None, Some(first)) => Some((first.namespace()?, labels)),
            _ => None,
        };
        let dry_run = match (args.dry_run, args.output) {
            (false, _) => None,
            (true, None) => Some(DryRun::Plan),
            (true, Some(Form::Yaml)) => Some(DryRun::Yaml),
        };
        Ok(Self {
            services,
            selected,
            labels: args.labels.into_iter().collect::<BTreeMap<_, _>>(),
            annotations: args.annotations.into_iter().collect(),
            contexts,
            dry_run,
            wait: args.waiting.limit(),
        })
    }
}

/// Exports; whether nothing of it is a problem.
pub(super) async fn start(args: ExportArgs, say: &mut (dyn FnMut(&str) + Send)) -> Result<Outcome, Error> {
    let options: ExportOptions = args.try_into()?;
    let is_well = Box::pin(export(&options, say)).await?;
    Ok(if is_well { Outcome::Well } else { Outcome::Problems })
}

/// Ends exports.
pub(super) async fn end(args: UnexportArgs, say: &mut (dyn FnMut(&str) + Send)) -> Result<Outcome, Error> {
    let services = services(&args.services, "freeport unexport shop/web")?;
    let (yes, wait) = (args.yes, args.waiting.limit());
    let options = UnexportOptions { services, contexts: args.clusters.try_into()?, yes, wait };
    Box::pin(unexport(&options, say)).await?;
    Ok(Outcome::Well)
}
