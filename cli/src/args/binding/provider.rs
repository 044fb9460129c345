//! What a provider does.

use std::time::Duration;

use api::bind::resource::{InformerScope, Isolation};
use clap::{Args as ClapArgs, ValueEnum};

use crate::{
    Daemons, OfferOptions, ProvideOptions, Run,
    args::{installing::RunArgs, reaching::Where, showing::ReportForm},
};

#[derive(ClapArgs, Debug)]
pub(super) struct ProvideArgs {
    /// This cluster's API server as consumers reach it [default: as before, else as here].
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// How objects of consumers are kept apart [default: as before, else prefixed].
    #[arg(long, value_enum)]
    isolation: Option<Apart>,
    /// What consumers may watch [default: as before, else namespaced].
    #[arg(long, value_enum)]
    scope: Option<Watched>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Apart {
    /// By a prefix of the name of the object or of its Namespace.
    Prefixed,
    /// Each consumer's in its own Namespace; the API is cluster-scoped at consumers.
    Namespaced,
    /// Not at all.
    None,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Watched {
    /// Their own Namespaces.
    Namespaced,
    /// The whole cluster, where they see the objects of others.
    Cluster,
}

#[derive(ClapArgs, Debug)]
pub(super) struct OfferArgs {
    /// Name of the template.
    template: String,
    /// An API, as PLURAL.GROUP; repeat for several.
    #[arg(long, value_name = "PLURAL.GROUP", required = true)]
    resource: Vec<String>,
    /// Collection that the template is to be in.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// How objects of its consumers are kept apart [default: as the provider does it].
    #[arg(long, value_enum)]
    isolation: Option<Apart>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    printing: Printing,
}

/// Printing instead of doing.
#[derive(ClapArgs, Debug)]
struct Printing {
    /// Print the objects for kubectl apply -f; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Form of what --dry-run prints.
    #[arg(short, long, value_enum, default_value_t = Printed::Yaml, requires = "dry_run", hide_short_help = true)]
    output: Printed,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Printed {
    /// One YAML document for each object, in the order of applying.
    Yaml,
}

#[derive(ClapArgs, Debug)]
pub(super) struct TemplatesArgs {
    /// Form of the list.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    pub(super) output: ReportForm,
    #[command(flatten)]
    pub(super) place: Where,
}

impl From<Apart> for Isolation {
    fn from(apart: Apart) -> Self {
        match apart {
            Apart::Prefixed => Self::Prefixed,
            Apart::Namespaced => Self::Namespaced,
            Apart::None => Self::None,
        }
    }
}

impl From<Watched> for InformerScope {
    fn from(watched: Watched) -> Self {
        match watched {
            Watched::Namespaced => Self::Namespaced,
            Watched::Cluster => Self::Cluster,
        }
    }
}

impl From<OfferArgs> for OfferOptions {
    fn from(args: OfferArgs) -> Self {
        let run = Run {
            daemons: Daemons::Inside { image: None, replicas: None },
            only: Vec::new(),
            wait: false,
            timeout: Duration::ZERO,
            dry_run: args.printing.dry_run,
            aside: crate::args::aside,
        };
        Self {
            cluster: args.place.into(),
            template: args.template,
            resources: args.resource,
            collection: args.collection,
            isolation: args.isolation.map(Into::into),
            run,
        }
    }
}

impl From<ProvideArgs> for ProvideOptions {
    fn from(args: ProvideArgs) -> Self {
        Self {
            cluster: args.place.into(),
            address: args.address,
            isolation: args.isolation.map(Into::into),
            scope: args.scope.map(Into::into),
            run: args.run.only(Vec::new()),
        }
    }
}
