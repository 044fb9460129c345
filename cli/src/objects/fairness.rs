//! How much of the leader's API server its members get (API Priority and Fairness of Kubernetes): a member that floods its Common Area waits
//! for itself, in a queue of its own, and neither the leader, nor the other members, nor other users of that cluster wait with it.
//!
//! Without this all ServiceAccounts of that cluster share the level `workload-low`, whose seats are many more than the API server has
//! processors: then requests wait where nothing is fair. Consumers of API binding are on the same level; as they come, the leader says so.

use api::{fairness, name::MEMBERS_LEVEL};
use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, GroupSubject, LimitResponse, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec, QueuingConfiguration, Subject,
};

use super::{Object, named};

/// Of about 250 that Kubernetes' own levels have together: with the API server's default of 600, 3 seats. The leader gives more where there are many
/// members.
const SHARES: i32 = 1;

/// The level. It borrows from none and lends to none: what members may take is the same on a quiet and on a busy API server.
pub(super) fn level() -> Object {
    let queuing = QueuingConfiguration { queues: Some(64), hand_size: Some(6), queue_length_limit: Some(50) };
    let limited = LimitedPriorityLevelConfiguration {
        nominal_concurrency_shares: Some(SHARES),
        borrowing_limit_percent: Some(0),
        lendable_percent: Some(0),
        limit_response: LimitResponse { type_: "Queue".into(), queuing: Some(queuing) },
    };
    Object::new(&PriorityLevelConfiguration {
        metadata: named(MEMBERS_LEVEL),
        spec: PriorityLevelConfigurationSpec {
            type_: "Limited".into(),
            limited: Some(limited),
            ..PriorityLevelConfigurationSpec::default()
        },
        status: None,
    })
}

/// Puts the requests of all ServiceAccounts of Common Area `area` on that level, each account in its own flow. It is called as the
/// Namespace, so that one command deletes both.
pub(super) fn flow(area: &str) -> Object {
    let accounts = Subject {
        kind: "Group".into(),
        group: Some(GroupSubject { name: format!("system:serviceaccounts:{area}") }),
        ..Subject::default()
    };
    Object::new(&FlowSchema { metadata: named(area), spec: fairness::flow(accounts), status: None })
}
