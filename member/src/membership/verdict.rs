//! What the status of a ClusterSet says about this cluster: what is wrong, and what can be done about it. Pure.

mod blind;
mod complete;
mod credential;
mod lost;

use api::{
    cluster_set::READY,
    condition::{Status, Verdict},
    label,
    membership::Wire,
    name,
};
use kit::client;
use presence::wire;

pub(super) use self::{
    complete::{Complete, complete},
    credential::credential,
};
use super::object::LEFT;
use crate::{identity::Target, session::Health};

/// Reason of the condition while the leader has not answered yet.
const CONNECTING: &str = "Connecting";
/// Reasons of the condition while exports and imports work, but somebody has to act.
const CLOCK_SKEW: &str = "ClockSkew";
const LEADER_SILENT: &str = "LeaderSilent";
const CRD_OUTDATED: &str = "CRDOutdated";
const WIRE_VERSION_DIFFERS: &str = "WireVersionDiffers";
/// Reason of the condition while a ClusterProperty of somebody else says something else about this cluster.
const CONTRADICTED: &str = "ClusterPropertyConflict";
/// Reason of the condition while another cluster uses the ID of this one, whichever of the two was first.
const DUPLICATE: &str = "DuplicateClusterID";

const UNDER_ANTREA: &str =
    "exports and imports work; the leader is Antrea's, which passes on only ports and endpoints";

/// What to do about two clusters with one ID.
const ONE_HAS_TO_GO: &str = "If the uid is that of this cluster, one of the two is a copy of the other, restored from its backup or \
                             cloned with its machine. In the cluster that is to go, run freeport leave --force; it can then join with \
                             another ID";

/// Something is wrong, and somebody has to act.
pub(super) fn no(reason: &str, message: impl Into<String>) -> Verdict {
    Verdict::new(READY, Status::False, reason, message)
}

/// About a ClusterSet that waits until this cluster has left another one.
pub(super) fn leaving() -> Verdict {
    let message = "this cluster is still leaving the ClusterSet it belonged to before. This ClusterSet waits until that is \
                   done; the Events of ConfigMap freeport-membership show the progress";
    Verdict::new(READY, Status::Unknown, "Leaving", message)
}

/// About a ClusterSet beside the one this cluster belongs to.
pub(super) fn another(ours: &str) -> Verdict {
    let message = format!(
        "this cluster already belongs to ClusterSet {ours}, and a cluster can belong to only one. To stay there, delete this \
         ClusterSet. To join this one, run freeport leave first"
    );
    no("AnotherClusterSet", message)
}

/// About a ClusterSet that still exists when this cluster has left it: the cluster does not join it again.
pub(super) fn left() -> Verdict {
    let message = "this cluster has left the ClusterSet. Run `freeport leave` to delete this object, or `freeport join` to \
                   join again";
    no(LEFT, message)
}

/// About a leader to which no connection can be made with what ClusterSet and Secret say.
pub(super) fn no_client(error: &client::Error, target: &Target) -> Verdict {
    let secret = &target.secret;
    match error {
        client::Error::Server(_) => no("InvalidSpec", format!("spec.leaders[0].server: {error}")),
        client::Error::Proxy => no("InvalidSpec", format!("annotation {}: {error}", label::PROXY_URL)),
        client::Error::ServerName(_) => {
            no("InvalidSpec", format!("annotation {}: {error}", label::TLS_SERVER_NAME))
        }
        client::Error::Missing(_) | client::Error::Malformed(..) => {
            no("InvalidSecret", format!("Secret {secret}: {error}. Run freeport join again to get a new one"))
        }
        client::Error::Local(_) | client::Error::Setup(_) => no("Disconnected", error.to_string()),
    }
}

/// What the health of the session with the leader of `target` means for the ClusterSet.
pub(super) fn of(health: &Health, target: &Target) -> Verdict {
    let ready = |status, reason: &str, message: &str| Verdict::new(READY, status, reason, message);
    match health {
        Health::Connecting => {
            let message = "the leader has not answered yet, or it is not known yet whether another cluster uses this cluster ID";
            ready(Status::Unknown, CONNECTING, message)
        }
        Health::Connected { rival: Some(rival), .. } => contested(rival, target),
        Health::Connected { leader_is_silent: true, .. } => leader_silent(target),
        Health::Connected { lacking, .. } if !lacking.is_empty() => outdated(lacking),
        Health::Connected { skew: Some(ahead), .. } => skewed(*ahead),
        Health::Connected { foreign, .. } if !foreign.is_empty() => {
            ready(Status::True, WIRE_VERSION_DIFFERS, &wire::differs(foreign))
        }
        Health::Connected { wire: Wire::Antrea, .. } => ready(Status::True, "Connected", UNDER_ANTREA),
        Health::Connected { .. } => ready(Status::True, "Connected", "exports and imports work"),
        Health::Blind(blind) => blind::of(blind, target),
        Health::Pruned { feature, what } => no(
            "SchemaPruned",
            format!(
                "{feature}: the leader's API server drops fields that this member writes: {what}. Install Freeport's CRDs in \
                 the leader's cluster again (freeport init there, or kubectl apply -f manifests/crds-leader.yaml). Imports \
                 stay as they are"
            ),
        ),
        Health::Lost { failure } => lost::of(failure, target),
        Health::IdTaken { holder, wire } => id_taken(holder, *wire, target),
    }
}

/// A cluster that says something else about itself does not become a member.
pub(super) fn contradicted(why: &str) -> Verdict {
    no(CONTRADICTED, format!("this cluster does not join: {why}"))
}

/// One that is a member goes on.
pub(super) fn contradicts(why: &str) -> Verdict {
    Verdict::new(READY, Status::True, CONTRADICTED, format!("exports and imports work, but {why}"))
}

/// Whether all is well.
pub(super) fn is_well(verdict: &Verdict) -> bool {
    verdict.status == Status::True && !is_problem(verdict)
}

/// Whether the leader has not answered yet.
pub(super) fn is_connecting(verdict: &Verdict) -> bool {
    verdict.reason == CONNECTING
}

/// Whether somebody has to act.
pub(super) fn is_problem(verdict: &Verdict) -> bool {
    verdict.status == Status::False
        || [CLOCK_SKEW, LEADER_SILENT, CRD_OUTDATED, DUPLICATE, WIRE_VERSION_DIFFERS, CONTRADICTED]
            .contains(&verdict.reason.as_str())
}

fn id_taken(holder: &str, wire: Wire, target: &Target) -> Verdict {
    let (us, area) = (&target.us.cluster, &target.us.common_area);
    let held = match wire {
        Wire::Freeport => {
            let lease = name::member_lease(us);
            format!(
                "It holds Lease {lease} in Namespace {area} of the leader's cluster; the holder is {holder}: the uid of that cluster's \
                 Namespace kube-system, then its Pod"
            )
        }
        Wire::Antrea => {
            let announce = name::announce(us);
            format!(
                "It renews MemberClusterAnnounce {announce} in Namespace {area} of the leader's cluster, which notes the uid of its Namespace \
                 kube-system: {holder}"
            )
        }
    };
    let message = format!(
        "another running cluster uses cluster ID {us}. {held}. This cluster exports and imports nothing. {ONE_HAS_TO_GO}"
    );
    no(DUPLICATE, message)
}

/// We were first, so exports and imports go on.
fn contested(rival: &str, target: &Target) -> Verdict {
    let message = format!(
        "exports and imports work, but another running cluster uses cluster ID {}, too; it exports and imports nothing. It would \
         hold our Lease as {rival}: the uid of that cluster's Namespace kube-system, then its Pod. {ONE_HAS_TO_GO}",
        target.us.cluster
    );
    Verdict::new(READY, Status::True, DUPLICATE, message)
}

/// Endpoints do not need the leader's daemon, so imports go on.
fn leader_silent(target: &Target) -> Verdict {
    let area = &target.us.common_area;
    let message = format!(
        "endpoints are still updated, but freeport-leader does not renew its Lease in Namespace {area} of the leader's \
         cluster. Until it does, new exports and withdrawn exports have no effect. Run freeport status in the leader's cluster"
    );
    Verdict::new(READY, Status::True, LEADER_SILENT, message)
}

/// Fields that this cluster's API server drops are missing in this cluster alone.
fn outdated(lacking: &[String]) -> Verdict {
    let message = format!(
        "exports and imports work, but CRDs in this cluster are older than this member, and the API server drops the fields \
         they do not have: {}. Install Freeport's CRDs again (freeport join, or kubectl apply -f manifests/crds-member.yaml)",
        lacking.join("; ")
    );
    Verdict::new(READY, Status::True, CRD_OUTDATED, message)
}

fn skewed(ahead: i64) -> Verdict {
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let message = format!(
        "exports and imports work, but the leader's clock is {} s {direction} the clock of this cluster. Set the clocks: \
         otherwise tokens and certificates can look expired",
        ahead.abs()
    );
    Verdict::new(READY, Status::True, CLOCK_SKEW, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::membership::fixture::target;

    #[test]
    fn a_leader_whose_daemon_is_down_is_a_warning_whatever_its_clock_was() {
        let verdict = of(&connected(Some(-45), true, &[]), &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "LeaderSilent"));
        assert!(!verdict.message.contains("  "), "{}", verdict.message);
        assert!(is_problem(&verdict));
    }

    #[test]
    fn a8_both_clusters_with_one_id_say_so() {
        let first = Health::Connected {
            wire: Wire::Freeport,
            skew: None,
            leader_is_silent: true,
            lacking: vec![],
            rival: Some("uid/pod".into()),
            foreign: BTreeMap::new(),
        };
        let newcomer = |wire| Health::IdTaken { holder: "uid/pod".into(), wire };
        let newcomers = [Wire::Freeport, Wire::Antrea].map(|wire| (newcomer(wire), Status::False));
        for (health, status) in [(first, Status::True)].into_iter().chain(newcomers) {
            let verdict = of(&health, &target());
            assert_eq!((verdict.status, verdict.reason.as_str()), (status, "DuplicateClusterID"));
            assert!(is_problem(&verdict));
            for said in ["uid/pod", "freeport leave --force", "cloned"] {
                assert!(verdict.message.contains(said), "{}", verdict.message);
            }
        }
    }

    #[test]
    fn a9_a_leader_of_another_wire_version_is_a_warning() {
        let mut health = connected(None, false, &[]);
        if let Health::Connected { foreign, .. } = &mut health {
            foreign.insert("freeport-leader".into(), "2".into());
        }
        let verdict = of(&health, &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "WireVersionDiffers"));
        assert!(
            verdict.message.contains("freeport-leader: 2") && is_problem(&verdict),
            "{}",
            verdict.message
        );
    }

    fn connected(skew: Option<i64>, leader_is_silent: bool, lacking: &[&str]) -> Health {
        let lacking = lacking.iter().map(|what| (*what).to_owned()).collect();
        let (wire, foreign) = (Wire::Freeport, BTreeMap::new());
        Health::Connected { wire, skew, leader_is_silent, lacking, rival: None, foreign }
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
        let mut health = connected(None, false, &[]);
        if let Health::Connected { wire, .. } = &mut health {
            *wire = Wire::Antrea;
        }
        let verdict = of(&health, &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "Connected"));
        assert!(verdict.message.contains("the leader is Antrea's") && !is_problem(&verdict));
    }

    #[test]
    fn a_wrong_clock_is_a_warning_and_no_failure() {
        let verdict = of(&connected(Some(-45), false, &[]), &target());
        assert_eq!((verdict.status, verdict.reason.as_str()), (Status::True, "ClockSkew"));
        assert!(verdict.message.contains("45 s behind") && is_problem(&verdict));
        assert!(!is_problem(&of(&Health::Connecting, &target())));
    }
}
