//! The daemons' Pods, as they run.

use e2e::fixture::SYSTEM;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;

use crate::pods::world::{CLUSTERS, shared};

#[e2e::test]
fn daemons_run_without_rights_where_nobody_gets_any() {
    shared(async |world| {
        for name in CLUSTERS {
            let cluster = world.cluster(name);
            let namespace = Api::<Namespace>::all(cluster.client.clone()).get(SYSTEM).await.unwrap();
            assert_eq!(namespace.labels()["pod-security.kubernetes.io/enforce"], "restricted");
            let pods = cluster.api::<Pod>(SYSTEM).list(&ListParams::default()).await.unwrap();
            // With two replicas of the webhook.
            let daemons = if name == "leader" { 4 } else { 3 };
            let pods: Vec<_> =
                pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
            assert_eq!(pods.len(), daemons, "{pods:?}");
            for pod in pods {
                let spec = pod.spec.as_ref().unwrap();
                assert_eq!(spec.security_context.as_ref().unwrap().run_as_non_root, Some(true));
                let container = &pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0];
                assert_eq!(container.restart_count, 0, "{} of {name}: {container:?}", pod.name_any());
            }
            let container = json!({"name": "shell", "image": "shell"});
            let any: Pod = serde_json::from_value(
                json!({"metadata": {"name": "any"}, "spec": {"containers": [container]}}),
            )
            .unwrap();
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            let refused = cluster.api::<Pod>(SYSTEM).create(&dry_run, &any).await.unwrap_err().to_string();
            assert!(refused.contains("violates PodSecurity"), "{refused}");
        }
    });
}
