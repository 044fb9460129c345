//! Roles and their bindings, with each right listed.

use api::name;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use super::{Object, named, within};

/// Group of ClusterSets and records.
pub(super) const ANTREA: &str = "multicluster.crd.antrea.io";
/// Group of ServiceExports and ServiceImports.
pub(super) const MCS: &str = "multicluster.x-k8s.io";
/// Group of Namespaces, Services and Secrets.
pub(super) const CORE: &str = "";
/// Group of ClusterProperties.
pub(super) const ABOUT: &str = "about.k8s.io";
/// Group of Deployments.
pub(super) const APPS: &str = "apps";
/// Group of EndpointSlices.
pub(super) const DISCOVERY: &str = "discovery.k8s.io";
/// Group of ServiceCIDRs.
pub(super) const NETWORKING: &str = "networking.k8s.io";
/// Group of Leases.
pub(super) const COORDINATION: &str = "coordination.k8s.io";
/// Group of OffloadPeers and the records of offloading that are ours.
pub(super) const FREEPORT: &str = "multicluster.freeport.dev";
/// Group of NamespaceOffloadings and NamespaceMaps: Liqo's.
pub(super) const OFFLOADING: &str = "offloading.liqo.io";
/// Group of contracts, offers and bindings of APIs: kube-bind's.
pub(super) const BIND: &str = "kube-bind.io";
/// Group of webhooks.
pub(super) const ADMISSION: &str = "admissionregistration.k8s.io";
/// Group of Roles and their bindings.
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
/// Group of CustomResourceDefinitions.
pub(super) const EXTENSIONS: &str = "apiextensions.k8s.io";
/// Group of API Priority and Fairness.
pub(super) const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
/// Group of Events.
pub(super) const EVENTS: &str = "events.k8s.io";

/// Verbs of a watching reader.
pub(super) const READ: &[&str] = &["get", "list", "watch"];
/// Verbs on a kind of which [`CHANGE`] is for some names only; creating cannot be limited to names.
pub(super) const READ_AND_CREATE: &[&str] = &["get", "list", "watch", "create"];
/// Verbs on what is there already.
pub(super) const CHANGE: &[&str] = &["patch", "delete"];
/// Verbs of the owner of all objects of a kind.
pub(super) const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// Verbs of the owner of all objects of a kind that replaces them whole.
pub(super) const REPLACE: &[&str] = &["get", "list", "watch", "create", "update", "delete"];
/// Verbs of people and their tools, which also replace objects and delete many at once.
pub(super) const ALL: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
/// Verbs of the owner of objects that outlive it.
pub(super) const KEEP: &[&str] = &["get", "list", "watch", "create", "patch"];

/// `verbs` on one resource of one API group.
pub(super) fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|&verb| verb.into()).collect(),
        ..PolicyRule::default()
    }
}

/// The rights to Leases with which replicas of a daemon find out which of them is active.
pub(super) fn elects(daemon: &str) -> Vec<PolicyRule> {
    vec![
        rule(COORDINATION, "leases", &["create"]),
        rule_on(COORDINATION, "leases", &[&name::active_lease(daemon)], &["get", "patch"]),
    ]
}

/// The right to report: Events are created, and patched when they recur.
pub(super) fn report() -> PolicyRule {
    rule(EVENTS, "events", &["create", "patch"])
}

/// `verbs` on some objects of one resource only.
pub(super) fn rule_on(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        resource_names: Some(names.iter().map(|&name| name.into()).collect()),
        ..rule(group, resource, verbs)
    }
}

/// A ServiceAccount that gets rights.
pub(super) struct Account<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// A ClusterRole and its binding, both named as the account.
pub(super) fn everywhere(account: &Account<'_>, rules: Vec<PolicyRule>) -> [Object; 2] {
    everywhere_as(account.name, account, rules)
}

/// A ClusterRole and its binding, both of this name.
pub(super) fn everywhere_as(name: &str, account: &Account<'_>, rules: Vec<PolicyRule>) -> [Object; 2] {
    let role = ClusterRole { metadata: named(name), rules: Some(rules), ..ClusterRole::default() };
    let binding = ClusterRoleBinding {
        metadata: named(name),
        role_ref: role_ref("ClusterRole", name),
        subjects: Some(vec![subject(account)]),
    };
    [Object::new(&role), Object::new(&binding)]
}

/// A ClusterRole without a binding: in single Namespaces a RoleBinding gives it.
pub(super) fn unbound(name: &str, rules: Vec<PolicyRule>) -> Object {
    Object::new(&ClusterRole { metadata: named(name), rules: Some(rules), ..ClusterRole::default() })
}

/// A ClusterRole without a binding, whose rights Kubernetes adds to its own ClusterRoles `to` for users of a Namespace.
pub(super) fn aggregated(name: &str, to: &[&str], rules: Vec<PolicyRule>) -> Object {
    let mut metadata = named(name);
    let labels = metadata.labels.get_or_insert_default();
    for role in to {
        labels.insert(format!("rbac.authorization.k8s.io/aggregate-to-{role}"), "true".into());
    }
    Object::new(&ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() })
}

/// A Role in `namespace` and its binding, both named as the account, which may live in another Namespace.
pub(super) fn inside(namespace: &str, account: &Account<'_>, rules: Vec<PolicyRule>) -> [Object; 2] {
    inside_as(account.name, namespace, account, rules)
}

/// A Role in `namespace` and its binding, both of this name.
pub(super) fn inside_as(
    name: &str,
    namespace: &str,
    account: &Account<'_>,
    rules: Vec<PolicyRule>,
) -> [Object; 2] {
    let role = Role { metadata: within(namespace, name), rules: Some(rules) };
    let binding = RoleBinding {
        metadata: within(namespace, name),
        role_ref: role_ref("Role", name),
        subjects: Some(vec![subject(account)]),
    };
    [Object::new(&role), Object::new(&binding)]
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some(RBAC.into()), kind: kind.into(), name: name.into() }
}

fn subject(account: &Account<'_>) -> Subject {
    Subject {
        kind: "ServiceAccount".into(),
        name: account.name.into(),
        namespace: Some(account.namespace.into()),
        ..Subject::default()
    }
}
