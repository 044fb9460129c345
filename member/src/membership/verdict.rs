//! What there is to say about our ClusterSet: what is wrong, and what can be done about it. Pure.

use api::{
    cluster_set::READY,
    condition::{Status, Verdict},
    membership::Wire,
};
use kit::{failure::Failure, watch::Trouble};

use super::target::Target;
use crate::link::State;

/// Reason of the condition while the leader was not heard yet.
const CONNECTING: &str = "Connecting";
/// Reasons of the condition when exports and imports flow, but not for long perhaps, or not all.
const CLOCK_SKEW: &str = "ClockSkew";
const LEADER_SILENT: &str = "LeaderSilent";
const CRD_OUTDATED: &str = "CRDOutdated";

const UNDER_ANTREA: &str =
    "exports and imports flow; the leader is Antrea's, by which only ports and endpoints travel";

/// What is wrong, and what can be done about it.
pub(super) fn no(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict::new(READY, Status::False, reason, message)
}

/// About a ClusterSet that has to wait until another one has been left.
pub(super) fn leaving() -> Verdict {
    let message =
        "this cluster is leaving the ClusterSet it took part in; see Events of ConfigMap freeport-membership";
    Verdict::new(READY, Status::Unknown, "Leaving", message)
}

/// About a ClusterSet beside the one we belong to.
pub(super) fn another(ours: &str) -> Verdict {
    let message = format!(
        "this cluster belongs to ClusterSet {ours}: a cluster takes part in one. Delete one of the two"
    );
    no("AnotherClusterSet", message)
}

/// What the state of the link to `target` means for the ClusterSet.
pub(super) fn of(state: &State, target: &Target) -> Verdict {
    match state {
        State::Connecting => {
            Verdict::new(READY, Status::Unknown, CONNECTING, "no answer from the leader yet")
        }
        State::Connected { leader_is_silent: true, .. } => silent(target),
        State::Connected { lacking, .. } if !lacking.is_empty() => outdated(lacking),
        State::Connected { skew: Some(ahead), .. } => skewed(*ahead),
        State::Connected { wire: Wire::Antrea, .. } => {
            Verdict::new(READY, Status::True, "Connected", UNDER_ANTREA)
        }
        State::Connected { .. } => Verdict::new(READY, Status::True, "Connected", "exports and imports flow"),
        State::Blind { troubles, unlisted } => blind(troubles, unlisted, target),
        State::Pruned { what } => no(
            "SchemaPruned",
            format!(
                "the leader's API server throws away what this member exports: {what}. Install Freeport's CRDs there again \
                 (freeport init at the leader, or kubectl apply -f manifests/crds-leader.yaml). Imports stay as they are"
            ),
        ),
        State::Lost { failure } => lost(failure, target),
        State::IdTaken { holder } => {
            let (us, area) = (&target.us.cluster, &target.us.common_area);
            let lease = api::name::member_lease(us);
            no(
                "DuplicateClusterID",
                format!(
                    "another cluster uses cluster ID {us} and is alive (Lease {lease} in Namespace {area} of the leader is \
                     held by {holder}, the uid of that cluster's Namespace kube-system and its Pod); nothing is exported or \
                     imported. Leave with one of the two and join it again under another ID"
                ),
            )
        }
    }
}

/// Whether there is nothing to say yet.
pub(super) fn is_connecting(verdict: &Verdict) -> bool {
    verdict.reason == CONNECTING
}

/// Whether it is something to be seen to.
pub(super) fn is_problem(verdict: &Verdict) -> bool {
    verdict.status == Status::False
        || [CLOCK_SKEW, LEADER_SILENT, CRD_OUTDATED].contains(&verdict.reason.as_str())
}

/// Endpoints do not need the leader's daemon, so what is imported goes on.
fn silent(target: &Target) -> Verdict {
    let area = &target.us.common_area;
    let message = format!(
        "endpoints flow, but the leader's API server is all there is: freeport-leader does not renew its Lease in Namespace \
         {area}, so what is exported anew or taken back takes no effect. Look after it there (freeport status in the \
         leader's cluster)"
    );
    Verdict::new(READY, Status::True, LEADER_SILENT, message)
}

/// What the API server here throws away is missed by users here alone.
fn outdated(lacking: &[String]) -> Verdict {
    let message = format!(
        "exports and imports flow, but CRDs of this cluster are older than this member, and what they do not know is lost \
         here: {}. Install Freeport's again (freeport join, or kubectl apply -f manifests/crds-member.yaml)",
        lacking.join("; ")
    );
    Verdict::new(READY, Status::True, CRD_OUTDATED, message)
}

fn skewed(ahead: i64) -> Verdict {
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    let message = format!(
        "exports and imports flow, but the leader's clock is {} s {way} this cluster's: set the clocks, before tokens and \
         certificates seem expired",
        ahead.abs()
    );
    Verdict::new(READY, Status::True, CLOCK_SKEW, message)
}

/// The leader does not let us be present.
fn lost(failure: &Failure, target: &Target) -> Verdict {
    let (server, secret, area) = (&target.server, &target.secret, &target.us.common_area);
    let (reason, message) = match failure {
        Failure::Untrusted(why) => (
            "CertificateUntrusted",
            format!(
                "the certificate of {server} {why}: put the authority of the leader's API server into key ca.crt of Secret \
                 {secret}, and an address of its certificate into spec.leaders[0].server"
            ),
        ),
        Failure::Expired(why) => (
            "CertificateExpired",
            format!(
                "the certificate of {server} {why}: renew the certificate, or set the clock, whichever is wrong"
            ),
        ),
        Failure::Unauthorized => (
            "TokenRefused",
            format!(
                "{server} does not accept the token of Secret {secret}: it is expired or revoked, or its ServiceAccount or \
                 the Common Area {area} was deleted at the leader. Join again for a new one (freeport join)"
            ),
        ),
        Failure::Forbidden(said) => forbidden(said, area),
        Failure::NamespaceMissing => (
            "CommonAreaMissing",
            format!(
                "the leader's cluster has no Namespace {area}, or it is being deleted: check spec.namespace, or make the \
                 Common Area again (freeport init at the leader, then freeport join)"
            ),
        ),
        Failure::KindMissing => (
            "LeaderUnreachable",
            format!("{server} is no API server: it does not know Leases. Check spec.leaders[0].server"),
        ),
        Failure::Unreachable(why) => (
            "LeaderUnreachable",
            format!(
                "{server} cannot be reached: {why}. Check that it runs, spec.leaders[0].server, and the network between"
            ),
        ),
        Failure::Other(why) => ("Disconnected", format!("{server} does not take our Lease: {why}")),
    };
    no(reason, format!("{message}. Imports stay as they are"))
}

fn forbidden(said: &str, area: &str) -> (&'static str, String) {
    let message = format!(
        "the leader's API server says: {said}. Namespace {area} is not the Common Area this member joined (check \
         spec.namespace), or is gone, or the Role of this member in it is: join again (freeport join)"
    );
    ("Forbidden", message)
}

/// Something cannot be watched: the first trouble that somebody can do something about is told in full.
fn blind(troubles: &[Trouble], unlisted: &[&str], target: &Target) -> Verdict {
    let area = &target.us.common_area;
    for Trouble { source, failure } in troubles {
        let kind = source.kind.rsplit(' ').next().unwrap_or(source.kind);
        let leader = source.cluster == "leader";
        let (reason, message) = match failure {
            Failure::KindMissing => {
                let (of, manifest) = if leader {
                    ("the leader's cluster", "manifests/crds-leader.yaml")
                } else {
                    ("this cluster", "manifests/crds-member.yaml")
                };
                ("CRDMissing", format!("{of} does not serve kind {kind}: apply {manifest} there"))
            }
            Failure::Forbidden(said) if leader => forbidden(said, area),
            Failure::Forbidden(said) => (
                "Forbidden",
                format!(
                    "this cluster's API server says: {said}. The rights of the member's ServiceAccount are incomplete: \
                     apply manifests/member.yaml"
                ),
            ),
            failure if leader && failure.is_refusal() => return lost(failure, target),
            _ => continue,
        };
        return no(reason, format!("{message}. Until then nothing is exported or imported"));
    }
    let why = |kind: &&str| match troubles.iter().find(|trouble| trouble.source.kind == *kind) {
        Some(trouble) => format!("{kind} of {} cluster ({})", trouble.source.cluster, trouble.failure),
        None => (*kind).to_owned(),
    };
    let what: Vec<_> = unlisted.iter().map(why).collect();
    let what = what.join(", ");
    no("CannotWatch", format!("nothing is exported or imported until this can be listed: {what}"))
}

#[cfg(test)]
mod tests {
    use kit::watch::Source;

    use super::*;
    use crate::membership::desk::tests::target;

    fn lost_to(failure: Failure) -> Verdict {
        of(&State::Lost { failure }, &target())
    }

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
            let verdict = lost_to(failure);
            assert_eq!((verdict.reason.as_str(), verdict.status), (reason, Status::False));
            assert!(verdict.message.contains(where_), "{}", verdict.message);
            assert!(is_problem(&verdict));
        }
    }

    #[test]
    fn what_cannot_be_watched_is_named_with_its_cluster() {
        let blind = |cluster, kind, failure| {
            let troubles = vec![Trouble { source: Source { cluster, kind }, failure }];
            of(&State::Blind { troubles, unlisted: vec![kind] }, &target())
        };
        let missing = blind("leader", "own ResourceExport", Failure::KindMissing);
        assert_eq!(missing.reason, "CRDMissing");
        assert!(missing.message.starts_with("the leader's cluster does not serve kind ResourceExport"));
        let here = blind("local", "ServiceExport", Failure::KindMissing);
        assert!(here.message.contains("crds-member.yaml"), "{}", here.message);
        assert_eq!(blind("local", "Service", Failure::Forbidden("no".into())).reason, "Forbidden");
        assert_eq!(blind("leader", "Lease", Failure::Unauthorized).reason, "TokenRefused");
        assert_eq!(blind("local", "Service", Failure::Other("odd".into())).reason, "CannotWatch");
    }

    #[test]
    fn a_leader_whose_daemon_is_down_is_a_warning_whatever_its_clock_was() {
        let verdict = of(&connected(Some(-45), true, &[]), &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "LeaderSilent"));
        assert!(!verdict.message.contains("  "), "{}", verdict.message);
        assert!(is_problem(&verdict));
    }

    fn connected(skew: Option<i64>, leader_is_silent: bool, lacking: &[&str]) -> State {
        let lacking = lacking.iter().map(|what| (*what).to_owned()).collect();
        State::Connected { wire: Wire::Freeport, skew, leader_is_silent, lacking }
    }

    #[test]
    fn r78_an_older_crd_is_a_warning_that_names_what_is_lost() {
        let lacking = ["ServiceExport lacks version v1beta1", "ServiceImport lacks spec.ipFamilies"];
        let verdict = of(&connected(Some(-45), false, &lacking), &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "CRDOutdated"));
        for what in lacking {
            assert!(verdict.message.contains(what), "{}", verdict.message);
        }
        assert!(is_problem(&verdict));
        assert_eq!(of(&connected(None, true, &lacking), &target()).reason, "LeaderSilent");
    }

    #[test]
    fn whose_leader_it_is_is_said_where_it_is_not_ours() {
        let state =
            State::Connected { wire: Wire::Antrea, skew: None, leader_is_silent: false, lacking: vec![] };
        let verdict = of(&state, &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "Connected"));
        assert!(verdict.message.contains("the leader is Antrea's") && !is_problem(&verdict));
    }

    #[test]
    fn a_wrong_clock_is_a_warning_and_no_failure() {
        let verdict = of(&connected(Some(-45), false, &[]), &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "ClockSkew"));
        assert!(verdict.message.contains("45 s behind") && is_problem(&verdict));
        assert!(!is_problem(&of(&State::Connecting, &target())));
    }
}
