//! Exported labels and annotations that the Service of an import does not get: pure.
//!
//! The ServiceImport gets all of them. On the Service some would do harm: a GitOps tool takes an object with its marks for its
//! own and prunes it, and kube-proxy ignores a Service with `service.kubernetes.io/service-proxy-name`.

use api::{label, mcs::ServiceExportSpec};

/// Beginnings of keys by which tools find what they own: Argo CD, Flux, Helm, kubectl, cli-utils, kapp and Fleet.
const OWNERS: [&str; 8] = [
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "meta.helm.sh/",
    "kubectl.kubernetes.io/",
    "config.k8s.io/",
    "kapp.k14s.io/",
    "objectset.rio.cattle.io/",
];
/// Beginnings of keys by which Kubernetes, Antrea and Freeport decide about the traffic of a Service.
const TRAFFIC: [&str; 5] = [
    "service.kubernetes.io/",
    "endpointslice.kubernetes.io/",
    "multicluster.kubernetes.io/",
    "multicluster.antrea.io/",
    "multicluster.freeport.dev/",
];
/// Argo CD finds what it owns by this label, unless it is told to use an annotation.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Reports whether the Service of an import gets a label or an annotation with this key.
pub fn is_for_services(key: &str) -> bool {
    let begins = |these: &[&str]| these.iter().any(|beginning| key.starts_with(beginning));
    !begins(&OWNERS) && !begins(&TRAFFIC) && ![label::MANAGED_BY, INSTANCE].contains(&key)
}

/// A sentence on what of an export the Services of its imports do not get, if there is something.
pub fn said(spec: &ServiceExportSpec) -> Option<String> {
    let keys = spec.exported_labels.keys().chain(spec.exported_annotations.keys());
    let mut keys: Vec<_> = keys.filter(|key| !is_for_services(key)).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    let said = || {
        format!(
            "The Services of its imports do not get {}, because GitOps tools or proxies would act on them",
            keys.join(", ")
        )
    };
    (!keys.is_empty()).then(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_and_proxies_act_on_is_not_for_services() {
        for key in [
            "argocd.argoproj.io/tracking-id",
            "kubectl.kubernetes.io/last-applied-configuration",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/instance",
            "service.kubernetes.io/service-proxy-name",
            label::HUB,
            label::IMPORTED_SERVICE,
            label::MCS_SERVICE_NAME,
        ] {
            assert!(!is_for_services(key), "{key}");
        }
        for key in ["team", "app.kubernetes.io/name", "example.com/argocd.argoproj.io", "helm.sh/chart"] {
            assert!(is_for_services(key), "{key}");
        }
    }

    #[test]
    fn all_keys_are_named_once() {
        let texts = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), String::new())).collect();
        let spec = |labels: &[&str], annotations: &[&str]| ServiceExportSpec {
            exported_labels: texts(labels),
            exported_annotations: texts(annotations),
        };
        assert_eq!(said(&spec(&["team"], &["note"])), None);
        let one = said(&spec(&["team", INSTANCE], &[])).unwrap();
        assert!(one.contains("do not get app.kubernetes.io/instance, because"), "{one}");
        let marks = ["argocd.argoproj.io/a", "argocd.argoproj.io/b", "argocd.argoproj.io/c"];
        let many = said(&spec(&[INSTANCE, marks[0]], &marks)).unwrap();
        assert!(many.contains(&format!("{INSTANCE}, {}, because", marks.join(", "))), "{many}");
    }
}
