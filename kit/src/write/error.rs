//! Why a write did not happen.

use crate::failure::{self, Failure};

/// Why a write did not happen, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object is other than we know: our watch is behind. Its next event enqueues the key again.
    #[error("somebody else changed the object meanwhile")]
    Stale,
    /// The object or its Namespace is not there, or is going.
    #[error("the object or its Namespace is gone")]
    Gone,
    /// Somebody else's object has the name: it stays as it is, and ours cannot be there.
    #[error("{kind} {name} exists and was not created by Freeport; Freeport does not change it")]
    NotOurs {
        /// Of the object.
        kind: String,
        /// Of the object.
        name: String,
    },
    /// The API server refuses it: the same request fails until something changes.
    #[error("refused by the API server: {0}")]
    Refused(String),
    /// The API server dropped a field of it: the CRD there is older than ours and does not have the field.
    #[error(
        "the CRD of {kind} has no field {field}: the CRD is older than this daemon, or another product installed it"
    )]
    Pruned {
        /// Of the object.
        kind: String,
        /// Path of the first field that is not there.
        field: String,
    },
    /// No answer, or not a useful one.
    #[error("the API server cannot serve this: {0}")]
    Unreachable(#[source] Box<kube::Error>),
    /// What we want to send is not a JSON object.
    #[error("the object cannot be encoded as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Error {
    /// Why it failed, for a status: the same words for the same cause.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Unreachable(error) => failure::classify(error),
            Self::Gone => Failure::NamespaceMissing,
            other => Failure::Other(other.to_string()),
        }
    }

    /// Why the API server does not do it, in its words, where somebody has to change something there: it refuses it, or cannot ask a
    /// webhook that it has to ask. Its silence is no answer, and neither is that somebody was faster.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Refused(words) => Some(words.clone()),
            Self::Unreachable(error) => match (failure::classify(error), &**error) {
                (Failure::Other(words), kube::Error::Api(_)) => Some(words),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Errors of reads are told apart as those of writes.
impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        classify(error)
    }
}

/// What an answer means to who sent the request.
pub(super) fn classify(error: kube::Error) -> Error {
    let kube::Error::Api(status) = &error else {
        return Error::Unreachable(Box::new(error));
    };
    let terminating = || {
        let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    };
    match status.code {
        404 => Error::Gone,
        403 if terminating() => Error::Gone,
        409 => Error::Stale,
        429 | 500.. => Error::Unreachable(Box::new(error)),
        _ => Error::Refused(status.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_webhook_that_cannot_be_asked_refuses_and_silence_does_not() {
        let refusal = |code, words: &str| {
            classify(kube::Error::Api(Status::failure(words, "R").with_code(code).boxed())).refusal()
        };
        assert_eq!(refusal(403, "denied"), Some("denied".into()));
        let unasked = "Internal error occurred: failed calling webhook \"x\": no endpoints";
        assert_eq!(refusal(500, unasked), Some(unasked.into()));
        for (code, words) in [(503, "starting"), (429, "busy"), (404, "not found"), (409, "changed")] {
            assert_eq!(refusal(code, words), None, "{code}");
        }
    }
}
