//! `freeport-offload-change`: who restricts where Pods may run is told that those that run stay. It refuses nothing: what was asked for
//! is done for new Pods.

use super::{
    Check, Policy, Refused,
    offload_content::{RESOURCES, VERSIONS},
    requests,
};
use crate::objects::{Object, rights::OFFLOADING};

/// Name of the policy and of its binding.
pub(crate) const NAME: &str = "freeport-offload-change";

const VARIABLES: &[(&str, &str)] = &[
    ("strategy", "string(dyn(object).?spec.?podOffloadingStrategy.orValue('LocalAndRemote'))"),
    ("strategyBefore", "string(dyn(oldObject).?spec.?podOffloadingStrategy.orValue('LocalAndRemote'))"),
];

/// The policy and its binding.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(OFFLOADING, VERSIONS, RESOURCES, &["UPDATE"])],
        conditions: &[],
        namespaces: None,
        variables: VARIABLES,
        checks: &[Check {
            holds: "variables.strategy == variables.strategyBefore || variables.strategy == 'LocalAndRemote'",
            refused: Refused::Invalid,
            rule: "another podOffloadingStrategy is for new Pods: those that exist stay where they are",
            says: "
'podOffloadingStrategy ' + variables.strategy + ' is for new Pods of Namespace ' + request.namespace +
': those that exist stay where they are until they are deleted'",
        }],
    }
    .warnings()
}
