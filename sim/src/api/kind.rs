//! Kinds: those of Kubernetes that Freeport uses, and those of CRDs.

use serde_json::Value;

/// A kind that is served.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(super) versions: Vec<String>,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// The status is a subresource.
    pub(super) status: bool,
    /// Objects have a generation, which counts changes of the specification.
    pub(super) generation: bool,
    /// A CRD defines it.
    pub(super) custom: bool,
    /// OpenAPI schema of the CRD's stored version.
    pub(super) schema: Option<Value>,
    /// Version of the CRD.
    pub(super) revision: u64,
}

impl Kind {
    /// `apiVersion` of objects in this version.
    pub(super) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// `PLURAL.GROUP`, as in messages.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Reports whether it is this kind of the core group.
    pub(crate) fn is_core(&self, plural: &str) -> bool {
        self.group.is_empty() && self.plural == plural
    }

    /// Reports whether a subresource is served; the empty one is the object itself.
    pub(super) fn has_subresource(&self, subresource: &str) -> bool {
        match subresource {
            "" => true,
            "status" => self.status,
            "binding" => self.is_core("pods"),
            "token" => self.is_core("serviceaccounts"),
            _ => false,
        }
    }

    /// The kind that a CRD defines; none if the CRD is incomplete.
    pub(super) fn of_crd(crd: &Value) -> Option<Self> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let versions = spec["versions"].as_array()?;
        let served = versions.iter().filter(|version| version["served"] == true);
        let stored = versions.iter().find(|version| version["storage"] == true)?;
        Some(Self {
            group: text(&spec["group"])?,
            versions: served.filter_map(|version| text(&version["name"])).collect(),
            plural: text(&spec["names"]["plural"])?,
            kind: text(&spec["names"]["kind"])?,
            namespaced: spec["scope"] == "Namespaced",
            status: stored.pointer("/subresources/status").is_some(),
            generation: true,
            custom: true,
            schema: stored.pointer("/schema/openAPIV3Schema").cloned(),
            revision: 0,
        })
    }
}

/// Group, version, plural, kind, is it namespaced, has it a status, has it a generation.
const BUILT_IN: &[(&str, &str, &str, &str, bool, bool, bool)] = &[
    ("", "v1", "namespaces", "Namespace", false, true, false),
    ("", "v1", "services", "Service", true, true, false),
    ("", "v1", "endpoints", "Endpoints", true, false, false),
    ("", "v1", "pods", "Pod", true, true, true),
    ("", "v1", "nodes", "Node", false, true, false),
    ("", "v1", "secrets", "Secret", true, false, false),
    ("", "v1", "configmaps", "ConfigMap", true, false, false),
    ("", "v1", "serviceaccounts", "ServiceAccount", true, false, false),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, true, false),
    ("", "v1", "limitranges", "LimitRange", true, false, false),
    ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false, false, false),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, false, true),
    ("", "v1", "resourcequotas", "ResourceQuota", true, true, false),
    ("events.k8s.io", "v1", "events", "Event", true, false, false),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true, false, true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false, false),
    ("apps", "v1", "deployments", "Deployment", true, true, true),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", true, false, false),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true, false, false),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, false, false),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false, false, false),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
        true,
        true,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        false,
        true,
        true,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        false,
        false,
        true,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        false,
        false,
        true,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        false,
        false,
        true,
    ),
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", false, true, true),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        false,
        true,
        true,
    ),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true, false, true),
    ("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", false, true, false),
    ("networking.k8s.io", "v1", "ipaddresses", "IPAddress", false, false, false),
];

/// Kinds of a new cluster.
pub(super) fn built_in() -> impl Iterator<Item = Kind> {
    BUILT_IN.iter().map(|&(group, version, plural, kind, namespaced, status, generation)| Kind {
        group: group.into(),
        versions: vec![version.into()],
        plural: plural.into(),
        kind: kind.into(),
        namespaced,
        status,
        generation,
        custom: false,
        schema: None,
        revision: 0,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_defines_its_served_versions_and_its_subresources() {
        let version = |name: &str, served: bool, storage: bool| {
            let schema = json!({"openAPIV3Schema": {"type": "object"}});
            json!({"name": name, "served": served, "storage": storage, "schema": schema, "subresources": {"status": {}}})
        };
        let versions = [version("v1alpha1", false, false), version("v1", true, true)];
        let names = json!({"plural": "widgets", "kind": "Widget"});
        let spec =
            json!({"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions});
        let kind = Kind::of_crd(&json!({"spec": spec})).unwrap();
        assert_eq!(kind.versions, ["v1"]);
        assert!(kind.namespaced && kind.custom && kind.has_subresource("status"));
        assert!(!kind.has_subresource("scale"));
        assert_eq!(kind.qualified(), "widgets.example.com");
    }

    #[test]
    fn an_incomplete_crd_defines_nothing() {
        assert!(Kind::of_crd(&json!({"spec": {"group": "example.com", "versions": []}})).is_none());
    }
}
