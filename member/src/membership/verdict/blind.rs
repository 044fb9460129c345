//! Kinds that cannot be watched.

use api::condition::Verdict;
use kit::{failure::Failure, watch::Trouble};

use super::{lost, no};
use crate::{identity::Target, session::Blind};

/// What it means that these cannot be watched. Every feature among them is named; the reason is that of the first.
pub(super) fn of(blind: &[Blind], target: &Target) -> Verdict {
    let verdicts: Vec<_> = blind.iter().map(|one| one_of(one, target)).collect();
    let reason = verdicts.first().map_or(CANNOT_WATCH, |verdict| verdict.reason.as_str());
    let messages: Vec<_> = verdicts.iter().map(|verdict| verdict.message.as_str()).collect();
    no(reason, messages.join(". "))
}

const CANNOT_WATCH: &str = "CannotWatch";

fn one_of(Blind { feature, troubles, unlisted }: &Blind, target: &Target) -> Verdict {
    let verdict = troubles.iter().find_map(|trouble| actionable(trouble, target)).unwrap_or_else(|| {
        let kinds = list(troubles, unlisted).join(", ");
        no(CANNOT_WATCH, format!("this member exports and imports nothing until it can list: {kinds}"))
    });
    match feature {
        Some(feature) => no(&verdict.reason, format!("{feature}: {}", verdict.message)),
        None => verdict,
    }
}

/// What to say about a trouble, if somebody can act.
fn actionable(Trouble { source, failure }: &Trouble, target: &Target) -> Option<Verdict> {
    let kind = source.kind.rsplit(' ').next().unwrap_or(source.kind);
    let is_leader = source.cluster == "leader";
    let (reason, message) = match failure {
        Failure::KindMissing if is_leader => {
            ("CRDMissing", not_served("the leader's cluster", kind, "manifests/crds-leader.yaml"))
        }
        Failure::KindMissing => {
            ("CRDMissing", not_served("this cluster", kind, "manifests/crds-member.yaml"))
        }
        Failure::Forbidden(answer) if is_leader => {
            ("Forbidden", lost::forbidden(answer, &target.us.common_area))
        }
        Failure::Forbidden(answer) => (
            "Forbidden",
            format!(
                "this cluster's API server says: {answer}. The member's ServiceAccount does not have all the rights it needs: \
                 apply manifests/member.yaml"
            ),
        ),
        failure if is_leader && failure.is_refusal() => return Some(lost::of(failure, target)),
        _ => return None,
    };
    Some(no(reason, format!("{message}. Until then nothing is exported or imported")))
}

fn not_served(cluster: &str, kind: &str, manifest: &str) -> String {
    format!("{cluster} does not serve kind {kind}: apply {manifest} there")
}

/// The kinds that were never listed, and why, if that is known.
fn list(troubles: &[Trouble], unlisted: &[&str]) -> Vec<String> {
    let why = |kind: &&str| match troubles.iter().find(|trouble| trouble.source.kind == *kind) {
        Some(trouble) => format!("{kind} of {} cluster ({})", trouble.source.cluster, trouble.failure),
        None => (*kind).to_owned(),
    };
    unlisted.iter().map(why).collect()
}

#[cfg(test)]
mod tests {
    use kit::watch::Source;

    use super::*;
    use crate::membership::fixture::target;

    fn blind(
        feature: Option<&'static str>,
        cluster: &'static str,
        kind: &'static str,
        failure: Failure,
    ) -> Blind {
        let troubles = vec![Trouble { source: Source { cluster, kind }, failure }];
        Blind { feature, troubles, unlisted: vec![kind] }
    }

    fn of_one(cluster: &'static str, kind: &'static str, failure: Failure) -> Verdict {
        of(&[blind(Some("Services"), cluster, kind, failure)], &target())
    }

    #[test]
    fn what_cannot_be_watched_is_named_with_its_cluster() {
        let missing = of_one("leader", "own ResourceExport", Failure::KindMissing);
        assert_eq!(missing.reason, "CRDMissing");
        let said = "Services: the leader's cluster does not serve kind ResourceExport";
        assert!(missing.message.starts_with(said), "{}", missing.message);
        let local = of_one("local", "ServiceExport", Failure::KindMissing);
        assert!(local.message.contains("crds-member.yaml"), "{}", local.message);
        assert_eq!(of_one("local", "Service", Failure::Forbidden("no".into())).reason, "Forbidden");
        assert_eq!(of_one("leader", "Lease", Failure::Unauthorized).reason, "TokenRefused");
        assert_eq!(of_one("local", "Service", Failure::Other("odd".into())).reason, "CannotWatch");
    }

    #[test]
    fn every_feature_that_cannot_watch_is_named() {
        let several = [
            blind(None, "leader", "Lease", Failure::Forbidden("no".into())),
            blind(Some("Services"), "local", "Service", Failure::Other("odd".into())),
            blind(Some("Gateways"), "leader", "Gateway", Failure::KindMissing),
        ];
        let verdict = of(&several, &target());
        assert_eq!(verdict.reason, "Forbidden");
        for said in ["Services: this member", "Gateways: the leader's cluster does not serve kind Gateway"] {
            assert!(verdict.message.contains(said), "{}", verdict.message);
        }
    }
}
