//! Kinds by the names that scripts have for them.

use kube::api::ApiResource;
use serde_json::Value;

/// A kind that scripts ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Plural, with the version behind a dot if scripts use several.
    name: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    is_namespaced: bool,
}

const fn namespaced(name: &'static str, api_version: &'static str, kind: &'static str) -> Kind {
    Kind { name, api_version, kind, is_namespaced: true }
}

const fn cluster_wide(name: &'static str, api_version: &'static str, kind: &'static str) -> Kind {
    Kind { name, api_version, kind, is_namespaced: false }
}

const KINDS: &[Kind] = &[
    namespaced("configmaps", "v1", "ConfigMap"),
    namespaced("pods", "v1", "Pod"),
    namespaced("secrets", "v1", "Secret"),
    namespaced("services", "v1", "Service"),
    cluster_wide("namespaces", "v1", "Namespace"),
    cluster_wide("nodes", "v1", "Node"),
    namespaced("endpointslices", "discovery.k8s.io/v1", "EndpointSlice"),
    namespaced("events", "events.k8s.io/v1", "Event"),
    namespaced("leases", "coordination.k8s.io/v1", "Lease"),
    namespaced("serviceexports", "multicluster.x-k8s.io/v1alpha1", "ServiceExport"),
    namespaced("serviceexports.v1beta1", "multicluster.x-k8s.io/v1beta1", "ServiceExport"),
    namespaced("serviceimports", "multicluster.x-k8s.io/v1alpha1", "ServiceImport"),
    namespaced("serviceimports.v1beta1", "multicluster.x-k8s.io/v1beta1", "ServiceImport"),
    namespaced("clustersets", "multicluster.crd.antrea.io/v1alpha2", "ClusterSet"),
    namespaced("memberclusterannounces", "multicluster.crd.antrea.io/v1alpha1", "MemberClusterAnnounce"),
    namespaced("resourceexports", "multicluster.crd.antrea.io/v1alpha1", "ResourceExport"),
    namespaced("resourceimports", "multicluster.crd.antrea.io/v1alpha1", "ResourceImport"),
    namespaced("namespacemaps", "offloading.liqo.io/v1beta1", "NamespaceMap"),
    namespaced("namespaceoffloadings", "offloading.liqo.io/v1beta1", "NamespaceOffloading"),
    namespaced("shadowpods", "multicluster.freeport.dev/v1alpha1", "ShadowPod"),
];

impl Kind {
    pub(crate) fn find(name: &str) -> Option<Self> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }

    /// Path of its collection, in Namespace `$NS` if it is namespaced.
    pub(crate) fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let namespace = if self.is_namespaced { "/namespaces/$NS" } else { "" };
        let plural = self.name.split('.').next().unwrap_or_default();
        format!("/{root}/{}{namespace}/{plural}", self.api_version)
    }
}

/// The kind of a CRD in each version that is served.
pub(crate) fn of_crd(crd: &Value) -> Vec<ApiResource> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let versions =
        crd["spec"]["versions"].as_array().unwrap().iter().filter(|version| version["served"] == true);
    let resource = |version: &Value| {
        let (group, version) = (text(&crd["spec"]["group"]), text(&version["name"]));
        ApiResource {
            api_version: format!("{group}/{version}"),
            group,
            version,
            kind: text(&crd["spec"]["names"]["kind"]),
            plural: text(&crd["spec"]["names"]["plural"]),
        }
    };
    versions.map(resource).collect()
}
