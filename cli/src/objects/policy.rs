//! Policies that the API server itself enforces, without a webhook that could be down.
//!
//! | module | policy | where |
//! |---|---|---|
//! | [`records`] | `freeport-records`: a member writes its own records only | the leader's cluster |
//! | [`imports`] | `freeport-imports`: users do not write ServiceImports | each member's cluster |
//! | [`import_content`] | `freeport-import-content`: a ServiceImport holds what can be served | each member's cluster |
//! | [`member_own`] | `freeport-member-own`: the member writes only what Freeport makes | each member's cluster |
//! | [`exports`] | `freeport-exports`: where Services may be exported, and with which labels | each member's cluster |
//! | [`offload`] | `freeport-offload`: of what offloading needs, the member writes only its own | where it is asked for |
//! | [`offload_content`] | `freeport-offload-content`: a NamespaceOffloading says what can be done | where it is asked for |
//! | [`offload_change`] | `freeport-offload-change`: Pods do not follow another strategy (a warning) | where it is asked for |
//! | [`bind_objects`] | `freeport-bind-objects-<API>`: a consumer writes only objects of its own | a provider's cluster, for each API |
//! | [`bind_requests`] | `freeport-bind-requests`: what a consumer asks for keeps its finalizers, and gets no others | a provider's cluster |
//! | [`bind_leader`] | `freeport-bind-leader`: of what binding needs, the leader writes only what is of a contract | a provider's cluster |
//! | [`bind_crds`] | `freeport-bind-crds`: which CRDs a provider may bring | a consumer's cluster |
//!
//! [`drift`] tells whether one is in force.
//!
//! RBAC cannot express any of them: a Role knows names, not what an object holds, and for `create` not even names. They need
//! Kubernetes 1.31.

pub(super) mod bind_crds;
pub(super) mod bind_leader;
pub(super) mod bind_objects;
pub(super) mod bind_requests;
pub(super) mod drift;
pub(super) mod exports;
pub(super) mod import_content;
pub(super) mod imports;
pub(super) mod member_own;
pub(super) mod offload;
pub(super) mod offload_change;
pub(super) mod offload_content;
pub(super) mod records;

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
        ValidatingAdmissionPolicySpec, Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};

use super::{Object, named};

/// One policy and where it applies. Expressions are CEL.
struct Policy<'a> {
    /// Name of the policy and its binding.
    name: &'a str,
    /// Requests it checks.
    requests: Vec<NamedRuleWithOperations>,
    /// Name and expression: it checks requests for which all of them hold.
    conditions: &'a [(&'a str, &'a str)],
    /// Label and value of the Namespaces it applies to; all Namespaces if there is none.
    namespaces: Option<(&'a str, &'a str)>,
    /// Name and expression, each for the use of later ones.
    variables: &'a [(&'a str, &'a str)],
    /// All must hold. The first that does not hold is the message to the writer.
    checks: &'a [Check],
}

/// What must hold.
struct Check {
    /// True if the request may pass.
    holds: &'static str,
    /// Whether it is refused as the wrong writer (403) or the wrong content (422).
    refused: Refused,
    /// The rule, for a request that [`says`](Self::says) cannot be evaluated for.
    rule: &'static str,
    /// The sentence for the writer, with the names it is about.
    says: &'static str,
}

enum Refused {
    Forbidden,
    Invalid,
}

/// Requests to `operations` on `resources` of one group.
fn requests(
    group: &str,
    versions: &[&str],
    resources: &[&str],
    operations: &[&str],
) -> NamedRuleWithOperations {
    let owned = |words: &[&str]| Some(words.iter().map(|&word| word.into()).collect());
    NamedRuleWithOperations {
        api_groups: owned(&[group]),
        api_versions: owned(versions),
        resources: owned(resources),
        operations: owned(operations),
        scope: Some("Namespaced".into()),
        resource_names: None,
    }
}

/// [`requests`] on resources outside of Namespaces. Namespaces themselves are some.
fn requests_outside(
    group: &str,
    versions: &[&str],
    resources: &[&str],
    operations: &[&str],
) -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        scope: Some("Cluster".into()),
        ..requests(group, versions, resources, operations)
    }
}

impl Policy<'_> {
    /// The policy and its binding. What cannot be evaluated is refused.
    fn objects(self) -> [Object; 2] {
        self.bound("Deny")
    }

    /// The same, but the writer is only told.
    fn warnings(self) -> [Object; 2] {
        self.bound("Warn")
    }

    fn bound(self, action: &str) -> [Object; 2] {
        let policy = ValidatingAdmissionPolicy {
            metadata: named(self.name),
            spec: Some(ValidatingAdmissionPolicySpec {
                failure_policy: Some("Fail".into()),
                match_constraints: Some(MatchResources {
                    // Of whatever version: versions that are served beside those named here are checked as well.
                    match_policy: Some("Equivalent".into()),
                    resource_rules: Some(self.requests),
                    ..MatchResources::default()
                }),
                match_conditions: expressions(self.conditions, |name, expression| MatchCondition {
                    name,
                    expression,
                }),
                variables: expressions(self.variables, |name, expression| Variable { name, expression }),
                validations: Some(self.checks.iter().map(Check::validation).collect()),
                ..ValidatingAdmissionPolicySpec::default()
            }),
            status: None,
        };
        let binding = ValidatingAdmissionPolicyBinding {
            metadata: named(self.name),
            spec: ValidatingAdmissionPolicyBindingSpec {
                policy_name: self.name.into(),
                validation_actions: vec![action.into()],
                match_resources: self.namespaces.map(labelled),
                param_ref: None,
            },
        };
        [Object::new(&policy), Object::new(&binding)]
    }
}

/// None rather than an empty list, which the API server would not keep.
fn expressions<T>(all: &[(&str, &str)], make: impl Fn(String, String) -> T) -> Option<Vec<T>> {
    let made = all.iter().map(|&(name, expression)| make(name.into(), expression.trim().into()));
    (!all.is_empty()).then(|| made.collect())
}

fn labelled((key, value): (&str, &str)) -> MatchResources {
    let selector =
        LabelSelector { match_labels: Some([(key.into(), value.into())].into()), match_expressions: None };
    MatchResources { namespace_selector: Some(selector), ..MatchResources::default() }
}

impl Check {
    fn validation(&self) -> Validation {
        let reason = match self.refused {
            Refused::Forbidden => "Forbidden",
            Refused::Invalid => "Invalid",
        };
        Validation {
            expression: self.holds.trim().into(),
            message: Some(self.rule.into()),
            message_expression: Some(self.says.trim().into()),
            reason: Some(reason.into()),
        }
    }
}
