//! The same requests without daemons.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, ServiceAccount},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::{conditions, wait::await_condition},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::set::{HOME, Set};

/// Requests at once.
const AT_ONCE: usize = 16;

/// What `count` Namespaces with twins in two hosts cost: for each at home three writes of an object, and the Namespace's label; in the Common
/// Area two for each host; at each host Namespace and RoleBinding, and a wait for its ServiceAccount.
pub(crate) async fn of_offloading(set: &Set, count: usize) -> Duration {
    let begun = Instant::now();
    let all = (0..count).map(|n| async move {
        let name = format!("floor-of-{n}");
        for write in 0..4 {
            apply::<ConfigMap>(set, HOME, "default", &name, write).await;
        }
        futures::future::join_all(["east", "leader"].map(|host| twin(set, host, &name))).await;
    });
    stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    begun.elapsed()
}

async fn twin(set: &Set, host: &str, name: &str) {
    let record = format!("{host}-{name}");
    apply::<ConfigMap>(set, "leader", "default", &record, 0).await;
    let cluster = set.world.cluster(host);
    let twin = format!("{name}-{HOME}");
    cluster.create_namespace(&twin).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let binding = json!({"metadata": {"name": "floor"}, "roleRef": role, "subjects": []});
    cluster.create::<RoleBinding>(&twin, binding).await;
    let account = await_condition(
        cluster.api::<ServiceAccount>(&twin),
        "default",
        |account: Option<&ServiceAccount>| account.is_some(),
    );
    account.await.unwrap();
    apply::<ConfigMap>(set, "leader", "default", &record, 1).await;
}

async fn apply<K>(set: &Set, cluster: &str, namespace: &str, name: &str, write: usize)
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let patch: Value = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}, "data": {"write": write.to_string()},
    });
    let api = set.world.cluster(cluster).api::<K>(namespace);
    api.patch(name, &PatchParams::apply("floor").force(), &Patch::Apply(patch)).await.unwrap();
}

/// How long Kubernetes takes to delete an empty Namespace.
pub(crate) async fn deleted_namespace(set: &Set, name: &str) -> Duration {
    let east = set.world.cluster("east");
    let namespaces = Api::<Namespace>::all(east.client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let made = namespaces.create(&PostParams::default(), &object).await.unwrap();
    await_condition(east.api::<ServiceAccount>(name), "default", |account: Option<&ServiceAccount>| {
        account.is_some()
    })
    .await
    .unwrap();
    let begun = Instant::now();
    namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    await_condition(namespaces, name, conditions::is_deleted(&made.metadata.uid.unwrap())).await.unwrap();
    begun.elapsed()
}
