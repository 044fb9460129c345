//! What `kubectl get` shows of exports, and of what the leader makes of them.

use api::{
    ServiceName,
    cluster_set::ClusterSet,
    mcs::{ServiceExport, ServiceImport},
    name,
    resource_import::ResourceImport,
};
use e2e::{
    cluster::Cluster,
    fixture::{AREA, CLUSTERS, SET, SYSTEM, shared},
    seen::{imported, right, says},
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

#[e2e::test(real)]
fn whether_an_export_is_valid_ready_and_in_conflict_is_seen_at_a_glance() {
    shared(async |world| {
        let ns = &world.namespace("columns", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("imported", || imported(west, ns, "web")).await;
        eventually("without conflict", || says(east, (ns, "web"), "Conflict", "False", "NoConflicts")).await;
        let shown = columns::<ServiceExport>(east, ns, "web").await;
        let shown = ["Valid", "Ready", "Conflict"].map(|column| shown[column].clone());
        assert_eq!(shown, [json!("True"), json!("True"), json!("False")]);
        eventually("so is whether the import is ready", || async {
            let shown = columns::<ServiceImport>(west, ns, "web").await;
            if shown["Ready"] == json!("True") { Ok(()) } else { Err(format!("{shown}")) }
        })
        .await;
        world.release(ns).await;
    });
}

#[e2e::test(real)]
fn all_exporters_and_all_members_are_seen_at_a_glance() {
    shared(async |world| {
        let ns = &world.namespace("exporters", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("east exports", || imported(west, ns, "web")).await;
        west.exported(ns, "web", &["10.2.0.1"]).await;
        eventually("both export", || async {
            right(imported(east, ns, "web").await, |seen| seen.endpoints.len() == 2)
        })
        .await;
        let name = name::service_import(&ServiceName::new(ns, "web"));
        let shown = columns::<ResourceImport>(world.leader(), AREA, &name).await;
        assert!(
            ["east, west", "west, east"].map(|both| json!(both)).contains(&shown["Exporters"]),
            "{shown}"
        );
        for name in CLUSTERS {
            eventually(&format!("{name} counts all members"), || async {
                let shown = columns::<ClusterSet>(world.cluster(name), SYSTEM, SET).await;
                let counts = ["Total Clusters", "Ready Clusters"].map(|column| shown[column].clone());
                if counts == [json!("3"), json!("3")] { Ok(()) } else { Err(format!("{shown}")) }
            })
            .await;
        }
        world.release(ns).await;
    });
}
