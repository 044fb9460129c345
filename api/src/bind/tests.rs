//! Golden JSON of kube-bind's kinds, and what its Go programs write in other words.

use kube::ResourceExt;
use serde_json::json;

use super::{
    binding::{APIServiceBinding, APIServiceBindingBundle, ClusterBinding},
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
    offer::{APIServiceExportTemplate, BindableResourcesRequest, Cluster, Collection},
};
use crate::golden::golden;

#[test]
fn each_kind_reads_and_writes_to_the_letter() {
    let binding: APIServiceBinding = golden!("bind-service-binding");
    let export: APIServiceExport = golden!("bind-export");
    let request: APIServiceExportRequest = golden!("bind-export-request");
    assert_eq!((binding.name_any(), export.name_any()), (request.name_any(), request.name_any()));
    let schema: BoundSchema = golden!("bind-schema");
    assert_eq!(schema.name_any(), export.spec.resources[0].name());
    let _: APIServiceBindingBundle = golden!("bind-bundle");
    let _: APIServiceExportTemplate = golden!("bind-template");
    let _: APIServiceNamespace = golden!("bind-service-namespace");
    let _: BindableResourcesRequest = golden!("bind-ask");
    let _: Cluster = golden!("bind-cluster");
    let _: ClusterBinding = golden!("bind-cluster-binding");
    let _: Collection = golden!("bind-collection");
}

#[test]
fn what_go_writes_for_nothing_is_nothing() {
    let never = json!([{"type": "Ready", "status": "False", "severity": "", "lastTransitionTime": null}]);
    let namespace: APIServiceNamespace = serde_json::from_value(
        json!({"metadata": {"name": "team1", "creationTimestamp": null}, "spec": {}, "status": {}}),
    )
    .unwrap();
    assert_eq!(namespace.status.unwrap().namespace, None);
    let mut schema = serde_json::to_value::<BoundSchema>(golden!("bind-schema")).unwrap();
    schema["status"] =
        json!({"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null, "conditions": never});
    let schema: BoundSchema = serde_json::from_value(schema).unwrap();
    assert_eq!(schema.status.unwrap().stored_versions, None);
    let mut binding = serde_json::to_value::<ClusterBinding>(golden!("bind-cluster-binding")).unwrap();
    binding["status"] = json!({"lastHeartbeatTime": null, "heartbeatInterval": "0s", "conditions": never});
    let binding: ClusterBinding = serde_json::from_value(binding).unwrap();
    assert_eq!(binding.status.unwrap().last_heartbeat_time, None);
}
