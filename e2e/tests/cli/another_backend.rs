//! A contract with a provider that Freeport did not install: kube-bind's backend with `--frontend-disabled`, which is played.

use api::bind::offer::{APIServiceExportTemplate, BindableResourcesRequest};
use cli::objects::{Object, SYSTEM, bind};
use e2e::{binding::install, cluster::Cluster, waiting::eventually};
use futures::future::join_all;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::cli::clusters::Clusters;

/// Answers whoever asks, as the backend does.
async fn answers(clusters: &Clusters) {
    let cluster = clusters.cluster("spoke");
    let asked = cluster.api::<BindableResourcesRequest>(SYSTEM);
    let name = eventually("somebody asks for a contract", || async {
        let all = asked.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        all.iter().map(ResourceExt::name_any).next().ok_or_else(|| "nobody".to_owned())
    })
    .await;
    let at = json!({"name": format!("{name}-binding-response"), "key": "binding-response"});
    let answer = json!({"kind": "BindingResourceResponse", "apiVersion": "kube-bind.io/v1alpha2", "authentication": {},
        "kubeconfig": ByteString(b"played".to_vec()), "requests": null});
    let _: Secret = cluster
        .create(
            SYSTEM,
            json!({"metadata": {"name": at["name"]}, "stringData": {"binding-response": answer.to_string()}}),
        )
        .await;
    let status = json!({"phase": "Succeeded", "namespace": "cluster-x", "kubeconfigSecretRef": at});
    asked
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
        .await
        .unwrap();
}

/// Waits until objects of the kind can be listed. Kubernetes lists them when the CRD is deleted; where it cannot, since nobody had asked for them
/// before, it tries again after minutes at times.
async fn is_served(cluster: &Cluster, crd: &Object) {
    let (spec, names) = (&crd.body["spec"], &crd.body["spec"]["names"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (group, version) = (text(&spec["group"]), text(&spec["versions"][0]["name"]));
    let resource = ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
    };
    let objects = Api::<DynamicObject>::all_with(cluster.client.clone(), &resource);
    eventually(&format!("{crd} is served"), || async {
        objects.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

/// It has no Namespace of ours. Nothing is left of it here.
pub(crate) async fn is_asked_for_a_contract(clusters: &Clusters) {
    let spoke = clusters.cluster("spoke");
    let namespaces = Api::<Namespace>::all(spoke.client.clone());
    assert!(namespaces.get_opt(SYSTEM).await.unwrap().is_none());
    install(spoke, &bind::provider_crds()).await;
    let resources = json!([{"group": "example.com", "resource": "mangodbs", "versions": ["v1"]}]);
    let template =
        json!({"metadata": {"name": "played"}, "spec": {"scope": "Namespaced", "resources": resources}});
    join_all(bind::provider_crds().iter().map(|crd| is_served(spoke, crd))).await;
    let _: APIServiceExportTemplate = spoke.create_cluster_wide(template).await;
    let line = "bind apiservice played -t played --only provider --identity u1 --provider-context spoke";
    let (ran, ()) = tokio::join!(clusters.freeport(line), answers(clusters));
    let printed = ran.succeeded();
    assert!(printed.contains("kind: BindingResourceResponse"), "{printed}");
    assert!(printed.contains("resource: mangodbs"), "{printed}");
    spoke.release_namespace(SYSTEM).await;
    for crd in bind::provider_crds() {
        spoke.crds().delete(&crd.name, &DeleteParams::default()).await.unwrap();
    }
    eventually("the CRDs are gone", || async {
        for crd in bind::provider_crds() {
            if spoke.crds().get_opt(&crd.name).await.unwrap().is_some() {
                return Err(crd.name);
            }
        }
        Ok(())
    })
    .await;
}
