//! The command lines of `freeport bind`.

use std::{path::PathBuf, time::Duration};

use api::bind::resource::{InformerScope, Isolation};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{
    Outcome,
    installing::RunArgs,
    offloading::Where,
    showing::{ReportForm, shown},
};
use crate::{
    ApiServiceOptions, Daemons, Error, Halves, KubeContext, OfferOptions, ProvideOptions, RemoveOptions, Run,
    bind_apiservice, offer, offer_text, offers, provide, remove,
};

#[derive(ClapArgs, Debug)]
pub(super) struct BindArgs {
    #[command(subcommand)]
    command: BindCommand,
}

#[derive(Subcommand, Debug)]
enum BindCommand {
    /// Make a cluster a provider: others may become consumers of its APIs.
    ///
    /// Installs CRDs, rights and a leader that serves consumers. Nothing is offered yet. Run again, it changes only what differs.
    Provide(ProvideArgs),
    /// Offer APIs of this provider, by a template.
    ///
    /// Labels their CRDs, writes the rights that consumers get, and an APIServiceExportTemplate. Run again, it changes only what differs.
    Offer(OfferArgs),
    /// Show what a provider offers.
    Templates(TemplatesArgs),
    /// Use an API of a provider here.
    ///
    /// At the provider: a contract, and what its template offers. Here: a Secret with the credential, rights on those APIs, a member, an
    /// APIServiceBinding. Two people do one half each with --only. Run again, it changes only what differs.
    Apiservice(ApiServiceArgs),
    /// End a binding: its objects go, with their copies at the provider, then its CRDs.
    ///
    /// Says how many. With --provider-context the export and, with the last one, the contract end, too. Run again, it continues.
    Remove(RemoveArgs),
}

#[derive(ClapArgs, Debug)]
struct ProvideArgs {
    /// This cluster's API server as consumers reach it [default: as before, else as here].
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// How objects of consumers are kept apart [default: as before, else prefixed].
    #[arg(long, value_enum)]
    isolation: Option<Apart>,
    /// How much consumers watch [default: as before, else namespaced].
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
    /// The Namespaces that are theirs.
    Namespaced,
    /// The whole cluster, where they see the objects of others.
    Cluster,
}

#[derive(ClapArgs, Debug)]
struct OfferArgs {
    /// Name of the template.
    template: String,
    /// An API, as PLURAL.GROUP; for each one --resource.
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
struct TemplatesArgs {
    /// Form of the list.
    #[arg(short, long, value_enum, default_value_t = ReportForm::Text)]
    output: ReportForm,
    #[command(flatten)]
    place: Where,
}

#[derive(ClapArgs, Debug)]
struct ApiServiceArgs {
    /// Name of the APIServiceBinding.
    name: String,
    /// What is wanted of the provider.
    #[arg(short, long, value_name = "NAME", required_unless_present = "file")]
    template: Option<String>,
    /// Kubeconfig of the provider [default: as --kubeconfig].
    #[arg(long, value_name = "FILE")]
    provider_kubeconfig: Option<PathBuf>,
    /// Context of the provider [default: the current one].
    #[arg(long, value_name = "NAME")]
    provider_context: Option<String>,
    /// Do one half; the provider's prints what the consumer's takes with -f.
    #[arg(long, value_enum)]
    only: Option<Half>,
    /// What the provider's half printed, with --only consumer.
    #[arg(short, long, value_name = "FILE", conflicts_with = "template")]
    file: Option<PathBuf>,
    /// With --only provider: the uid of the consumer's Namespace kube-system.
    #[arg(long, value_name = "UID")]
    identity: Option<String>,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Half {
    /// Needs --template and --identity.
    Provider,
    /// Needs --file.
    Consumer,
}

#[derive(ClapArgs, Debug)]
struct RemoveArgs {
    /// Name of the APIServiceBinding.
    name: String,
    /// Kubeconfig of the provider [default: as --kubeconfig].
    #[arg(long, value_name = "FILE")]
    provider_kubeconfig: Option<PathBuf>,
    /// Context of the provider, to end the contract there as well.
    #[arg(long, value_name = "NAME")]
    provider_context: Option<String>,
    /// The copies at the provider stay.
    #[arg(long)]
    orphan: bool,
    /// Do not wait for the provider, which is gone for good.
    #[arg(long)]
    force: bool,
    /// Say what would be deleted or changed; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Limit of the wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    #[command(flatten)]
    place: Where,
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
            daemons: Daemons::Inside { image: None },
            only: Vec::new(),
            wait: false,
            timeout: Duration::ZERO,
            dry_run: args.printing.dry_run,
            warn: |line| eprintln!("warning: {line}"),
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

impl TryFrom<ApiServiceArgs> for ApiServiceOptions {
    type Error = Error;

    fn try_from(args: ApiServiceArgs) -> Result<Self, Error> {
        let lacks = |flag: &str| Error::Argument(format!("--only needs {flag}"));
        let file = args.provider_kubeconfig.or_else(|| args.place.kubeconfig.clone());
        let provider = KubeContext { file, name: args.provider_context };
        let (consumer, template) = (args.place.into(), args.template);
        let halves = match (args.only, args.file) {
            (Some(Half::Provider), _) => Halves::Provider {
                provider,
                template: template.ok_or_else(|| lacks("--template"))?,
                identity: args.identity.ok_or_else(|| lacks("--identity"))?,
            },
            (Some(Half::Consumer), file) => {
                Halves::Consumer { consumer, file: file.ok_or_else(|| lacks("--file"))? }
            }
            (None, Some(file)) => Halves::Consumer { consumer, file },
            (None, None) => {
                Halves::Both { provider, template: template.ok_or_else(|| lacks("--template"))?, consumer }
            }
        };
        let run = args.run.only(Vec::new());
        if run.dry_run && !matches!(halves, Halves::Consumer { .. }) {
            return Err(Error::Argument(
                "--dry-run prints the consumer's objects: add --only consumer and -f, with what --only provider printed".into(),
            ));
        }
        Ok(Self { name: args.name, halves, run })
    }
}

impl From<RemoveArgs> for RemoveOptions {
    fn from(args: RemoveArgs) -> Self {
        let file = args.provider_kubeconfig.clone().or_else(|| args.place.kubeconfig.clone());
        let is_named = args.provider_context.is_some() || args.provider_kubeconfig.is_some();
        Self {
            name: args.name,
            consumer: args.place.into(),
            provider: is_named.then_some(KubeContext { file, name: args.provider_context }),
            orphan: args.orphan,
            force: args.force,
            dry_run: args.dry_run,
            timeout: Duration::from_secs(args.timeout),
        }
    }
}

type Say<'a> = &'a mut (dyn FnMut(&str) + Send);

/// Runs `freeport bind`.
pub(super) async fn bind(args: BindArgs, say: Say<'_>) -> Result<Outcome, Error> {
    match args.command {
        BindCommand::Provide(args) => provide_as(args, say).await?,
        BindCommand::Offer(args) => {
            let options = args.into();
            offer(&options, say).await?;
            if !options.run.dry_run {
                say(&format!(
                    "next: freeport bind apiservice NAME --template {} --context CONSUMER --provider-context PROVIDER",
                    options.template
                ));
            }
        }
        BindCommand::Templates(args) => {
            let found = offers(&args.place.into()).await?;
            return shown(&found, args.output, |found| offer_text(found), true);
        }
        BindCommand::Apiservice(args) => {
            let kubeconfig = bind_apiservice(&args.try_into()?, say).await?;
            if let Some(kubeconfig) = kubeconfig {
                say(&format!(
                    "next: freeport-member --kubeconfig {} --listen '[::]:8081' --bind",
                    kubeconfig.display()
                ));
            }
        }
        BindCommand::Remove(args) => remove(&args.into(), say).await?,
    }
    Ok(Outcome::Well)
}

async fn provide_as(args: ProvideArgs, say: Say<'_>) -> Result<(), Error> {
    let options = ProvideOptions {
        cluster: args.place.into(),
        address: args.address,
        isolation: args.isolation.map(Into::into),
        scope: args.scope.map(Into::into),
        run: args.run.only(Vec::new()),
    };
    let provided = provide(&options, say).await?;
    if options.run.dry_run {
        return Ok(());
    }
    if let Some(kubeconfig) = &provided.kubeconfig {
        let told: Vec<_> = provided.told.iter().map(|(name, value)| format!("{name}={value}")).collect();
        say(&format!(
            "next: {} freeport-leader --kubeconfig {} --listen '[::]:8080'",
            told.join(" "),
            kubeconfig.display()
        ));
    }
    say("next: freeport bind offer TEMPLATE --resource PLURAL.GROUP");
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn options(line: &str) -> Result<ApiServiceOptions, Error> {
        let words = ["freeport", "bind", "apiservice", "mango"].into_iter().chain(line.split_whitespace());
        match Args::try_parse_from(words).unwrap().command {
            Command::Bind(BindArgs { command: BindCommand::Apiservice(args) }) => args.try_into(),
            _ => panic!("a binding was asked for"),
        }
    }

    #[test]
    fn one_person_does_both_halves_and_two_people_one_each() {
        let both = options("-t db --context east --provider-context leader --kubeconfig f").unwrap();
        let Halves::Both { provider, consumer, .. } = both.halves else { panic!("{:?}", both.halves) };
        assert_eq!(provider.to_string(), "context \"leader\" of f");
        assert_eq!(consumer.to_string(), "context \"east\" of f");
        let theirs = options("-t db --only provider --identity u --provider-context leader").unwrap();
        assert!(matches!(theirs.halves, Halves::Provider { .. }));
        assert!(matches!(options("-f answer.yaml").unwrap().halves, Halves::Consumer { .. }));
        assert!(options("-t db --only provider").unwrap_err().to_string().contains("--identity"));
        assert!(options("-t db --dry-run").unwrap_err().to_string().contains("--only consumer"));
        assert!(options("-f answer.yaml --dry-run").is_ok());
    }
}
