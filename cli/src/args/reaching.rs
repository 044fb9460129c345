//! Flags that say which cluster a command asks, as whom, and for how long.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::duration::duration;
use crate::{KubeContext, Login};

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
        KubeContext { file, name, login }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Args;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        place: Where,
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
