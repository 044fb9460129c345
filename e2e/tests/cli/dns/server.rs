//! The objects of a CoreDNS, which no node runs.

use api::label;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::cli::{member_set::MemberSet, program::Ran};

pub(crate) const NAMESPACE: &str = "kube-system";
pub(crate) const NAME: &str = "coredns";
pub(crate) const CUSTOM: &str = "coredns-custom";
pub(crate) const COREFILE: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
";

/// A CoreDNS as a cluster's installer leaves it, in `west`. Nobody runs its Pods, and it asks for none.
pub(crate) struct Server {
    pub set: &'static MemberSet,
}

impl Server {
    pub(crate) async fn install(set: &'static MemberSet) -> Self {
        let (server, west) = (Self { set }, set.cluster("west"));
        // Of a test that failed.
        server.release().await;
        let _: ServiceAccount = west.create(NAMESPACE, json!({"metadata": {"name": NAME}})).await;
        let rule = |group: &str, kinds: &[&str]| json!({"apiGroups": [group], "resources": kinds, "verbs": ["list", "watch"]});
        let rules =
            json!([rule("", &["namespaces", "services"]), rule("discovery.k8s.io", &["endpointslices"])]);
        let role = json!({"metadata": {"name": "system:coredns"}, "rules": rules});
        let _: ClusterRole = west.create_cluster_wide(role).await;
        let binding = json!({
            "metadata": {"name": "system:coredns"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        });
        let _: ClusterRoleBinding = west.create_cluster_wide(binding).await;
        let config = json!({"metadata": {"name": NAME}, "data": {"Corefile": COREFILE}});
        let _: ConfigMap = west.create(NAMESPACE, config).await;
        let _: Deployment = west.create(NAMESPACE, deployment()).await;
        server
    }

    pub(crate) async fn freeport(&self, flags: &str) -> Ran {
        self.set.clusters.freeport(&format!("dns --context west {flags}")).await
    }

    pub(crate) async fn corefile(&self) -> String {
        let found = self.set.cluster("west").api::<ConfigMap>(NAMESPACE).get(NAME).await.unwrap();
        found.data.unwrap()["Corefile"].clone()
    }

    pub(crate) async fn set_corefile(&self, text: &str) {
        let patch = json!({"data": {"Corefile": text}});
        let _: ConfigMap = self.set.cluster("west").patch(NAMESPACE, NAME, &patch).await;
    }

    pub(crate) async fn deployment(&self) -> Deployment {
        self.set.cluster("west").api(NAMESPACE).get(NAME).await.unwrap()
    }

    pub(crate) async fn change_deployment(&self, spec: &Value) {
        let _: Deployment = self.set.cluster("west").patch(NAMESPACE, NAME, &json!({"spec": spec})).await;
    }

    pub(crate) async fn set_image(&self, image: &str) {
        let containers = json!([{"name": NAME, "image": image}]);
        self.change_deployment(&json!({"template": {"spec": {"containers": containers}}})).await;
    }

    pub(crate) async fn may_watch(&self) -> bool {
        let ask = "auth can-i watch serviceimports.multicluster.x-k8s.io --all-namespaces";
        let coredns = format!("--as system:serviceaccount:{NAMESPACE}:{NAME}");
        let answer = self.set.clusters.kubectl(&format!("--context west {ask} {coredns}")).await;
        answer.stdout.starts_with("yes")
    }

    /// Of all that is or could be written, but for what its controller says of the Deployment.
    pub(crate) async fn versions(&self) -> Vec<Option<String>> {
        let west = self.set.cluster("west");
        let (name, client) = ("coredns-serviceimports", || west.client.clone());
        let config = west.api::<ConfigMap>(NAMESPACE).get(NAME).await.unwrap();
        let role = Api::<ClusterRole>::all(client()).get_opt(name).await.unwrap();
        let binding = Api::<ClusterRoleBinding>::all(client()).get_opt(name).await.unwrap();
        let generation = self.deployment().await.metadata.generation;
        vec![
            config.resource_version(),
            role.and_then(|role| role.resource_version()),
            binding.and_then(|binding| binding.resource_version()),
            generation.map(|generation| generation.to_string()),
        ]
    }

    pub(crate) async fn release(&self) {
        for what in [
            format!("-n {NAMESPACE} delete --ignore-not-found deployment,serviceaccount {NAME}"),
            format!("-n {NAMESPACE} delete --ignore-not-found configmap {NAME} {CUSTOM}"),
            "delete --ignore-not-found clusterrole,clusterrolebinding system:coredns coredns-serviceimports"
                .into(),
        ] {
            self.set.clusters.kubectl(&format!("--context west {what}")).await.succeeded();
        }
    }
}

fn deployment() -> Value {
    let labels = json!({"k8s-app": "kube-dns", label::MANAGED_BY: "somebody"});
    let container = json!({"name": NAME, "image": "registry.k8s.io/coredns/coredns:v1.12.2"});
    json!({
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": NAME, "containers": [container]},
            },
        },
    })
}
