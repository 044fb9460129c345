//! CoreDNS as a cluster's DNS server: the Service `kube-dns` in `kube-system` and what it takes.

use std::{fmt::Debug, net::IpAddr};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Service, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
};
use kube::{Api, Client, Resource, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::images;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "coredns";
/// Port 53 would need a capability.
const PORT: u16 = 1053;
/// As clusters have it: the zone of a ClusterSet is added by `freeport dns`.
const COREFILE: &str = "\
cluster.local:1053 in-addr.arpa:1053 ip6.arpa:1053 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        ttl 5
    }
    loadbalance
}
";

/// Name of a Service for the whole set.
pub fn clusterset_name(namespace: &str, service: &str) -> String {
    format!("{service}.{namespace}.svc.clusterset.local")
}

/// Creates what CoreDNS is made of, behind these ClusterIPs, one of each of the cluster's families.
pub(crate) async fn deploy(client: &Client, addresses: &[IpAddr]) -> Result<(), kube::Error> {
    create::<ServiceAccount>(&system(client), json!({"metadata": {"name": NAME}})).await?;
    create::<ClusterRole>(&Api::all(client.clone()), cluster_role()).await?;
    create::<ClusterRoleBinding>(&Api::all(client.clone()), cluster_role_binding()).await?;
    let config = json!({"metadata": {"name": NAME}, "data": {"Corefile": COREFILE}});
    create::<ConfigMap>(&system(client), config).await?;
    create::<Service>(&system(client), service(addresses)).await?;
    create::<Deployment>(&system(client), deployment()).await
}

/// Whether names are answered.
pub(crate) async fn ready(client: &Client) -> Result<(), String> {
    let deployment = Api::<Deployment>::namespaced(client.clone(), NAMESPACE).get(NAME).await;
    let deployment = deployment.map_err(|error| format!("Deployment {NAME}: {error}"))?;
    let status = deployment.status.unwrap_or_default();
    let is_observed = status.observed_generation == deployment.metadata.generation;
    match [status.replicas, status.updated_replicas, status.ready_replicas] {
        [Some(1), Some(1), Some(1)] if is_observed => Ok(()),
        _ => Err(format!("Deployment {NAME}: no Pod is ready (see `kubectl -n {NAMESPACE} get pods`)")),
    }
}

fn system<K>(client: &Client) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), NAMESPACE)
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<(), kube::Error>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
    api.create(&PostParams::default(), &object).await.map(drop)
}

fn cluster_role() -> Value {
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["list", "watch"]});
    json!({
        "metadata": {"name": "system:coredns"},
        "rules": [
            rule("", &["services", "namespaces"]),
            rule("discovery.k8s.io", &["endpointslices"]),
        ],
    })
}

fn cluster_role_binding() -> Value {
    json!({
        "metadata": {"name": "system:coredns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    })
}

fn service(addresses: &[IpAddr]) -> Value {
    let port = |protocol: &str| {
        let name = format!("dns-{}", protocol.to_lowercase());
        json!({"name": name, "protocol": protocol, "port": 53, "targetPort": PORT})
    };
    json!({
        "metadata": {"name": "kube-dns", "labels": labels()},
        "spec": {
            "clusterIP": addresses.first(),
            "clusterIPs": addresses,
            "ipFamilyPolicy": if addresses.len() > 1 { "RequireDualStack" } else { "SingleStack" },
            "selector": labels(),
            "ports": [port("UDP"), port("TCP")],
        },
    })
}

fn deployment() -> Value {
    let probe = |path: &str, port: u16| json!({"httpGet": {"path": path, "port": port}, "periodSeconds": 1});
    let container = json!({
        "name": NAME,
        "image": images::coredns(),
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "readinessProbe": probe("/ready", 8181),
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "failureThreshold": 10},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": true}],
        // What asks for no processor time gets none for seconds on a machine that is busy.
        "resources": {"requests": {"cpu": "50m"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    json!({
        "metadata": {"name": NAME, "labels": labels()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": "system-cluster-critical",
                    // The node's resolver: it cannot be its own.
                    "dnsPolicy": "Default",
                    "containers": [container],
                    "volumes": [{"name": "config", "configMap": {"name": NAME}}],
                },
            },
        },
    })
}

fn labels() -> Value {
    json!({"k8s-app": "kube-dns"})
}
