//! What can go wrong, by what the caller can do about it. Every message is one line and names what and where.

use std::{path::PathBuf, time::Duration};

/// Why a command stopped. What it did before stays; running it again goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument cannot be used; nothing was done. Correct it.
    #[error("{0}")]
    Argument(String),
    /// The kubeconfig cannot be read, or lacks what is needed. Correct it or name another.
    #[error("{place}: {source}")]
    Kubeconfig {
        /// File and context.
        place: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A request failed: the server is away, refuses us, or refuses the object.
    #[error("{cluster}: cannot {doing}: {}", brief(source))]
    Request {
        /// Context of the cluster.
        cluster: String,
        /// What was asked for.
        doing: String,
        /// The server's or the client's answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// Something did not come in time. Look there, then run the command again.
    #[error("{cluster}: {missing} after {} s", limit.as_secs())]
    Timeout {
        /// Context of the cluster.
        cluster: String,
        /// What is missing.
        missing: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// All is installed, but a daemon is not ready. Mend what it says, or wait; running the command again waits again.
    #[error(
        "{cluster}: {daemon} is not ready after {} s: {message}. Its Pod: kubectl --context {cluster} -n freeport-system \
         describe pods; its log: kubectl --context {cluster} -n freeport-system logs deploy/{daemon}",
        limit.as_secs()
    )]
    NotReady {
        /// Context of the cluster.
        cluster: String,
        /// Which one.
        daemon: String,
        /// What it says, or what it does not say.
        message: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// CoreDNS was restarted, and its new Pods are not ready. Do what `next` says, or mend what keeps them.
    #[error("{cluster}: CoreDNS is not rolled out after {} s: {message}. {next}", limit.as_secs())]
    NotRolledOut {
        /// Context of the cluster.
        cluster: String,
        /// How far it is, and what its newest Pod says.
        message: String,
        /// How long it was waited for.
        limit: Duration,
        /// How to take it back, or go on.
        next: String,
    },
    /// What is in the cluster does not allow it; nothing was done. The message says what to do first.
    #[error("{cluster}: {reason}")]
    Refused {
        /// Context of the cluster.
        cluster: String,
        /// What is in the way.
        reason: String,
    },
    /// An object has no YAML form.
    #[error("{object}: {source}")]
    Yaml {
        /// Which one.
        object: String,
        /// Why.
        source: serde_yaml::Error,
    },
    /// Something has no JSON form.
    #[error("{object}: {source}")]
    Json {
        /// What.
        object: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The part of an API error that helps: the server's message, or the chain of causes of a request that got none.
fn brief(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Service(cause) => {
            let mut text = cause.to_string();
            let mut next = cause.source();
            while let Some(cause) = next {
                let more = cause.to_string();
                if !text.contains(&more) {
                    text = format!("{text}: {more}");
                }
                next = cause.source();
            }
            text
        }
        other => other.to_string(),
    }
}
