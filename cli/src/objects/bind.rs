//! What API binding needs: in the cluster of a provider, in that of a consumer, and for each API that is offered or bound.

use api::{bind::resource::Resource, crd::bind};
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::PolicyRule};

use super::{
    Object, SYSTEM, crds, leader, member, named,
    rights::{
        COORDINATION, CORE, EXTENSIONS, OWN, RBAC, READ, everywhere_as, inside_as, rule, rule_on, unbound,
    },
};

/// Group of kube-bind's kinds.
const BIND: &str = "kube-bind.io";
/// What the leader and the member may do for binding, beside everything else.
const ROLE: &str = "freeport-bind";
/// What a consumer may do in its cluster namespace, as kube-bind calls it.
const BINDER: &str = "kube-binder";
/// Namespace of the credentials of a consumer.
const CREDENTIALS: &str = "kube-bind";
/// Verbs of who keeps objects in step.
const SYNC: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// CRDs of a provider.
pub fn provider_crds() -> Vec<Object> {
    crds::labelled(bind::provider())
}

/// CRDs of a consumer.
pub fn consumer_crds() -> Vec<Object> {
    crds::labelled(bind::consumer())
}

/// What the leader may do as a provider, and what consumers may do in their cluster namespaces.
pub fn provider() -> Vec<Object> {
    let records = [
        "apiserviceexports",
        "apiserviceexportrequests",
        "apiservicenamespaces",
        "boundschemas",
        "clusterbindings",
    ];
    let mut rights = vec![
        rule(CORE, "namespaces", OWN),
        rule(CORE, "serviceaccounts", &["get", "create", "patch"]),
        rule_on(CORE, "serviceaccounts/token", &[BINDER], &["create"]),
        rule_on(CORE, "secrets", &["kubeconfig"], &["get", "patch"]),
        rule(CORE, "secrets", &["create"]),
        rule(RBAC, "rolebindings", OWN),
        rule(RBAC, "clusterrolebindings", OWN),
        rule_on(RBAC, "clusterroles", &[BINDER], &["bind"]),
        rule(EXTENSIONS, "customresourcedefinitions", READ),
        rule(BIND, "apiserviceexporttemplates", READ),
        rule(BIND, "bindableresourcesrequests", OWN),
        rule(BIND, "bindableresourcesrequests/status", &["patch"]),
    ];
    rights.extend(records.iter().map(|kind| rule(BIND, kind, OWN)));
    rights.extend(records.iter().map(|kind| rule(BIND, &format!("{kind}/status"), &["patch"])));
    let own = vec![rule(CORE, "secrets", &["get", "create", "patch"]), rule(CORE, "configmaps", READ)];
    let mut objects: Vec<_> = everywhere_as(ROLE, &leader::ACCOUNT, rights).into();
    objects.extend(inside_as(ROLE, SYSTEM, &leader::ACCOUNT, own));
    objects.push(unbound(BINDER, binder()));
    objects
}

/// As kube-bind's konnector expects it, but for Secrets: it reads its own.
fn binder() -> Vec<PolicyRule> {
    let seen = ["clusterbindings", "apiserviceexports", "boundschemas"];
    let mut rights = vec![
        rule(BIND, "apiserviceexportrequests", SYNC),
        rule(BIND, "apiservicenamespaces", SYNC),
        rule(CORE, "namespaces", &["get"]),
        rule(CORE, "secrets", READ),
    ];
    rights.extend(seen.iter().map(|kind| rule(BIND, kind, READ)));
    rights.extend(seen.iter().map(|kind| rule(BIND, &format!("{kind}/status"), &["get", "patch", "update"])));
    rights
}

/// What a consumer may do with an API that is offered, and the leader's right to give it.
pub fn offer(api: &Resource) -> Vec<Object> {
    let name = format!("{ROLE}-{}", api.name());
    let (read, given) = (format!("{name}-read"), format!("{ROLE}-offer-{}", api.name()));
    let bind = vec![rule_on(RBAC, "clusterroles", &[&name, &read], &["bind"])];
    let mut objects = vec![
        unbound(&name, vec![rule(&api.group, &api.resource, SYNC)]),
        unbound(&read, vec![rule(&api.group, &api.resource, READ)]),
    ];
    objects.extend(everywhere_as(&given, &leader::ACCOUNT, bind));
    objects
}

/// What a consumer needs: Namespace `kube-bind`, and what the member may do for binding.
pub fn consumer() -> Vec<Object> {
    let rights = vec![
        rule(BIND, "apiservicebindings", &["get", "list", "watch", "patch"]),
        rule(BIND, "apiservicebindings/status", &["patch"]),
        rule(EXTENSIONS, "customresourcedefinitions", SYNC),
        rule(CORE, "namespaces", READ),
    ];
    let own = vec![
        rule(CORE, "secrets", &["get", "list", "watch", "patch"]),
        rule(COORDINATION, "leases", &["create"]),
        rule_on(COORDINATION, "leases", &["kube-bind"], &["get", "update", "patch"]),
    ];
    let mut objects = vec![Object::new(&Namespace { metadata: named(CREDENTIALS), ..Namespace::default() })];
    objects.extend(everywhere_as(ROLE, &member::ACCOUNT, rights));
    objects.extend(inside_as(ROLE, CREDENTIALS, &member::ACCOUNT, own));
    objects
}

/// What the member may do with the objects of an API that was agreed to.
pub fn bound(api: &Resource) -> [Object; 2] {
    let name = format!("{ROLE}-{}", api.name());
    let status = format!("{}/status", api.resource);
    let rights =
        vec![rule(&api.group, &api.resource, SYNC), rule(&api.group, &status, &["get", "update", "patch"])];
    everywhere_as(&name, &member::ACCOUNT, rights)
}
