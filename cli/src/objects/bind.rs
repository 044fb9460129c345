//! What API binding needs: in the cluster of a provider, in that of a consumer, and for each API that is offered or bound.

pub(crate) mod naming;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    bind::{
        binding::{APIServiceBinding, APIServiceBindingSpec},
        label,
        offer::{APIServiceExportTemplate, APIServiceExportTemplateSpec, Collection, CollectionSpec},
        resource::{ClusterSecretKey, InformerScope, Isolation, Resource},
    },
    crd::bind,
};
use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    rbac::v1::PolicyRule,
};
use kube::core::ObjectMeta;

use super::{
    Object, SYSTEM, crds, leader, member, named, policy,
    rights::{
        BIND, COORDINATION, CORE, EXTENSIONS, FLOW_CONTROL, OWN, RBAC, READ, everywhere_as, inside_as,
        report, rule, rule_on, unbound,
    },
    within,
};

/// What the leader may do for binding, beside everything else. A cluster may be a provider and a consumer, so that the member's has another name.
pub(crate) const PROVIDER: &str = "freeport-bind-provider";
/// What the member may do for binding, beside everything else.
pub(crate) const CONSUMER: &str = "freeport-bind-consumer";
/// What the names of rights on an API begin with that is offered; the leader gives them by these names.
const OFFERED: &str = "freeport-bind";
/// The same of an API that is bound.
pub(crate) const BOUND: &str = "freeport-bound-";
/// The same of the Namespaces that the provider of a binding wants.
const WANTED: &str = "freeport-bind-namespaces-";
/// What a consumer may do in its cluster namespace, as kube-bind calls it.
const BINDER: &str = "kube-binder";
/// Namespace of the credentials of a consumer.
pub(crate) const CREDENTIALS: &str = "kube-bind";
/// Key of the kubeconfig in a Secret of a consumer.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
/// What all that daemons are told of API binding begins with; by itself it switches binding on.
pub const TOLD: &str = "FREEPORT_BIND";
/// Verbs of who keeps objects in step.
const SYNC: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// The ClusterRole of this name, to be read.
pub(crate) fn role(name: &str) -> Object {
    unbound(name, Vec::new())
}

/// CRDs of a provider.
pub fn provider_crds() -> Vec<Object> {
    crds::labelled(bind::provider())
}

/// CRDs of a consumer.
pub fn consumer_crds() -> Vec<Object> {
    crds::labelled(bind::consumer())
}

/// What the leader may do as a provider, what keeps it to that, and what consumers may do in their cluster namespaces.
pub fn provider() -> Vec<Object> {
    let watched = |kind: &str, writes: &[&str]| rule(BIND, kind, &[READ, writes].concat());
    let mut rights = vec![
        rule(CORE, "namespaces", OWN),
        rule(CORE, "serviceaccounts", &["get", "create"]),
        rule_on(CORE, "serviceaccounts/token", &[BINDER], &["create"]),
        rule_on(CORE, "secrets", &["kubeconfig"], &["get", "patch"]),
        rule(CORE, "secrets", &["create"]),
        rule(RBAC, "rolebindings", &["get", "list", "watch", "create", "delete"]),
        rule(RBAC, "clusterrolebindings", &["get", "list", "watch", "create", "delete"]),
        rule_on(RBAC, "clusterroles", &[BINDER], &["bind"]),
        rule(FLOW_CONTROL, "flowschemas", &["get", "create"]),
        rule(EXTENSIONS, "customresourcedefinitions", READ),
        watched("apiserviceexporttemplates", &[]),
        watched("bindableresourcesrequests", &["delete"]),
        watched("apiserviceexports", &["create", "patch"]),
        watched("apiserviceexportrequests", &["patch", "delete"]),
        // It deletes none, but takes owners off: admission plugin OwnerReferencesPermissionEnforcement asks for the right to delete.
        watched("apiservicenamespaces", &["create", "patch", "delete"]),
        watched("boundschemas", &["create", "delete"]),
        watched("clusterbindings", &["create", "patch"]),
        report(),
    ];
    let answered = [
        "bindableresourcesrequests",
        "apiserviceexports",
        "apiserviceexportrequests",
        "apiservicenamespaces",
    ];
    rights.extend(answered.map(|kind| rule(BIND, &format!("{kind}/status"), &["patch"])));
    let own = vec![rule(CORE, "secrets", &["get", "create", "patch"]), rule(CORE, "configmaps", READ)];
    // What narrows rights comes before them.
    let mut objects = requests_policy().to_vec();
    objects.extend(provider_policy());
    objects.extend(everywhere_as(PROVIDER, &leader::ACCOUNT, rights));
    objects.extend(inside_as(PROVIDER, SYSTEM, &leader::ACCOUNT, own));
    objects.push(unbound(BINDER, binder()));
    objects
}

/// What keeps the cluster namespaces of consumers from staying for ever: policy `freeport-bind-requests` and its binding.
pub fn requests_policy() -> [Object; 2] {
    policy::bind_requests::objects()
}

/// What keeps the leader to what is of a contract: policy `freeport-bind-leader` and its binding.
pub fn provider_policy() -> [Object; 2] {
    policy::bind_leader::objects()
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

/// What a consumer may do with an API that is offered, what keeps it to its own objects, and the leader's right to give it. The policy comes
/// before the rights. Of an API without Namespaces `isolation` says whether names of objects begin with that of their consumer: in all that is
/// not None.
pub fn offer(api: &Resource, isolation: Isolation) -> Vec<Object> {
    let name = format!("{OFFERED}-{}", api.name());
    let (read, given) = (format!("{name}-read"), format!("{OFFERED}-offer-{}", api.name()));
    let bind = vec![rule_on(RBAC, "clusterroles", &[&name, &read], &["bind"])];
    let mut objects = policy::bind_objects::objects(api, isolation).to_vec();
    objects.push(unbound(&name, vec![rule(&api.group, &api.resource, SYNC)]));
    objects.push(unbound(&read, vec![rule(&api.group, &api.resource, READ)]));
    objects.extend(everywhere_as(&given, &leader::ACCOUNT, bind));
    objects
}

/// What keeps consumers of an API to their own objects: policy `freeport-bind-objects-<API>` and its binding.
pub fn objects_policy(api: &Resource, prefixed: bool) -> [Object; 2] {
    policy::bind_objects::objects(api, if prefixed { Isolation::Prefixed } else { Isolation::None })
}

/// Offers APIs together.
pub fn template(
    name: &str,
    scope: InformerScope,
    apis: Vec<Resource>,
    isolation: Option<&'static str>,
) -> Object {
    let mut metadata = named(name);
    metadata.annotations = isolation.map(|isolation| [(label::ISOLATION.into(), isolation.into())].into());
    let spec = APIServiceExportTemplateSpec { scope, resources: apis, ..Default::default() };
    Object::new(&APIServiceExportTemplate { metadata, spec, status: None })
}

/// Groups templates for people.
pub fn collection(name: &str, spec: CollectionSpec) -> Object {
    Object::new(&Collection { metadata: named(name), spec, status: None })
}

/// Secret for a kubeconfig. Its data is not applied, so that no file has it.
pub fn credential(name: &str) -> Object {
    let mut metadata = within(CREDENTIALS, name);
    metadata.labels.get_or_insert_default().insert(label::PROVIDER_KUBECONFIG.into(), "true".into());
    Object::new(&Secret { metadata, type_: Some("Opaque".into()), ..Secret::default() })
}

/// Uses the export of this name by the credential in Secret `secret`, of the contract whose cluster namespace has the uid `contract`.
pub(crate) fn binding(name: &str, secret: &str, contract: Option<&str>) -> Object {
    let annotations = contract.map(|uid| [(label::CONTRACT_UID.to_owned(), uid.to_owned())].into());
    let (namespace, key) = (CREDENTIALS.into(), KUBECONFIG.into());
    let kubeconfig_secret_ref = ClusterSecretKey { namespace, name: secret.into(), key };
    Object::new(&APIServiceBinding {
        metadata: ObjectMeta { annotations, ..named(name) },
        spec: APIServiceBindingSpec { kubeconfig_secret_ref },
        status: None,
    })
}

/// What a consumer needs: Namespace `kube-bind`, what the member may do for binding, and what keeps it to that.
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
    // What narrows rights comes before them.
    let mut objects = consumer_policy().to_vec();
    objects.push(Object::new(&Namespace { metadata: named(CREDENTIALS), ..Namespace::default() }));
    objects.extend(everywhere_as(CONSUMER, &member::ACCOUNT, rights));
    objects.extend(inside_as(CONSUMER, CREDENTIALS, &member::ACCOUNT, own));
    // Go's konnector has its Lease there where nobody tells it its Namespace.
    let seen = vec![rule_on(COORDINATION, "leases", &["kube-bind"], &["get"])];
    objects.extend(inside_as(CONSUMER, "kube-system", &member::ACCOUNT, seen));
    objects
}

/// What keeps the member to CRDs of APIs that were agreed to: policy `freeport-bind-crds` and its binding.
pub fn consumer_policy() -> [Object; 2] {
    policy::bind_crds::objects()
}

/// What the member may do with the objects of an API that was agreed to.
pub fn bound(api: &Resource) -> [Object; 2] {
    let name = format!("{BOUND}{}", api.name());
    let status = format!("{}/status", api.resource);
    let rights =
        vec![rule(&api.group, &api.resource, SYNC), rule(&api.group, &status, &["get", "update", "patch"])];
    everywhere_as(&name, &member::ACCOUNT, rights)
}

/// The member's right to make these Namespaces, which the provider wants here. RBAC knows the name of what is applied; so nobody gets more than
/// what was asked for.
pub fn namespaces(binding: &str, names: &[&str]) -> [Object; 2] {
    let rights = vec![rule_on(CORE, "namespaces", names, &["create", "patch"])];
    everywhere_as(&format!("{WANTED}{binding}"), &member::ACCOUNT, rights)
}

/// The object with the names of the APIServiceBindings that it is there for, by which it is found when they are gone.
pub(crate) fn noted(mut object: Object, bindings: &BTreeSet<String>) -> Object {
    let names: Vec<_> = bindings.iter().map(String::as_str).collect();
    object.body["metadata"]["annotations"][label::BINDINGS] = names.join(",").into();
    object
}

/// The names of the APIServiceBindings that an object with these annotations is there for.
pub(crate) fn bindings_of(annotations: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = annotations.get(label::BINDINGS).map(String::as_str).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_right_is_narrowed_already() {
        for objects in [provider(), consumer(), offer(&Resource::default(), Isolation::Prefixed)] {
            let kinds: Vec<_> = objects.iter().map(|object| object.resource.kind.as_str()).collect();
            let last = kinds.iter().rposition(|kind| kind.starts_with("ValidatingAdmissionPolicy"));
            let first = kinds.iter().position(|kind| kind.ends_with("RoleBinding"));
            assert!(last.unwrap() < first.unwrap(), "{kinds:?}");
        }
    }

    #[test]
    fn what_a_binding_needs_is_found_by_its_name() {
        let both = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let noted = noted(credential("cns"), &both);
        assert_eq!(bindings_of(&noted.metadata().annotations.unwrap()), both);
        assert_eq!(noted.metadata().labels, credential("cns").metadata().labels);
        assert!(bindings_of(&BTreeMap::new()).is_empty());
    }
}
