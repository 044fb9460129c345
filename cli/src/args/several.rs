//! The clusters of a command that looks at several at once.

use std::{path::PathBuf, time::Duration};

use clap::Args as ClapArgs;

use super::duration::duration;
use crate::{Error, KubeContext};

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
    /// Limit of each request.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    request_timeout: Duration,
}

impl Several {
    /// Limit of each request.
    pub(super) fn limit(&self) -> Duration {
        self.request_timeout
    }

    /// The contexts, each once.
    pub(super) fn contexts(self) -> Result<Vec<KubeContext>, Error> {
        let of = |name| KubeContext { file: self.kubeconfig.clone(), name };
        let mut contexts = match (self.all_contexts, self.contexts.is_empty()) {
            (true, _) => of(None).all().map_err(usage)?,
            (false, true) => vec![of(self.context)],
            (false, false) => self.contexts.into_iter().map(|name| of(Some(name))).collect(),
        };
        let names: Vec<_> = contexts.iter().filter_map(|context| context.name.as_ref()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Error::Argument(format!(
                "--contexts: {:?} is named twice. try: name it once",
                twice.1
            )));
        }
        if self.leader_context.as_ref().is_some_and(|leader| !names.contains(&leader)) {
            contexts.push(of(self.leader_context));
        }
        Ok(contexts)
    }
}

/// What cannot be used of a kubeconfig is for who runs the command to correct.
pub(super) fn usage(error: Error) -> Error {
    match error {
        error @ Error::Kubeconfig { .. } => Error::Argument(error.to_string()),
        other => other,
    }
}
