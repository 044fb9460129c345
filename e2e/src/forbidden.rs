//! What an administrator forbids, by a policy of the API server: a write that is refused for what it says.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::ConfigMap,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    waiting::eventually,
    walk::Refused,
    world::{Ground, World},
};

/// Message of what is refused.
pub use sim::api::NOT_THIS_ONE;

/// Policy of [`forbid_all`].
const ALL: &str = "no-writes-at-all";
/// API groups of everything that daemons write.
const GROUPS: [&str; 10] = [
    "about.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "kube-bind.io",
    "multicluster.crd.antrea.io",
    "multicluster.freeport.dev",
    "multicluster.x-k8s.io",
    "offloading.liqo.io",
    "rbac.authorization.k8s.io",
];

/// Forbids what `spec` of a policy says. The API server takes a moment to know it.
pub async fn forbid(cluster: &Cluster, name: &str, spec: Value) {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    let _: ValidatingAdmissionPolicy = cluster.create_cluster_wide(policy).await;
    let binding =
        json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    let _: ValidatingAdmissionPolicyBinding = cluster.create_cluster_wide(binding).await;
}

/// Refuses to Freeport's daemons the writes of Services, of offloading and of records for which `refused` holds: see [`forbid_writers`].
pub async fn forbid_daemons(cluster: &Cluster, namespace: &str, name: &str, refused: &str) {
    let resources = [
        "services",
        "serviceexports/status",
        "serviceimports",
        "serviceimports/status",
        "endpointslices",
        "resourceexports",
        "resourceimports",
        "namespaces",
        "nodes",
        "nodes/status",
        "leases",
        "secrets",
        "pods",
        "pods/status",
        "rolebindings",
        "namespaceoffloadings",
        "namespaceoffloadings/status",
        "namespacemaps",
        "namespacemaps/status",
        "offloadpeers/status",
        "offloadoffers",
        "shadowpods",
        "shadowpods/status",
    ];
    let groups = [
        "discovery.k8s.io",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
        "multicluster.x-k8s.io",
        "multicluster.crd.antrea.io",
        "multicluster.freeport.dev",
        "offloading.liqo.io",
    ];
    let refused = format!("request.userInfo.username.contains('freeport') && ({refused})");
    forbid_writers(cluster, namespace, name, (&groups, &resources), &refused).await;
}

/// Refuses the writes of these groups, and of the group without a name, and resources for which `refused` holds, a CEL expression about `request`,
/// `variables.name`, the name of the object, `variables.within`, its Namespace and that of the Pod it is about, and `variables.subresource`. `namespace`
/// is one that is there. Returns when the policy is in force.
pub async fn forbid_writers(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    (groups, resources): (&[&str], &[&str]),
    refused: &str,
) {
    let (groups, resources) = ([&[""], groups].concat(), [&["configmaps"], resources].concat());
    let rule = json!({
        "apiGroups": groups, "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": resources,
    });
    let object_name = "(request.operation == 'DELETE' ? oldObject : object).metadata.name";
    let written = "(request.operation == 'DELETE' ? oldObject : object)";
    let within = format!(
        "(has(request.namespace) ? request.namespace : '') + \
         (request.resource.resource == 'shadowpods' ? ' ' + {written}.spec.namespace : '')"
    );
    let subresource = "has(request.subResource) ? request.subResource : ''";
    // A deleted policy of the same name may apply for a moment longer, so each policy has a probe of its own.
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let probe = format!("refused-to-everybody-{}", PROBES.fetch_add(1, Ordering::Relaxed));
    let refused = format!("variables.name == '{probe}' || {refused}");
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [
            {"name": "name", "expression": object_name},
            {"name": "within", "expression": within},
            {"name": "subresource", "expression": subresource},
        ],
        "validations": [{"expression": format!("!({refused})"), "message": NOT_THIS_ONE}],
    });
    forbid(cluster, name, spec).await;
    let probe: ConfigMap = serde_json::from_value(json!({"metadata": {"name": probe}})).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the policy is in force", || async {
        match cluster.api(namespace).create(&dry, &probe).await {
            Ok(_) => Err("not yet".to_owned()),
            Err(_) => Ok(()),
        }
    })
    .await;
}

/// Refuses this write to all daemons of its cluster, whatever the object is called, until [`permit_all`].
pub async fn forbid_all(world: &World, refused: &Refused) {
    let Refused { at, resource, operation, .. } = *refused;
    if let Ground::Simulated(simulated) = &world.ground {
        return simulated.world.server(at).forbid(&[(resource, operation)]);
    }
    let of_object = resource.trim_end_matches("status");
    let resources = [of_object.to_owned(), format!("{of_object}/status")];
    let resources = resources.iter().map(String::as_str).collect::<Vec<_>>();
    // Of a consumer's member the provider knows the account of its contract.
    let by = "(request.userInfo.username.contains('freeport') || request.userInfo.username.endsWith(':kube-binder'))";
    let says = format!(
        "{by} && request.operation == '{}' && request.resource.resource + variables.subresource == '{resource}'",
        operation.to_uppercase()
    );
    forbid_writers(world.cluster(at), "default", ALL, (&GROUPS, &resources), &says).await;
}

/// Takes that back.
pub async fn permit_all(world: &World, refused: &Refused) {
    match &world.ground {
        Ground::Simulated(simulated) => simulated.world.server(refused.at).forbid(&[]),
        Ground::Real(_) => permit(world.cluster(refused.at), ALL).await,
    }
}

/// Takes that back. It holds for a moment longer.
pub async fn permit(cluster: &Cluster, name: &str) {
    let delete = DeleteParams::default();
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(cluster.client.clone());
    drop(bindings.delete(name, &delete).await.unwrap());
    let policies = Api::<ValidatingAdmissionPolicy>::all(cluster.client.clone());
    drop(policies.delete(name, &delete).await.unwrap());
}
