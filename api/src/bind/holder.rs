//! Which cluster uses a contract. Two that did would each take for deleted what only the other one has.
//!
//! A contract is held by one cluster: its uid is the message of condition [`HELD`] of the ClusterBinding, whose status consumers may write. Go's
//! konnector notes nothing. It holds a contract that nobody else holds, as long as its heartbeats are fresh.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    binding::{ClusterBindingStatus, SecretName},
    condition::Condition,
};

/// Condition of a ClusterBinding; its message is the uid of Namespace kube-system of the cluster that holds the contract.
pub const HELD: &str = "Held";
/// Reason: another cluster holds the contract.
pub const CONTRACT_IN_USE: &str = "ContractInUse";

/// By how much the clock of another cluster may be ahead.
const SKEW: Duration = Duration::from_secs(300);
/// Without an interval, what Go's konnector says.
const INTERVAL: Duration = Duration::from_secs(300);

/// Who else holds a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Other {
    /// The cluster with this uid.
    Cluster(String),
    /// A konnector that notes no cluster, and has the credential in a Secret that this cluster lacks.
    Konnector(SecretName),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(uid) => write!(f, "the cluster whose Namespace kube-system has the uid {uid}"),
            Self::Konnector(SecretName { name, namespace }) => {
                write!(
                    f,
                    "a konnector that has its credential in Secret {namespace}/{name} of another cluster"
                )
            }
        }
    }
}

/// The uid of the cluster that holds the contract, if one is noted.
pub fn held_by(status: &ClusterBindingStatus) -> Option<&str> {
    let held = status.conditions.iter().find(|condition| condition.type_ == HELD)?;
    held.message.as_deref().filter(|uid| held.status == "True" && !uid.is_empty())
}

/// Who else than the cluster `us` holds the contract at `now`. `has` tells which Secrets this cluster has.
pub fn other(
    status: &ClusterBindingStatus,
    us: &str,
    now: Timestamp,
    has: impl Fn(&SecretName) -> bool,
) -> Option<Other> {
    match held_by(status) {
        Some(uid) => (uid != us).then(|| Other::Cluster(uid.to_owned())),
        None => {
            let secret = status.consumer_secret_ref.clone().filter(|secret| !has(secret))?;
            is_fresh(status, now).then_some(Other::Konnector(secret))
        }
    }
}

/// Whether a konnector was heard within two of its intervals.
fn is_fresh(status: &ClusterBindingStatus, now: Timestamp) -> bool {
    let interval = status.heartbeat_interval.map_or(INTERVAL, |interval| interval.0);
    let Some(Time(last)) = status.last_heartbeat_time else { return false };
    let until = last.checked_add(interval.saturating_mul(2));
    until.is_ok_and(|until| until > now) && now.checked_add(SKEW).is_ok_and(|latest| last <= latest)
}

/// Reports whether the cluster that held the contract has released it, and no cluster holds it since.
pub fn is_released(status: &ClusterBindingStatus) -> bool {
    held_by(status).is_none() && status.conditions.iter().any(|condition| condition.type_ == HELD)
}

/// The conditions with `us` as the holder.
pub fn noted(conditions: &[Condition], us: &str, now: Timestamp) -> Vec<Condition> {
    with(conditions, Condition { status: "True".to_owned(), message: Some(us.to_owned()), ..held(now) })
}

/// The conditions without a holder. `Unknown`, since the summary of kube-bind does not count that.
pub fn released(conditions: &[Condition], now: Timestamp) -> Vec<Condition> {
    let reason = Some("Released".to_owned());
    with(conditions, Condition { status: "Unknown".to_owned(), reason, ..held(now) })
}

fn held(now: Timestamp) -> Condition {
    let since = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    Condition { type_: HELD.to_owned(), last_transition_time: Some(since), ..Condition::default() }
}

fn with(conditions: &[Condition], held: Condition) -> Vec<Condition> {
    let others = conditions.iter().filter(|condition| condition.type_ != HELD).cloned();
    others.chain([held]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::duration::GoDuration;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn who_is_noted_holds_a_contract_and_nobody_else() {
        let other = |status: &_| other(status, "us", at(1000), |_| false);
        let held = |uid| ClusterBindingStatus { conditions: noted(&[], uid, at(1)), ..Default::default() };
        assert_eq!(other(&held("us")), None);
        assert_eq!(other(&held("them")), Some(Other::Cluster("them".into())));
        let taken =
            ClusterBindingStatus { conditions: noted(&held("them").conditions, "us", at(2)), ..held("") };
        assert_eq!((other(&taken), taken.conditions.len()), (None, 1));
        assert_eq!(other(&held("")), None, "nobody is noted");
        let freed =
            ClusterBindingStatus { conditions: released(&held("them").conditions, at(3)), ..held("") };
        assert_eq!((other(&freed), held_by(&freed), freed.conditions.len()), (None, None, 1));
        assert!(is_released(&freed) && !is_released(&held("them")));
        assert!(!is_released(&ClusterBindingStatus::default()), "nobody held it before");
        let mut untrue = held("them");
        untrue.conditions[0].status = "False".into();
        assert_eq!(other(&untrue), None);
    }

    #[test]
    fn a_konnector_of_another_cluster_holds_a_contract_as_long_as_it_is_heard() {
        let secret = || SecretName { name: "kubeconfig-x1".into(), namespace: "kube-bind".into() };
        let status = ClusterBindingStatus {
            last_heartbeat_time: Some(Time(at(1000))),
            heartbeat_interval: Some(GoDuration(Duration::from_secs(60))),
            consumer_secret_ref: Some(secret()),
            ..Default::default()
        };
        let other = |now, has| super::other(&status, "us", at(now), |_| has);
        assert_eq!(other(1119, false), Some(Other::Konnector(secret())));
        assert_eq!(other(1121, false), None, "it is silent");
        assert_eq!(other(600, false), None, "its clock is wrong");
        assert_eq!(other(1001, true), None, "its Secret is here");
        let noted = ClusterBindingStatus { conditions: noted(&[], "us", at(1)), ..status.clone() };
        assert_eq!(super::other(&noted, "us", at(1001), |_| false), None);
        let without = ClusterBindingStatus { heartbeat_interval: None, ..status.clone() };
        assert!(super::other(&without, "us", at(1599), |_| false).is_some());
        assert!(super::other(&without, "us", at(1601), |_| false).is_none());
    }
}
