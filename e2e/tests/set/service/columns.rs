//! What `kubectl get` shows of exports and of what the leader made of them.

use api::{ServiceName, mcs::ServiceExport, name, resource_import::ResourceImport};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, shared},
    seen::{imported, says},
    waiting::eventually,
};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde_json::{Value, json};

/// What `kubectl get` shows of an object: the columns, by their names.
async fn columns<K>(cluster: &Cluster, namespace: &str, name: &str) -> Value
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let request = http::Request::get(format!("{}/{name}", K::url_path(&(), Some(namespace))))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(vec![])
        .unwrap();
    let table: Value = cluster.client.request(request).await.unwrap();
    let names = table["columnDefinitions"].as_array().unwrap();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    names.iter().zip(cells).map(|(name, cell)| (name["name"].as_str().unwrap(), cell.clone())).collect()
}

#[e2e::test]
fn what_is_exported_and_by_whom_is_seen_at_a_glance() {
    shared(async |world| {
        let ns = &world.namespace("columns", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        for cluster in [east, west] {
            cluster.exported(ns, "web", &["10.1.0.1"]).await;
        }
        for cluster in [east, west] {
            eventually("imported", || imported(cluster, ns, "web")).await;
            eventually("without conflict", || says(cluster, (ns, "web"), "Conflict", "False", "NoConflicts"))
                .await;
            let shown = columns::<ServiceExport>(cluster, ns, "web").await;
            let shown = ["Valid", "Ready", "Conflict"].map(|column| shown[column].clone());
            assert_eq!(shown, [json!("True"), json!("True"), json!("False")]);
        }
        let import = name::service_import(&ServiceName::new(ns, "web"));
        eventually("both", || async {
            let shown = columns::<ResourceImport>(world.leader(), AREA, &import).await;
            match shown["Exporters"].as_str() {
                Some(exporters) if ["east", "west"].iter().all(|id| exporters.contains(id)) => Ok(()),
                _ => Err(shown.to_string()),
            }
        })
        .await;
        world.release(ns).await;
    });
}
