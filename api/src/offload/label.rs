//! Label and annotation keys of offloading, finalizers, the taint, and the fixed values that go with them.
//!
//! Those of Liqo are as they are there. Values that say yes are [`TRUE`](crate::label::TRUE).

/// Label of a Node: what it is. Value: [`VIRTUAL_NODE`]. By it the webhook and the controllers know virtual nodes.
pub const TYPE: &str = "liqo.io/type";

/// Value of [`TYPE`].
pub const VIRTUAL_NODE: &str = "virtual-node";

/// Label of a virtual node: ID of the cluster that it stands for. Label of a twin: ID of its home.
pub const REMOTE_CLUSTER_ID: &str = "liqo.io/remote-cluster-id";

/// Label of a virtual node by which cluster autoscalers leave it alone. Value: [`VIRTUAL_KUBELET`].
pub const AUTOSCALER_TYPE: &str = "type";

/// Value of [`AUTOSCALER_TYPE`].
pub const VIRTUAL_KUBELET: &str = "virtual-kubelet";

/// Label of a Node: its name, where that can be the value of a label.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// Label of a Node: its operating system. Value: [`LINUX`].
pub const OS: &str = "kubernetes.io/os";

/// Value of [`OS`].
pub const LINUX: &str = "linux";

/// Label of a Node: its processor. Value: [`AMD64`].
pub const ARCH: &str = "kubernetes.io/arch";

/// Value of [`ARCH`].
pub const AMD64: &str = "amd64";

/// Label of a virtual node: its role. Value: [`AGENT`].
pub const ROLE: &str = "kubernetes.io/role";

/// Value of [`ROLE`].
pub const AGENT: &str = "agent";

/// Labels of a virtual node that keep it out of the load balancers of a cloud, now and in old versions. Value:
/// [`TRUE`](crate::label::TRUE).
pub const NO_LOAD_BALANCER: [&str; 2] = [
    "node.kubernetes.io/exclude-from-external-load-balancers",
    "alpha.service-controller.kubernetes.io/exclude-balancer",
];

/// Label of a virtual node: whether its cluster offers storage classes.
pub const STORAGE: &str = "storage.liqo.io/available";

/// Key of the taint of virtual nodes, and of the toleration that a Pod needs to be bound to one. Value:
/// [`TRUE`](crate::label::TRUE), effect: [`NO_EXECUTE`].
pub const NOT_ALLOWED: &str = "virtual-node.liqo.io/not-allowed";

/// Key of a taint of a virtual node that takes no new Pods: the leader or the consent of the host is not heard of. Value:
/// [`TRUE`](crate::label::TRUE), effect: [`NO_SCHEDULE`].
pub const NO_NEW_PODS: &str = "multicluster.freeport.dev/no-new-pods";

/// Effect of [`NO_NEW_PODS`].
pub const NO_SCHEDULE: &str = "NoSchedule";

/// Effect of [`NOT_ALLOWED`]: also Pods that were bound before have to go.
pub const NO_EXECUTE: &str = "NoExecute";

/// Label of a Namespace: its Pods are placed as its NamespaceOffloading says. The webhook is asked about these Namespaces only.
pub const SCHEDULING_ENABLED: &str = "liqo.io/scheduling-enabled";

/// Label of a Namespace by which a user asks for a NamespaceOffloading with the defaults.
pub const ENABLED: &str = "liqo.io/enabled";

/// Annotation of a NamespaceOffloading that was made for [`ENABLED`] and goes with it. Value: [`BY_NAMESPACE_CONTROLLER`].
pub const RESOURCE_CONTROLLED_BY: &str = "liqo.io/resource-controlled-by";

/// Value of [`RESOURCE_CONTROLLED_BY`].
pub const BY_NAMESPACE_CONTROLLER: &str = "This resource is created by the Namespace Controller";

/// Annotation of a twin: the NamespaceMap that it was made for.
pub const MANAGED_BY_NAMESPACE_MAP: &str = "liqo.io/managed-by-namespace-map";

/// Annotation of a twin: name of the Namespace at home.
pub const ORIGINAL_NAME: &str = "liqo.io/original-name";

/// Finalizer of a NamespaceOffloading: it goes when all twins have gone.
pub const FINALIZER: &str = "namespaceoffloading-controller.liqo.io/finalizer";

/// Label of a Pod that a host runs for a home. Value: [`SHADOW_POD`]. Its watch selects by it.
pub const MANAGED_BY: &str = "liqo.io/managed-by";

/// Value of [`MANAGED_BY`].
pub const SHADOW_POD: &str = "shadowpod";

/// Label of a Pod that a host runs: ID of its home.
pub const ORIGIN: &str = "offloading.liqo.io/origin";

/// Label of a Pod that a host runs: ID of that host.
pub const DESTINATION: &str = "offloading.liqo.io/destination";

/// Label of a Pod that a host runs: uid of the Pod at home.
pub const ORIGIN_UID: &str = "multicluster.freeport.dev/origin-uid";

/// Name of the RuntimeClass whose Pods run on virtual nodes, whatever the strategy of their Namespace is.
pub const RUNTIME_CLASS: &str = "liqo";

/// Label of a Namespace: the level of Pod Security that Kubernetes enforces in it.
pub const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// Annotation of a Pod that mirrors one a kubelet runs by itself.
pub const MIRROR_POD: &str = "kubernetes.io/config.mirror";

/// Whether a host may not put a label of this key on its virtual node: Kubernetes and the scheduler's decisions are built on it.
pub fn is_reserved(key: &str) -> bool {
    let of_kubernetes = |prefix: &str| {
        prefix == "kubernetes.io" || (prefix.starts_with("node") && prefix.ends_with(".kubernetes.io"))
    };
    matches!(key, TYPE | REMOTE_CLUSTER_ID | AUTOSCALER_TYPE)
        || key == NO_LOAD_BALANCER[1]
        || key.split_once('/').is_some_and(|(prefix, _)| of_kubernetes(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_claims_its_region_and_not_what_a_node_is() {
        for key in [
            TYPE,
            REMOTE_CLUSTER_ID,
            AUTOSCALER_TYPE,
            HOSTNAME,
            ROLE,
            NO_LOAD_BALANCER[0],
            NO_LOAD_BALANCER[1],
            "node-role.kubernetes.io/control-plane",
            "node-restriction.kubernetes.io/x",
        ] {
            assert!(is_reserved(key), "{key}");
        }
        for key in ["topology.kubernetes.io/region", "liqo.io/region", "liqo.io/provider", STORAGE, "x"] {
            assert!(!is_reserved(key), "{key}");
        }
    }
}
