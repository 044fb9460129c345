//! ServiceAccounts, and clients that have nothing but their tokens.

use e2e::{account::by_token, waiting::eventually, world::World};
use k8s_openapi::api::{
    authorization::v1::SelfSubjectAccessReview,
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

/// What an account may do in its Namespace.
pub(crate) enum Rights {
    /// The rules of a Role of its own.
    Role(Value),
    /// Those of a ClusterRole that is there.
    ClusterRole(&'static str),
}

/// A new ServiceAccount, by its token.
pub(crate) async fn with(world: &World, namespace: &str, name: &str, rights: Rights) -> Client {
    let admin = world.leader();
    let metadata = json!({"name": name});
    let _: ServiceAccount = admin.create(namespace, json!({"metadata": metadata})).await;
    let (kind, role) = match rights {
        Rights::Role(rules) => {
            let role = json!({"metadata": metadata, "rules": rules});
            let _: Role = admin.create(namespace, role).await;
            ("Role", name)
        }
        Rights::ClusterRole(role) => ("ClusterRole", role),
    };
    let binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    });
    let _: RoleBinding = admin.create(namespace, binding).await;

    by_token(world, "leader", namespace, name).await
}

/// Waits until the authorizer knows of a right.
pub(crate) async fn until_allowed(client: &Client, namespace: &str, group: &str, resource: &str, verb: &str) {
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let review = json!({"spec": {"resourceAttributes": {
        "namespace": namespace, "group": group, "resource": resource, "verb": verb,
    }}});
    let review: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    eventually(&format!("may {verb} {resource}"), || async {
        let told = reviews.create(&PostParams::default(), &review).await.unwrap().status;
        if told.as_ref().is_some_and(|status| status.allowed) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

/// What no member gets: every verb on everything in the Common Area, but `act-as` for one cluster alone.
pub(crate) fn any_right(cluster: &str) -> Value {
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    json!([
        {
            "apiGroups": ["multicluster.crd.antrea.io"],
            "resources": [
                "resourceexports", "resourceexports/status", "resourceimports", "memberclusterannounces",
            ],
            "verbs": verbs,
        },
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs},
        {
            "apiGroups": ["offloading.liqo.io", "multicluster.freeport.dev"],
            "resources": [
                "namespacemaps", "namespacemaps/status", "offloadoffers", "shadowpods", "shadowpods/status",
                "clusterreports", "clusterreports/status",
            ],
            "verbs": verbs,
        },
        {
            "apiGroups": ["multicluster.crd.antrea.io"],
            "resources": ["resourceexports"],
            "resourceNames": [cluster],
            "verbs": ["act-as"],
        },
    ])
}
