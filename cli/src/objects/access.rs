//! A member's access to a Common Area: its ServiceAccount, what that may do, and its token.

use std::collections::BTreeMap;

use api::{label, name};
use k8s_openapi::{
    api::{
        core::v1::{Secret, ServiceAccount},
        rbac::v1::PolicyRule,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    Object, area,
    rights::{
        ANTREA, Account, CHANGE, COORDINATION, CORE, FREEPORT, OFFLOADING, OWN, READ, READ_AND_CREATE,
        REPLACE, inside, rule, rule_on,
    },
    within,
};

/// Name of the ServiceAccount, Role and RoleBinding of member `id` in a Common Area.
pub fn account(id: &str) -> String {
    format!("{}-{id}", label::MEMBER)
}

/// Name of the Secret in the Common Area that Kubernetes fills with a token of that ServiceAccount.
pub fn token_secret(id: &str) -> String {
    format!("{}-token", account(id))
}

/// ServiceAccount, Role, RoleBinding and token Secret of member `id` in the Common Area of `set`.
///
/// Policy `freeport-records` asks for the verb `act-as` on the member's own ID: only who may act as a cluster may write its
/// records. Lease and announce have one name for each member, so RBAC protects those of others, but for their creation.
///
/// `cluster_uid` (of the Namespace kube-system) notes who the ID was given to, so that no other cluster gets it as well.
pub fn objects(set: &str, id: &str, cluster_uid: Option<&str>) -> Vec<Object> {
    let rights = vec![
        rule(ANTREA, "resourceexports", OWN),
        rule_on(ANTREA, "resourceexports", &[id], &["act-as"]),
        rule(ANTREA, "resourceimports", READ),
        rule(ANTREA, "memberclusterannounces", READ_AND_CREATE),
        rule_on(ANTREA, "memberclusterannounces", &[&name::announce(id)], CHANGE),
        rule(COORDINATION, "leases", READ_AND_CREATE),
        rule_on(COORDINATION, "leases", &[&name::member_lease(id)], CHANGE),
        // Records of offloading. Without their CRDs these rights are of nothing.
        rule(OFFLOADING, "namespacemaps", OWN),
        rule(OFFLOADING, "namespacemaps/status", &["patch"]),
        rule(FREEPORT, "offloadoffers", OWN),
        rule(FREEPORT, "shadowpods", OWN),
        rule(FREEPORT, "shadowpods/status", &["patch"]),
    ];
    access(set, id, cluster_uid.map(|uid| (label::CLUSTER_UID, uid)), rights)
}

/// [`objects`] for a member that runs Antrea's controllers: it is marked as such and has only the rights that they need. It has no
/// Lease, replaces its objects whole, and reports network policies it cannot import by Events.
///
/// The verb `speak-antrea` on its ID lets policy `freeport-records` accept the names that Antrea gives to records.
pub fn antrea_objects(set: &str, id: &str) -> Vec<Object> {
    let rights = vec![
        rule(ANTREA, "resourceexports", REPLACE),
        rule_on(ANTREA, "resourceexports", &[id], &["act-as", "speak-antrea"]),
        rule(ANTREA, "resourceimports", READ),
        rule(ANTREA, "memberclusterannounces", READ_AND_CREATE),
        rule_on(ANTREA, "memberclusterannounces", &[&name::announce(id)], &["update", "delete"]),
        rule(CORE, "events", &["create"]),
    ];
    access(set, id, Some((label::SPEAKS, label::ANTREA)), rights)
}

/// ServiceAccount with one more annotation, its rights, and its token.
fn access(set: &str, id: &str, note: Option<(&str, &str)>, rights: Vec<PolicyRule>) -> Vec<Object> {
    let (area, account) = (area::name(set), account(id));
    let mut service_account = ServiceAccount {
        metadata: annotated(within(&area, &account), label::CLUSTER_ID, id),
        ..ServiceAccount::default()
    };
    let note = note.map(|(key, value)| (key.to_owned(), value.to_owned()));
    service_account.metadata.annotations.get_or_insert_default().extend(note);

    let token = Secret {
        metadata: annotated(within(&area, &token_secret(id)), "kubernetes.io/service-account.name", &account),
        type_: Some("kubernetes.io/service-account-token".into()),
        ..Secret::default()
    };

    let mut objects = vec![Object::new(&service_account)];
    let holder = Account { namespace: &area, name: &account };
    objects.extend(inside(&area, &holder, rights));
    objects.push(Object::new(&token));
    objects
}

fn annotated(mut metadata: ObjectMeta, key: &str, value: &str) -> ObjectMeta {
    metadata.annotations = Some(BTreeMap::from([(key.into(), value.into())]));
    metadata
}
