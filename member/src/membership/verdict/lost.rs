//! The leader's API server does not answer, or refuses us.

use api::condition::Verdict;
use kit::failure::Failure;

use super::no;
use crate::identity::Target;

/// What it means that our Lease cannot be renewed.
pub(super) fn of(failure: &Failure, target: &Target) -> Verdict {
    let (server, secret, area) = (&target.server, &target.secret, &target.us.common_area);
    let (reason, message) = match failure {
        Failure::Untrusted(why) => (
            "CertificateUntrusted",
            format!(
                "the certificate of {server} {why}. Put the CA certificate of the leader's API server into key ca.crt of \
                 Secret {secret}, and set spec.leaders[0].server to an address that the certificate is valid for"
            ),
        ),
        Failure::Expired(why) => (
            "CertificateExpired",
            format!(
                "the certificate of {server} {why}. Renew the certificate or correct the clock, whichever is wrong"
            ),
        ),
        Failure::Unauthorized => (
            "TokenRefused",
            format!(
                "{server} does not accept the token of Secret {secret}. The token expired or was revoked, or its \
                 ServiceAccount or the Common Area {area} was deleted in the leader's cluster. Run freeport join again to \
                 get a new token"
            ),
        ),
        Failure::Forbidden(answer) => ("Forbidden", forbidden(answer, area)),
        Failure::NamespaceMissing => (
            "CommonAreaMissing",
            format!(
                "the leader's cluster has no Namespace {area}, or is deleting it. Check spec.namespace, or create the Common \
                 Area again (freeport init in the leader's cluster, then freeport join)"
            ),
        ),
        Failure::KindMissing => (
            "LeaderUnreachable",
            format!(
                "{server} is not a Kubernetes API server: it does not serve Leases. Check spec.leaders[0].server"
            ),
        ),
        Failure::Unreachable(why) => (
            "LeaderUnreachable",
            format!(
                "{server} cannot be reached: {why}. Check that it runs, that spec.leaders[0].server is its address, and the \
                 network between the clusters"
            ),
        ),
        Failure::Other(why) => ("Disconnected", format!("{server} refuses the Lease of this member: {why}")),
    };
    no(reason, format!("{message}. Imports stay as they are"))
}

/// The leader's API server answered that we lack a right.
pub(super) fn forbidden(answer: &str, area: &str) -> String {
    format!(
        "the leader's API server says: {answer}. Either Namespace {area} is not the Common Area that this member joined (check \
         spec.namespace), or the Namespace or this member's Role in it was deleted (run freeport join again)"
    )
}

#[cfg(test)]
mod tests {
    use api::condition::Status;

    use super::*;
    use crate::membership::{fixture::target, verdict::is_problem};

    #[test]
    fn every_failure_has_its_reason_and_says_where_to_look() {
        for (failure, reason, where_) in [
            (Failure::Untrusted("is signed by another authority".into()), "CertificateUntrusted", "ca.crt"),
            (Failure::Expired("expired".into()), "CertificateExpired", "clock"),
            (Failure::Unauthorized, "TokenRefused", "freeport-leader-token"),
            (Failure::Forbidden("no".into()), "Forbidden", "spec.namespace"),
            (Failure::NamespaceMissing, "CommonAreaMissing", "clusterset-demo"),
            (Failure::Unreachable("nothing listens there"), "LeaderUnreachable", "https://10.0.0.1:6443"),
            (Failure::Other("odd".into()), "Disconnected", "odd"),
        ] {
            let verdict = of(&failure, &target());
            assert_eq!((verdict.reason.as_str(), verdict.status), (reason, Status::False));
            assert!(verdict.message.contains(where_), "{}", verdict.message);
            assert!(is_problem(&verdict));
        }
    }
}
