//! Which requests an API server runs on the level of members (API Priority and Fairness of Kubernetes): each account waits in a queue of its
//! own, and for itself.

use k8s_openapi::api::flowcontrol::v1::{
    FlowDistinguisherMethod, FlowSchemaSpec, PolicyRulesWithSubjects, PriorityLevelConfigurationReference,
    ResourcePolicyRule, Subject,
};

use crate::name::MEMBERS_LEVEL;

/// Before that of Kubernetes for all ServiceAccounts (9000), after those for its own parts.
const PRECEDENCE: i32 = 8000;

/// All requests for resources of these accounts, each account in its own flow.
pub fn flow(accounts: Subject) -> FlowSchemaSpec {
    let everyone = || vec!["*".to_owned()];
    let rule = PolicyRulesWithSubjects {
        subjects: vec![accounts],
        resource_rules: Some(vec![ResourcePolicyRule {
            api_groups: everyone(),
            resources: everyone(),
            verbs: everyone(),
            namespaces: Some(everyone()),
            cluster_scope: Some(true),
        }]),
        non_resource_rules: None,
    };
    FlowSchemaSpec {
        priority_level_configuration: PriorityLevelConfigurationReference { name: MEMBERS_LEVEL.into() },
        matching_precedence: Some(PRECEDENCE),
        distinguisher_method: Some(FlowDistinguisherMethod { type_: "ByUser".into() }),
        rules: Some(vec![rule]),
    }
}
