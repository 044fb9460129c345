//! The command line of `freeport rejoin`.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::{Leader, aside, duration::duration, reaching::LoginArgs};
use crate::RejoinOptions;

#[derive(ClapArgs, Debug)]
pub(super) struct RejoinArgs {
    #[command(flatten)]
    leader: Leader,
    /// Kubeconfig of the members [default: as kubectl].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the member [default: the current one].
    #[arg(long, value_name = "NAME", conflicts_with = "contexts")]
    context: Option<String>,
    /// Contexts of several members.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    contexts: Vec<String>,
    #[command(flatten)]
    login: LoginArgs,
    /// Leader's API server as members reach it [default: as here].
    #[arg(long, value_name = "URL")]
    leader_server: Option<String>,
    /// Do not wait until the members are connected.
    #[arg(long)]
    no_wait: bool,
    /// Limit of each wait.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

impl From<RejoinArgs> for RejoinOptions {
    fn from(args: RejoinArgs) -> Self {
        let (file, login) = (args.kubeconfig, args.login);
        let of = |name| login.context(file.clone(), name);
        let several: Vec<_> = args.contexts.into_iter().map(|name| of(Some(name))).collect();
        Self {
            leader: args.leader.context(file.as_ref(), &login),
            clusters: if several.is_empty() { vec![of(args.context)] } else { several },
            leader_server: args.leader_server,
            wait: !args.no_wait,
            timeout: args.timeout,
            aside,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::KubeContext;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        rejoin: RejoinArgs,
    }

    fn contexts(line: &str) -> Option<(String, Vec<String>)> {
        let words = ["rejoin"].into_iter().chain(line.split_whitespace());
        let options = RejoinOptions::from(Line::try_parse_from(words).ok()?.rejoin);
        let clusters = options.clusters.iter().map(KubeContext::to_string).collect();
        Some((options.leader.to_string(), clusters))
    }

    #[test]
    fn one_member_or_several_get_a_leader() {
        let of = |leader: &str, clusters: &[&str]| {
            let context = |name: &&str| format!("context {name:?} of all");
            Some((context(&leader), clusters.iter().map(context).collect::<Vec<_>>()))
        };
        let line = "--kubeconfig all --leader-context new";
        assert_eq!(contexts(&format!("{line} --context east")), of("new", &["east"]));
        assert_eq!(contexts(&format!("{line} --contexts east,west")), of("new", &["east", "west"]));
        assert_eq!(contexts("--contexts east"), None, "without a leader");
        assert_eq!(contexts(&format!("{line} --context east --contexts west")), None);
    }
}
