//! Flags that say which cluster a command asks, as whom, and for how long.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::duration::duration;
use crate::{Bundle, Error, KubeContext, Login};

/// One cluster.
#[derive(ClapArgs, Debug)]
pub(super) struct Where {
    /// Kubeconfig of the cluster [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the cluster [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    pub(super) login: LoginArgs,
}

impl From<Where> for KubeContext {
    fn from(place: Where) -> Self {
        place.login.context(place.kubeconfig, place.context)
    }
}

/// Several clusters, each once.
#[derive(ClapArgs, Debug)]
pub(super) struct Several {
    /// Kubeconfig of the clusters [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of one cluster to look at [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Contexts of several clusters to look at.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "context")]
    contexts: Vec<String>,
    /// Look at the clusters of all contexts, the current one first.
    #[arg(long, conflicts_with_all = ["context", "contexts"])]
    all_contexts: bool,
    /// Context of the leader's cluster, which is looked at besides.
    #[arg(long, value_name = "NAME")]
    leader_context: Option<String>,
    #[command(flatten)]
    login: LoginArgs,
    /// What answers in their place.
    #[arg(skip)]
    bundle: Option<Bundle>,
}

/// Several clusters, or a bundle in their place.
#[derive(ClapArgs, Debug)]
pub(super) struct Looked {
    #[command(flatten)]
    several: Several,
    #[command(flatten)]
    bundle: BundleArgs,
}

impl TryFrom<Looked> for Vec<KubeContext> {
    type Error = Error;

    /// Of a bundle all clusters are looked at, unless some are named.
    fn try_from(args: Looked) -> Result<Self, Error> {
        let Looked { mut several, bundle } = args;
        let Some(bundle) = bundle.read()? else { return several.try_into() };
        several.all_contexts |= several.context.is_none() && several.contexts.is_empty();
        several.bundle = Some(bundle);
        several.try_into()
    }
}

/// A bundle.
#[derive(ClapArgs, Debug)]
pub(super) struct BundleArgs {
    /// Bundle of freeport gather to look at; no cluster is asked.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "user", "request_timeout"])]
    bundle: Option<PathBuf>,
}

impl BundleArgs {
    /// The bundle, if one is named.
    pub(super) fn read(&self) -> Result<Option<Bundle>, Error> {
        self.bundle.as_deref().map(Bundle::read).transpose()
    }
}

/// Limit of each request unless a flag says it: somebody waits, and other clusters are looked at meanwhile.
const LOOK: Duration = Duration::from_secs(10);

impl TryFrom<Several> for Vec<KubeContext> {
    type Error = Error;

    fn try_from(args: Several) -> Result<Self, Error> {
        let of = |name| {
            let context = args.login.context(args.kubeconfig.clone(), name).within(LOOK);
            KubeContext { bundle: args.bundle.clone(), ..context }
        };
        let mut contexts = match (args.all_contexts, args.contexts.is_empty()) {
            (true, _) => of(None).all()?,
            (false, true) => vec![of(args.context)],
            (false, false) => args.contexts.into_iter().map(|name| of(Some(name))).collect(),
        };
        let names: Vec<_> = contexts.iter().filter_map(|context| context.name.as_ref()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Error::Argument(format!(
                "--contexts: {:?} is named twice. try: name it once",
                twice.1
            )));
        }
        if args.leader_context.as_ref().is_some_and(|leader| !names.contains(&leader)) {
            contexts.push(of(args.leader_context));
        }
        Ok(contexts)
    }
}

/// How every cluster of the command is asked.
#[derive(ClapArgs, Clone, Debug, Default)]
#[command(next_help_heading = "Requests")]
pub(super) struct LoginArgs {
    /// User to impersonate.
    #[arg(long = "as", value_name = "USER", hide_short_help = true)]
    user: Option<String>,
    /// Group to impersonate; repeat for several.
    #[arg(long = "as-group", value_name = "GROUP", requires = "user", hide_short_help = true)]
    groups: Vec<String>,
    /// Limit of each request [default: 30s; of commands that look at several clusters 10s].
    #[arg(long, value_name = "DURATION", value_parser = duration, hide_short_help = true)]
    request_timeout: Option<Duration>,
}

impl LoginArgs {
    /// A cluster that is asked with these flags.
    pub(super) fn context(&self, file: Option<PathBuf>, name: Option<String>) -> KubeContext {
        let login =
            Login { user: self.user.clone(), groups: self.groups.clone(), limit: self.request_timeout };
        KubeContext { file, name, login, bundle: None }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Args;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Where,
    }

    #[derive(Parser)]
    struct Lines {
        #[command(flatten)]
        clusters: Several,
    }

    fn names(line: &str) -> Result<Vec<Option<String>>, String> {
        let words = ["why"].into_iter().chain(line.split_whitespace());
        let line = Lines::try_parse_from(words).map_err(|error| error.to_string())?;
        let contexts: Vec<KubeContext> =
            line.clusters.try_into().map_err(|error: Error| error.to_string())?;
        Ok(contexts.into_iter().map(|context| context.name).collect())
    }

    #[test]
    fn one_cluster_several_or_all_are_looked_at_each_once() {
        let some = |names: &[&str]| -> Result<Vec<Option<String>>, String> {
            Ok(names.iter().map(|name| Some((*name).to_owned())).collect())
        };
        assert_eq!(names(""), Ok(vec![None]));
        assert_eq!(names("--context west --leader-context hub"), some(&["west", "hub"]));
        assert_eq!(names("--contexts west,hub --leader-context hub"), some(&["west", "hub"]));
        assert!(names("--contexts west,hub,west").unwrap_err().contains("\"west\" is named twice"));
        assert!(names("--contexts west --all-contexts").is_err());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let config = "{current-context: west, contexts: [{name: hub}, {name: west}, {name: east}]}";
        file.write_all(config.as_bytes()).unwrap();
        let all = format!("--all-contexts --kubeconfig {}", file.path().display());
        assert_eq!(names(&all), some(&["west", "hub", "east"]));
        assert!(names("--all-contexts --kubeconfig /nowhere").unwrap_err().contains("/nowhere"));
    }

    #[derive(Parser)]
    struct Bundled {
        #[command(flatten)]
        clusters: Looked,
    }

    #[test]
    fn a_bundle_that_cannot_be_read_is_no_wrong_usage_and_a_kubeconfig_beside_it_is() {
        let of = |line: &str| {
            let words = ["why", "--bundle", "/nowhere/b.tgz"].into_iter().chain(line.split_whitespace());
            Bundled::try_parse_from(words).map(|line| Vec::<KubeContext>::try_from(line.clusters))
        };
        for line in ["", "--context west", "--contexts west,hub", "--all-contexts", "--leader-context hub"] {
            let error = of(line).unwrap().unwrap_err();
            assert_eq!(error.exit_code(), 3, "{error}");
            assert!(error.to_string().starts_with("/nowhere/b.tgz: "), "{error}");
        }
        for line in ["--kubeconfig x", "--as jane", "--request-timeout 1"] {
            assert!(of(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_cluster_is_asked_as_somebody_else_and_for_so_long() {
        let of = |line: &str| {
            let words = ["status"].into_iter().chain(line.split_whitespace());
            Line::try_parse_from(words).ok().map(|line| KubeContext::from(line.place).login)
        };
        let groups = vec!["dev".to_owned(), "ops".to_owned()];
        let jane = Login { user: Some("jane".into()), groups, limit: Some(Duration::from_secs(90)) };
        assert_eq!(of("--as jane --as-group dev --as-group ops --request-timeout 1m30s"), Some(jane));
        assert_eq!(of("--context west"), Some(Login::default()));
        assert_eq!(of("--as-group dev"), None, "a group of nobody");
    }

    #[test]
    fn every_command_that_asks_a_cluster_takes_the_flags() {
        let mut all = Args::command();
        all.build();
        let mut commands: Vec<_> = all.get_subcommands().collect();
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let has = |name: &str| command.get_arguments().any(|flag| flag.get_long() == Some(name));
            if has("kubeconfig") {
                for flag in ["as", "as-group", "request-timeout"] {
                    assert!(has(flag), "{}: --{flag}", command.get_name());
                }
            }
        }
    }
}
