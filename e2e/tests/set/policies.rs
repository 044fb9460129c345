//! The daemons need nothing that the policies refuse.

use api::{ServiceName, mcs::ServiceImport, resource_export::ResourceExport};
use cli::objects::access;
use e2e::{
    account::by_token,
    fixture::{AREA, shared},
    record,
    seen::{imported, not_imported},
    waiting::eventually,
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// A policy refuses to create the object.
async fn is_refused<K>(api: Api<K>, policy: &str, object: &Value) -> Result<(), String>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let object = serde_json::from_value(object.clone()).unwrap();
    match api.create(&dry_run, &object).await {
        Err(kube::Error::Api(status)) if status.message.contains(policy) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[e2e::test]
fn a_service_gets_from_one_cluster_to_another_and_back() {
    shared(async |world| {
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let ns = world.namespace("policies", &["east", "west"]).await;
        let of_east = record::service("east", &ServiceName::new(&ns, "web"));
        let port = json!({"port": 0, "protocol": "TCP"});
        let import = json!({"metadata": {"name": "free"}, "spec": {"type": "ClusterSetIP", "ports": [port]}});
        let as_west = by_token(world, "leader", AREA, &access::account("west")).await;
        let records = Api::<ResourceExport>::namespaced(as_west, AREA);
        eventually("records are looked at", || is_refused(records.clone(), "freeport-records", &of_east))
            .await;
        eventually("imports are looked at", || {
            is_refused(west.api::<ServiceImport>(&ns), "freeport-import-content", &import)
        })
        .await;
        east.exported(&ns, "web", &["10.1.0.1"]).await;
        eventually("the import is ready", || imported(west, &ns, "web")).await;
        east.unexport(&ns, "web").await;
        eventually("the import is gone", || not_imported(west, &ns, "web")).await;
        world.release(&ns).await;
    });
}
