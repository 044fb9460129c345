//! What can go wrong, by what the caller can do about it. Every message is one line and names what and where.

use std::{path::PathBuf, time::Duration};

use picture::plan::Unplanned;

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
    #[error("{cluster}: cannot {doing}: {}{}", brief(source), next(cluster, source))]
    Request {
        /// Context of the cluster.
        cluster: String,
        /// What was asked for.
        doing: String,
        /// The server's or the client's answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time.
    #[error("{cluster}: cannot {doing}: {server} gave no answer in {} s", limit.as_secs())]
    NoAnswer {
        /// Context of the cluster.
        cluster: String,
        /// What was asked for.
        doing: String,
        /// URL of the API server.
        server: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// Something did not come in time. Look there, then run the command again.
    #[error("{cluster}: timed out after {} s: {missing}", limit.as_secs())]
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
    /// The command takes something away, which nobody confirmed; nothing was done. Read what it would do, then add `--yes`.
    #[error("{cluster}: {reason}")]
    Unconfirmed {
        /// Context of the cluster.
        cluster: String,
        /// What to add.
        reason: String,
    },
    /// An API server refuses what a daemon has to write. What was done stays. Change the policy, webhook, quota or right that refuses it: the
    /// daemon goes on by itself.
    #[error("{cluster}: {reason}")]
    WriteRefused {
        /// Context of the cluster whose daemon it is.
        cluster: String,
        /// What is refused, with the API server's words.
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
    /// A bundle cannot be used. Its message ends with what to try.
    #[error("{}: {reason}", path.display())]
    Bundle {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
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

impl From<Unplanned> for Error {
    fn from(unplanned: Unplanned) -> Self {
        match unplanned {
            Unplanned::UnknownCluster(why) => Self::Argument(why),
            Unplanned::Unread { context, why } => Self::Refused { cluster: context, reason: why },
        }
    }
}

/// Why a request failed, by what somebody can do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure<'a> {
    /// The API server does not accept the credential (401).
    Unauthorized,
    /// The credential has no right to it (403), in the API server's words.
    Forbidden(&'a str),
    /// There is no such object, or no such kind (404).
    Missing,
    /// Somebody else created or changed the object first (409).
    Conflict,
    /// The API server answered something else, in its words.
    Refused(&'a str),
    /// The API server did not answer, or not in a way that we understand.
    NoAnswer,
}

/// Tells failures of requests apart.
pub(crate) fn classify(error: &kube::Error) -> Failure<'_> {
    let kube::Error::Api(status) = error else { return Failure::NoAnswer };
    match status.code {
        401 => Failure::Unauthorized,
        403 => Failure::Forbidden(&status.message),
        // Without its CRD the kind is unknown, and the answer is plain text, which has no reason.
        404 => Failure::Missing,
        409 => Failure::Conflict,
        _ => Failure::Refused(&status.message),
    }
}

impl Error {
    /// Exit code of a command that ends with this error; docs/cli.md has the table.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Argument(_) | Self::Kubeconfig { .. } | Self::Unconfirmed { .. } => 2,
            Self::Timeout { .. } | Self::NotReady { .. } | Self::NotRolledOut { .. } => 4,
            Self::Request { .. }
            | Self::NoAnswer { .. }
            | Self::Refused { .. }
            | Self::WriteRefused { .. }
            | Self::Yaml { .. }
            | Self::Json { .. }
            | Self::Bundle { .. }
            | Self::File { .. } => 3,
        }
    }

    /// Why a request failed, without what was asked for and where.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Request { source, .. } if let kube::Error::Api(status) = &**source => {
                status.message.clone()
            }
            Self::Request { source, .. } => brief(source).trim_start_matches("no answer: ").to_owned(),
            Self::NoAnswer { server, limit, .. } => {
                format!("{server} gave no answer in {} s", limit.as_secs())
            }
            other => other.to_string(),
        }
    }

    /// Why the request failed that this error is about; no answer if it is about none.
    pub(crate) fn failure(&self) -> Failure<'_> {
        match self {
            Self::Request { source, .. } => classify(source),
            _ => Failure::NoAnswer,
        }
    }
}

/// The part of an API error that helps: the server's message, or the chain of causes of a request that got no answer.
fn brief(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            format!(
                "the API server does not accept the credential of the kubeconfig (401 {})",
                status.message
            )
        }
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
            format!("no answer: {text}")
        }
        other => other.to_string(),
    }
}

/// What to do where a right is missing.
fn next(cluster: &str, error: &kube::Error) -> String {
    let Failure::Forbidden(message) = classify(error) else { return String::new() };
    let Some((verb, resource)) = missing_right(message) else { return String::new() };
    format!("; this needs the right to {verb} {resource} in {cluster}: ask for it, or name another context")
}

/// Verb and resource that RBAC misses; none where something else forbids it, as a quota or an admission policy.
fn missing_right(message: &str) -> Option<(&str, String)> {
    let (_, asked) = message.split_once("\" cannot ")?;
    let (verb, asked) = asked.split_once(" resource \"")?;
    let (resource, place) = asked.split_once('"')?;
    let (group, _) = place.strip_prefix(" in API group \"")?.split_once('"')?;
    Some((verb, if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }))
}

#[cfg(test)]
mod tests {
    use std::io;

    use kube::core::Status;

    use super::*;

    #[test]
    fn a_refusal_is_not_told_as_silence() {
        let answered =
            |code| kube::Error::Api(Status::failure("jane may not", "Reason").with_code(code).boxed());
        for (code, failure) in [
            (401, Failure::Unauthorized),
            (403, Failure::Forbidden("jane may not")),
            (404, Failure::Missing),
            (409, Failure::Conflict),
            (500, Failure::Refused("jane may not")),
        ] {
            assert_eq!(classify(&answered(code)), failure);
            let error = Error::Request {
                cluster: "east".into(),
                doing: "list leases".into(),
                source: Box::new(answered(code)),
            };
            let said = error.to_string();
            assert!(
                said.starts_with("east: cannot list leases: ") && said.contains("jane may not"),
                "{said}"
            );
            assert!(!said.contains("no answer"), "{said}");
        }
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        let away = kube::Error::Service(refused.into());
        assert_eq!(classify(&away), Failure::NoAnswer);
        assert!(brief(&away).starts_with("no answer: "), "{}", brief(&away));
    }

    #[test]
    fn a_cluster_that_could_not_be_read_is_no_wrong_argument() {
        let code = |unplanned: Unplanned| Error::from(unplanned).exit_code();
        assert_eq!(code(Unplanned::UnknownCluster("no cluster is called \"north\"".into())), 2);
        assert_eq!(code(Unplanned::Unread { context: "east".into(), why: "cannot plan".into() }), 3);
    }

    #[test]
    fn a_missing_right_is_said_with_verb_resource_and_cluster() {
        let says = |message: &str| {
            let answer = kube::Error::Api(Status::failure(message, "Forbidden").with_code(403).boxed());
            let (cluster, doing) = ("east".into(), "read CustomResourceDefinition x".into());
            Error::Request { cluster, doing, source: Box::new(answer) }.to_string()
        };
        let said = says(
            "customresourcedefinitions.apiextensions.k8s.io \"x\" is forbidden: User \"jane\" cannot get resource \
             \"customresourcedefinitions\" in API group \"apiextensions.k8s.io\" at the cluster scope",
        );
        assert!(
            said.contains("the right to get customresourcedefinitions.apiextensions.k8s.io in east"),
            "{said}"
        );
        let said = says(
            "namespaces \"kube-system\" is forbidden: User \"jane\" cannot get resource \"namespaces\" in API group \"\" in the namespace \"kube-system\"",
        );
        assert!(said.contains("the right to get namespaces in east"), "{said}");
        let said = says("pods \"x\" is forbidden: exceeded quota: q");
        assert!(said.ends_with("exceeded quota: q"), "it is no right that is missing: {said}");
    }
}
