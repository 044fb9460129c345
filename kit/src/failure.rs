//! Why a request failed, told apart by what somebody can do about it. What is kept of an error is stable: the same cause gives
//! the same failure each time, so that it can be said in a status without being written again and again.

use std::{error::Error, io};

use jiff::Timestamp;
use kube::core::Status;
use rustls::CertificateError;

use crate::hold::StandsBy;

/// Why an API server does not do what is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Its certificate is not of the authority we were given, or not for its address.
    #[error("the server's certificate {0}")]
    Untrusted(String),
    /// Its certificate is not valid at this time, or our clock is wrong.
    #[error("the server's certificate {0}")]
    Expired(String),
    /// It does not accept our token.
    #[error("the token is refused (401)")]
    Unauthorized,
    /// We may not do that, in its words.
    #[error("forbidden (403): {0}")]
    Forbidden(String),
    /// The Namespace is not there, or is being deleted.
    #[error("the Namespace does not exist or is being deleted")]
    NamespaceMissing,
    /// It does not serve the kind.
    #[error("the kind is not served (404)")]
    KindMissing,
    /// No answer.
    #[error("{0}")]
    Unreachable(&'static str),
    /// Something else, in its words.
    #[error("{0}")]
    Other(String),
}

/// A proxy made no tunnel to the API server, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoTunnel(pub(crate) &'static str);

impl Failure {
    /// Whether the API server answered, and its answer stays the same until somebody changes something.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Failure::Unauthorized | Failure::Forbidden(_) | Failure::NamespaceMissing | Failure::KindMissing
        )
    }
}

/// Tells failures of requests apart.
pub fn classify(error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => answered(status),
        other => cause(other).unwrap_or_else(|| Failure::Other(innermost(other).to_string())),
    }
}

/// What an API server says in place of an answer.
pub(crate) fn answered(status: &Status) -> Failure {
    let details = status.details.as_ref();
    let terminating =
        details.is_some_and(|d| d.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    match status.code {
        401 => Failure::Unauthorized,
        403 if terminating => Failure::NamespaceMissing,
        403 => Failure::Forbidden(status.message.clone()),
        404 if details.is_some_and(|d| d.kind == "namespaces") => Failure::NamespaceMissing,
        // A kind that is not served has no object to name: the answer is plain text.
        404 if details.is_none_or(|d| d.name.is_empty()) => Failure::KindMissing,
        429 => Failure::Unreachable("it is overloaded (429)"),
        // It serves; who is to be asked first does not.
        500 if status.message.contains("failed calling webhook") => Failure::Other(status.message.clone()),
        500.. => Failure::Unreachable("it answers, but does not serve yet, or not any more (5xx)"),
        _ => Failure::Other(status.message.clone()),
    }
}

/// What lies behind an error of the connection.
fn cause(error: &(dyn Error + 'static)) -> Option<Failure> {
    for link in chain(error) {
        if let Some(rustls::Error::InvalidCertificate(why)) = link.downcast_ref() {
            return Some(of_certificate(why));
        }
        if link.is::<rustls::Error>() {
            return Some(Failure::Other(format!("no TLS connection: {link}")));
        }
        if let Some(NoTunnel(why)) = link.downcast_ref() {
            return Some(Failure::Unreachable(why));
        }
        if link.is::<StandsBy>() {
            return Some(Failure::Unreachable("this replica is not the active one"));
        }
        if link.to_string() == "dns error" {
            return Some(Failure::Unreachable("its name cannot be resolved"));
        }
        if let Some(io) = link.downcast_ref::<io::Error>()
            && let Some(said) = unreachable(io.kind())
        {
            return Some(Failure::Unreachable(said));
        }
    }
    // What remains of the HTTP stack's own errors is a connection that ended while it was used.
    matches!(error.downcast_ref(), Some(kube::Error::Service(_) | kube::Error::HyperError(_)))
        .then_some(Failure::Unreachable("the connection broke"))
}

fn unreachable(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::ConnectionRefused => Some("the connection is refused: nothing listens there"),
        io::ErrorKind::TimedOut => Some("no answer in time"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some("there is no route to it"),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::UnexpectedEof => Some("the connection broke"),
        _ => None,
    }
}

/// What is wrong with a certificate.
pub(crate) fn of_certificate(why: &CertificateError) -> Failure {
    // To the hour, so that saying it again says the same.
    let clock = |time: &rustls::pki_types::UnixTime| {
        said(time.as_secs()).map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H h UTC").to_string())
    };
    let date = |time: &rustls::pki_types::UnixTime| {
        said(time.as_secs()).map_or_else(String::new, |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
    };
    match why {
        CertificateError::ExpiredContext { time, not_after } => {
            Failure::Expired(format!("expired {}, and the clock here says {}", date(not_after), clock(time)))
        }
        CertificateError::NotValidYetContext { time, not_before } => Failure::Expired(format!(
            "is not valid before {}, and the clock here says {}",
            date(not_before),
            clock(time)
        )),
        CertificateError::Expired => Failure::Expired("expired".into()),
        CertificateError::NotValidYet => Failure::Expired("is not valid yet".into()),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Failure::Untrusted("is not for this address".into())
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Failure::Untrusted("is signed by another authority".into())
        }
        other => Failure::Untrusted(format!("is not accepted: {other}")),
    }
}

fn said(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

/// The error and what is behind it. An `io::Error` made of another error does not call that one its source.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let behind = |error: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>() {
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    };
    std::iter::successors(Some(error), behind)
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::UnixTime;
    use std::time::Duration;

    use super::*;

    /// As the connector wraps it.
    fn connecting(error: impl Error + Send + Sync + 'static) -> kube::Error {
        kube::Error::Service(io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error)).into())
    }

    fn api(code: u16, change: impl FnOnce(&mut Status)) -> Failure {
        let mut status = Status::failure("words", "Reason").with_code(code);
        change(&mut status);
        classify(&kube::Error::Api(status.boxed()))
    }

    fn details(json: serde_json::Value) -> Option<kube::core::response::StatusDetails> {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(api(401, |_| {}), Failure::Unauthorized);
        assert_eq!(api(403, |_| {}), Failure::Forbidden("words".into()));
        let going = serde_json::json!({"causes": [{"reason": "NamespaceTerminating"}]});
        assert_eq!(api(403, |s| s.details = details(going)), Failure::NamespaceMissing);
        let namespace = serde_json::json!({"kind": "namespaces", "name": "clusterset-x"});
        assert_eq!(api(404, |s| s.details = details(namespace)), Failure::NamespaceMissing);
        assert_eq!(api(404, |s| s.message = "404 page not found".into()), Failure::KindMissing);
        let lease = serde_json::json!({"kind": "leases", "name": "freeport-leader"});
        assert_eq!(api(404, |s| s.details = details(lease)), Failure::Other("words".into()));
        assert!(matches!(api(503, |_| {}), Failure::Unreachable(_)));
        let unasked = "Internal error occurred: failed calling webhook \"x\": no endpoints";
        assert_eq!(api(500, |s| s.message = unasked.into()), Failure::Other(unasked.into()));
        assert_eq!(api(422, |_| {}), Failure::Other("words".into()));
    }

    #[test]
    fn certificates_are_told_apart_however_deep_they_lie() {
        let refused = |why| classify(&connecting(rustls::Error::InvalidCertificate(why)));
        assert!(matches!(refused(CertificateError::UnknownIssuer), Failure::Untrusted(_)));
        assert!(matches!(refused(CertificateError::BadSignature), Failure::Untrusted(_)));
        assert!(
            matches!(refused(CertificateError::NotValidForName), Failure::Untrusted(why) if why.contains("address"))
        );
        let at = |secs| UnixTime::since_unix_epoch(Duration::from_secs(secs));
        let expired =
            |now| refused(CertificateError::ExpiredContext { time: at(now), not_after: at(1_700_000_000) });
        let Failure::Expired(said) = expired(1_800_000_000) else { panic!() };
        assert_eq!(said, "expired 2023-11-14 22:13 UTC, and the clock here says 2027-01-15 08 h UTC");
        assert_eq!(expired(1_800_000_000), expired(1_800_000_030), "said again it says the same");
    }

    #[test]
    fn a_server_that_is_not_there_is_unreachable() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(io::Error::other(refused).into());
        assert!(matches!(classify(&error), Failure::Unreachable(why) if why.contains("refused")));
        let timeout = kube::Error::Service(io::Error::from(io::ErrorKind::TimedOut).into());
        assert!(matches!(classify(&timeout), Failure::Unreachable(_)));
    }
}
