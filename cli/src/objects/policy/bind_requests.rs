//! `freeport-bind-requests`: what a consumer asks for in its cluster namespace goes when it is to go.
//!
//! A consumer writes its APIServiceExportRequests and APIServiceNamespaces itself. With a finalizer of its own on one of them the cluster namespace
//! could never be deleted; without the leader's an APIServiceNamespace would go before the Namespace that was made for it, which nobody
//! would delete then. No konnector, of Freeport or of kube-bind, writes a finalizer at a provider.

use super::{Check, Policy, Refused, bind_objects::IS_A_CONSUMER, requests};
use crate::objects::{Object, rights::BIND};

/// Name of the policy and of its binding. Without the binding it is off.
const NAME: &str = "freeport-bind-requests";

const VARIABLES: &[(&str, &str)] = &[
    ("consumer", "request.userInfo.username.split(':')[2]"),
    // As it was before; nothing where it is created.
    ("before", "request.operation == 'CREATE' ? dyn({'metadata': {}}) : dyn(oldObject)"),
    ("about", "request.kind.kind + ' ' + request.namespace + '/' + string(dyn(object).metadata.name)"),
    ("finalizersBefore", "variables.before.metadata.?finalizers.orValue([])"),
    ("finalizers", "dyn(object).metadata.?finalizers.orValue([])"),
];

const CHECKS: &[Check] = &[
    Check {
        holds: "variables.finalizers.all(finalizer, finalizer in variables.finalizersBefore)",
        refused: Refused::Forbidden,
        rule: "a consumer adds no finalizers",
        says: "variables.about + ' must not get finalizers from consumer ' + variables.consumer",
    },
    // The leader's is multicluster.freeport.dev/bind.
    Check {
        holds: "variables.finalizersBefore.all(finalizer, finalizer in variables.finalizers)",
        refused: Refused::Forbidden,
        rule: "a consumer takes no finalizers off",
        says: "variables.about + ' must not lose finalizers by consumer ' + variables.consumer",
    },
];

/// Holds in the whole cluster of a provider.
pub(crate) fn objects() -> [Object; 2] {
    Policy {
        name: NAME,
        requests: vec![requests(
            BIND,
            // One that is served beside ours is no way round.
            &["*"],
            &["apiserviceexportrequests", "apiservicenamespaces"],
            &["CREATE", "UPDATE"],
        )],
        conditions: &[("by-a-consumer", IS_A_CONSUMER)],
        namespaces: None,
        variables: VARIABLES,
        checks: CHECKS,
    }
    .objects()
}

#[cfg(test)]
mod tests {
    use api::bind::export::{APIServiceExportRequest, APIServiceNamespace};
    use kube::Resource;

    use super::*;

    #[test]
    fn it_looks_at_all_that_consumers_make() {
        let [policy, _] = objects();
        let rule = &policy.body["spec"]["matchConstraints"]["resourceRules"][0];
        assert_eq!(rule["apiGroups"][0], *APIServiceNamespace::group(&()));
        let kinds = [APIServiceExportRequest::plural(&()), APIServiceNamespace::plural(&())];
        assert_eq!(rule["resources"], serde_json::json!(kinds));
        assert_eq!(rule["apiVersions"][0], "*");
    }
}
