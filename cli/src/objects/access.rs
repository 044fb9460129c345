//! A member's access to a Common Area: its ServiceAccount, and what that may do.

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

/// Name of the Secret in the Common Area that Kubernetes fills with a token of that ServiceAccount: for members that run Antrea's
/// controllers. Members of Freeport had one before they replaced their tokens themselves.
pub fn token_secret(id: &str) -> String {
    format!("{}-token", account(id))
}

/// ServiceAccount, Role and RoleBinding of member `id` in the Common Area of `set`. A token is asked for, and ends after a day: the member
/// asks for its next ones itself.
///
/// Policy `freeport-records` asks for the verb `act-as` on the member's own ID: only who may act as a cluster may write its
/// records. Lease and announce have one name for each member, so RBAC protects those of others, but for their creation.
///
/// `cluster_uid` (of the Namespace kube-system) notes who the ID was given to, so that no other cluster gets it as well.
pub fn objects(set: &str, id: &str, cluster_uid: Option<&str>) -> Vec<Object> {
    objects_within(set, id, cluster_uid, None)
}

/// [`objects`] where it is noted, too, which addresses the endpoints of the member may have.
pub fn objects_within(set: &str, id: &str, cluster_uid: Option<&str>, ranges: Option<&str>) -> Vec<Object> {
    let account = account(id);
    let rights = vec![
        rule_on(CORE, "serviceaccounts/token", &[&account], &["create"]),
        // The authorities of the leader's API server.
        rule_on(CORE, "configmaps", &[name::ROOT_CA], &["get"]),
        rule(ANTREA, "resourceexports", OWN),
        rule_on(ANTREA, "resourceexports", &[id], &["act-as"]),
        rule(ANTREA, "resourceimports", READ),
        rule(ANTREA, "memberclusterannounces", READ_AND_CREATE),
        rule_on(ANTREA, "memberclusterannounces", &[&name::announce(id)], CHANGE),
        rule(COORDINATION, "leases", READ_AND_CREATE),
        rule_on(COORDINATION, "leases", &[&name::member_lease(id)], CHANGE),
        // What this cluster reports, and what others do.
        rule(FREEPORT, "clusterreports", READ_AND_CREATE),
        rule_on(FREEPORT, "clusterreports", &[id], &["delete"]),
        rule_on(FREEPORT, "clusterreports/status", &[id], &["patch"]),
        // Records of offloading. Without their CRDs these rights are of nothing.
        rule(OFFLOADING, "namespacemaps", OWN),
        rule(OFFLOADING, "namespacemaps/status", &["patch"]),
        rule(FREEPORT, "offloadoffers", OWN),
        rule(FREEPORT, "shadowpods", OWN),
        rule(FREEPORT, "shadowpods/status", &["patch"]),
    ];
    let notes = [(label::CLUSTER_UID, cluster_uid), (label::ADDRESS_RANGES, ranges)];
    access(set, id, &notes, rights)
}

/// [`objects`] for a member that runs Antrea's controllers: it is marked as such and has only the rights that they need. It has no
/// Lease, replaces its objects whole, reports network policies it cannot import by Events, and keeps the token that Kubernetes writes into
/// a Secret for it.
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
    let (area, account) = (area::name(set), account(id));
    let token = Secret {
        metadata: annotated(within(&area, &token_secret(id)), "kubernetes.io/service-account.name", &account),
        type_: Some("kubernetes.io/service-account-token".into()),
        ..Secret::default()
    };
    let mut objects = access(set, id, &[(label::SPEAKS, Some(label::ANTREA))], rights);
    objects.push(Object::new(&token));
    objects
}

/// ServiceAccount with these annotations, and its rights.
fn access(set: &str, id: &str, notes: &[(&str, Option<&str>)], rights: Vec<PolicyRule>) -> Vec<Object> {
    let (area, account) = (area::name(set), account(id));
    let mut service_account = ServiceAccount {
        metadata: annotated(within(&area, &account), label::CLUSTER_ID, id),
        ..ServiceAccount::default()
    };
    let notes = notes.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value)?.to_owned())));
    service_account.metadata.annotations.get_or_insert_default().extend(notes);

    let mut objects = vec![Object::new(&service_account)];
    let holder = Account { namespace: &area, name: &account };
    objects.extend(inside(&area, &holder, rights));
    objects
}

fn annotated(mut metadata: ObjectMeta, key: &str, value: &str) -> ObjectMeta {
    metadata.annotations = Some(BTreeMap::from([(key.into(), value.into())]));
    metadata
}
