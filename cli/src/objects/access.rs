//! A member's way into a Common Area: who it is there, what it may do, and the token that proves it.

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
        ANTREA, Account, CHANGE, COORDINATION, CORE, OWN, READ, READ_AND_CREATE, REPLACE, inside, rule,
        rule_on,
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
/// The verb `act-as` on the member's own ID is what policy `freeport-records` asks for: a record may be written only by who
/// may act as the cluster it claims to come from. Lease and announce have one name for each member, so rights alone keep
/// it from those of others, but for creating them.
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
    ];
    way_in(set, id, cluster_uid.map(|uid| (label::CLUSTER_UID, uid)), rights)
}

/// [`objects`] for a member that runs Antrea's controllers: it is marked as such and has what they ask for, no more. It has no
/// Lease, replaces its objects whole, and reports network policies it cannot import by Events.
///
/// The verb `speak-antrea` on its ID lets policy `freeport-records` take the names that Antrea gives to records.
pub fn antrea_objects(set: &str, id: &str) -> Vec<Object> {
    let rights = vec![
        rule(ANTREA, "resourceexports", REPLACE),
        rule_on(ANTREA, "resourceexports", &[id], &["act-as", "speak-antrea"]),
        rule(ANTREA, "resourceimports", READ),
        rule(ANTREA, "memberclusterannounces", READ_AND_CREATE),
        rule_on(ANTREA, "memberclusterannounces", &[&name::announce(id)], &["update", "delete"]),
        rule(CORE, "events", &["create"]),
    ];
    way_in(set, id, Some((label::SPEAKS, label::ANTREA)), rights)
}

/// ServiceAccount with one more annotation, its rights, and its token.
fn way_in(set: &str, id: &str, note: Option<(&str, &str)>, rights: Vec<PolicyRule>) -> Vec<Object> {
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
