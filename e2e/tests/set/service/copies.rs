//! Issue 38: a copy of an imported Service, labels and all, is its maker's: said once, and neither counted nor changed nor deleted.

use e2e::{
    cluster_set::imports_complete,
    daemon::End,
    fixture::{alone, shared},
    seen::{event, imported, not_imported},
    waiting::{always, eventually},
};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

#[e2e::test]
fn copies_of_an_imported_service_are_said_and_outlive_the_import() {
    shared(async |world| {
        let ns = &world.namespace("copied", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        let other = &format!("{ns}-other");
        west.create_namespace(other).await;
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("imported", || imported(west, ns, "web")).await;
        let ours = west.api::<Service>(ns).get("antrea-mc-web").await.unwrap();
        let ports = json!([{"name": "http", "port": 80}]);
        for (namespace, name) in [(ns, "native"), (other, "antrea-mc-web")] {
            let metadata = json!({"name": name, "labels": ours.labels(), "annotations": ours.annotations()});
            let _: Service =
                west.create(namespace, json!({"metadata": metadata, "spec": {"ports": ports}})).await;
            eventually("an Event says so", || event(west, namespace, name, "CopyOfImport")).await;
        }
        eventually("the ClusterSet names them", || async {
            let (_, message) = imports_complete(west).await?;
            let names = [format!("Service {ns}/native"), format!("Service {other}/antrea-mc-web")];
            if names.iter().all(|name| message.contains(name)) { Ok(()) } else { Err(message) }
        })
        .await;
        east.unexport(ns, "web").await;
        eventually("withdrawn", || not_imported(west, ns, "web")).await;
        always("copies stay", || async {
            for (namespace, name) in [(ns, "native"), (other, "antrea-mc-web")] {
                let copy =
                    west.api::<Service>(namespace).get(name).await.map_err(|error| error.to_string())?;
                let is_going = copy.metadata.deletion_timestamp.is_some();
                if is_going || copy.labels() != ours.labels() {
                    return Err(format!("{copy:?}"));
                }
            }
            Ok(())
        })
        .await;
        west.release_namespace(other).await;
        world.release(ns).await;
    });
}

#[e2e::test]
fn an_exact_copy_in_the_place_of_an_imported_service_goes_with_the_import() {
    alone(async |world| {
        let ns = &world.namespace("replaced", &["east", "west"]).await;
        let (east, west) = (world.cluster("east"), world.cluster("west"));
        east.exported(ns, "web", &["10.1.0.1"]).await;
        eventually("imported", || imported(west, ns, "web")).await;
        world.end("freeport-member-west", End::Stop).await;
        let ours = west.api::<Service>(ns).get("antrea-mc-web").await.unwrap();
        let mut copy = json!(ours);
        for of_the_server in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            copy["metadata"][of_the_server] = Value::Null;
        }
        west.delete::<Service>(ns, "antrea-mc-web").await;
        let copy: Service = west.create(ns, copy).await;
        world.start("freeport-member-west").await;
        eventually("imported by way of the copy", || imported(west, ns, "web")).await;
        east.unexport(ns, "web").await;
        eventually("withdrawn", || not_imported(west, ns, "web")).await;
        assert_ne!(copy.uid(), ours.uid(), "it was a copy");
        world.release(ns).await;
    });
}
