//! What a consumer does.

use std::{path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, ValueEnum, builder::NonEmptyStringValueParser};

use crate::{
    ApiServiceOptions, Error, Halves, RemoveOptions,
    args::{duration::duration, installing::RunArgs, reaching::Where},
};

#[derive(ClapArgs, Debug)]
pub(super) struct ApiServiceArgs {
    /// Name of the APIServiceBinding.
    name: String,
    /// The provider's template with the APIs.
    #[arg(short, long, value_name = "NAME")]
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
    #[arg(long, value_name = "UID", value_parser = NonEmptyStringValueParser::new())]
    identity: Option<String>,
    /// Allow an API that is exported besides those asked for, as PLURAL.GROUP; repeat for several.
    #[arg(long, value_name = "PLURAL.GROUP")]
    agree: Vec<String>,
    /// With -f: take over the contract of another cluster, which is gone.
    #[arg(long)]
    take_over: bool,
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
pub(super) struct RemoveArgs {
    /// Name of the APIServiceBinding.
    name: String,
    /// Kubeconfig of the provider [default: as --kubeconfig].
    #[arg(long, value_name = "FILE")]
    provider_kubeconfig: Option<PathBuf>,
    /// Context of the provider, to end the contract there as well.
    #[arg(long, value_name = "NAME")]
    provider_context: Option<String>,
    /// Identity that --only provider --identity gave this cluster [default: its uid].
    #[arg(long, value_name = "UID", value_parser = NonEmptyStringValueParser::new())]
    identity: Option<String>,
    /// Keep the copies at the provider.
    #[arg(long)]
    orphan: bool,
    /// Do not wait for the provider, which is gone for good: copies that it has stay.
    #[arg(long)]
    force: bool,
    /// Say what would be deleted or changed; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Limit of the wait.
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    place: Where,
}

impl ApiServiceArgs {
    /// A flag that would do nothing is a mistake.
    fn go_together(&self) -> Result<(), Error> {
        let is_provider = self.only == Some(Half::Provider);
        let wrong = |line: &str| Err(Error::Argument(line.to_owned()));
        match is_provider {
            false if self.identity.is_some() => wrong("--identity needs --only provider"),
            _ if self.take_over && self.file.is_none() => wrong("--take-over needs -f"),
            true if self.file.is_some() => wrong("-f needs --only consumer"),
            true if !self.agree.is_empty() => wrong("--agree cannot be combined with --only provider"),
            _ => Ok(()),
        }
    }
}

impl TryFrom<ApiServiceArgs> for ApiServiceOptions {
    type Error = Error;

    fn try_from(args: ApiServiceArgs) -> Result<Self, Error> {
        args.go_together()?;
        let lacks = |only: &str, flag: &str| Error::Argument(format!("{only}needs {flag}"));
        let file = args.provider_kubeconfig.or_else(|| args.place.kubeconfig.clone());
        let provider = args.place.login.context(file, args.provider_context);
        let (consumer, template) = (args.place.into(), args.template);
        let halves = match (args.only, args.file) {
            (Some(Half::Provider), _) => Halves::Provider {
                provider,
                template: template.ok_or_else(|| lacks("--only provider ", "--template"))?,
                identity: args.identity.ok_or_else(|| lacks("--only provider ", "--identity"))?,
            },
            (Some(Half::Consumer), None) => {
                return Err(lacks("--only consumer ", "-f FILE, with what --only provider printed"));
            }
            (_, Some(file)) => Halves::Consumer { consumer, file },
            (None, None) => {
                let template = template
                    .ok_or_else(|| lacks("", "--template, or -f with what --only provider printed"))?;
                Halves::Both { provider, template, consumer }
            }
        };
        let run = args.run.only(Vec::new());
        if run.dry_run && matches!(halves, Halves::Both { .. }) {
            return Err(Error::Argument(
                "--dry-run prints the objects of one cluster: add --only provider, or --only consumer and -f, with what --only provider printed"
                    .into(),
            ));
        }
        Ok(Self { name: args.name, halves, agree: args.agree, take_over: args.take_over, run })
    }
}

impl TryFrom<RemoveArgs> for RemoveOptions {
    type Error = Error;

    fn try_from(args: RemoveArgs) -> Result<Self, Error> {
        let file = args.provider_kubeconfig.clone().or_else(|| args.place.kubeconfig.clone());
        let is_named = args.provider_context.is_some() || args.provider_kubeconfig.is_some();
        if args.identity.is_some() && !is_named {
            return Err(Error::Argument(
                "--identity is what the provider knows: add --provider-context".into(),
            ));
        }
        let provider = is_named.then(|| args.place.login.context(file, args.provider_context));
        Ok(Self {
            name: args.name,
            consumer: args.place.into(),
            provider,
            identity: args.identity,
            orphan: args.orphan,
            force: args.force,
            dry_run: args.dry_run,
            timeout: args.timeout,
        })
    }
}
