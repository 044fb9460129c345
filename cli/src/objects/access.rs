//! A member's way into a Common Area: who it is there, what it may do, and the token that proves it.

use std::collections::BTreeMap;

use api::{label, name};
use k8s_openapi::{
    api::core::v1::{Secret, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{
    Object, area,
    rights::{ANTREA, Account, CHANGE, COORDINATION, OWN, READ, READ_AND_CREATE, inside, rule, rule_on},
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
    let (area, account) = (area::name(set), account(id));

    let mut service_account = ServiceAccount {
        metadata: annotated(within(&area, &account), label::CLUSTER_ID, id),
        ..ServiceAccount::default()
    };
    let given_to = cluster_uid.map(|uid| (label::CLUSTER_UID.to_owned(), uid.to_owned()));
    service_account.metadata.annotations.get_or_insert_default().extend(given_to);

    let rights = vec![
        rule(ANTREA, "resourceexports", OWN),
        rule_on(ANTREA, "resourceexports", &[id], &["act-as"]),
        rule(ANTREA, "resourceimports", READ),
        rule(ANTREA, "memberclusterannounces", READ_AND_CREATE),
        rule_on(ANTREA, "memberclusterannounces", &[&name::announce(id)], CHANGE),
        rule(COORDINATION, "leases", READ_AND_CREATE),
        rule_on(COORDINATION, "leases", &[&name::member_lease(id)], CHANGE),
    ];

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
