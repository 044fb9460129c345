//! When API servers ask the webhook that places Pods. `freeport join` installs that configuration, and the member keeps it so.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::admissionregistration::v1::RuleWithOperations, apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::label::SCHEDULING_ENABLED;
use crate::label::TRUE;

/// Name of the MutatingWebhookConfiguration, and of all else that is the webhook's.
pub const NAME: &str = "freeport-webhook";

/// Name of the webhook in the configuration.
pub const WEBHOOK: &str = "pod.mutate.liqo.io";

/// API servers ask about each new Pod.
pub fn rules() -> Vec<RuleWithOperations> {
    let words = |word: &str| Some(vec![word.to_owned()]);
    vec![RuleWithOperations {
        api_groups: words(""),
        api_versions: words("v1"),
        resources: words("pods"),
        operations: words("CREATE"),
        scope: Some("Namespaced".into()),
    }]
}

/// API servers ask in offloaded Namespaces alone: no other Namespace depends on the webhook.
pub fn namespaces() -> LabelSelector {
    LabelSelector {
        match_labels: Some(BTreeMap::from([(SCHEDULING_ENABLED.to_owned(), TRUE.to_owned())])),
        match_expressions: None,
    }
}
