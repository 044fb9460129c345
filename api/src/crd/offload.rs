//! The CustomResourceDefinitions of offloading.
//!
//! Defaults of what users write stay: they are Liqo's or ours, and users see what holds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::CustomResourceExt;
use serde_json::json;

use super::{bounds::bounded_with_status, described, plain, schemas};
use crate::offload::{
    map::NamespaceMap, namespace::NamespaceOffloading, offer::OffloadOffer, peer::OffloadPeer,
    shadow_pod::ShadowPod,
};

/// CRDs a leader's cluster needs: those of the records.
pub fn leader() -> Vec<CustomResourceDefinition> {
    [NamespaceMap::crd(), OffloadOffer::crd(), ShadowPod::crd()].map(bounded_with_status).map(plain).into()
}

/// CRDs a member's cluster needs: those of what users write.
pub fn member() -> Vec<CustomResourceDefinition> {
    [of_both_generations(with_defaults(NamespaceOffloading::crd())), with_defaults(OffloadPeer::crd())].into()
}

fn with_defaults(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    described(bounded_with_status(crd), |schema| schema.nullable = None)
}

/// Serves `v1alpha1` as well, with the same schema. Without a spec it has the defaults, which are written into it.
fn of_both_generations(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let specs = schemas(&mut crd).filter_map(|schema| schema.properties.as_mut()?.get_mut("spec"));
    specs.for_each(|spec| spec.default = Some(JSON(json!({}))));
    if let Some(mut alpha) = crd.spec.versions.first().cloned() {
        alpha.name = "v1alpha1".into();
        alpha.storage = false;
        crd.spec.versions.push(alpha);
    }
    crd
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn crd(kind: &str) -> Value {
        let mut all = leader().into_iter().chain(member());
        json!(all.find(|crd| crd.spec.names.kind == kind).unwrap())
    }

    fn spec(kind: &str) -> Value {
        crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
    }

    #[test]
    fn manifests_of_both_generations_of_liqo_apply() {
        let crd = crd("NamespaceOffloading");
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let of = |version: &Value| {
            (version["name"].clone(), version["served"].clone(), version["storage"].clone())
        };
        assert_eq!(of(&versions[0]), (json!("v1beta1"), json!(true), json!(true)));
        assert_eq!(of(&versions[1]), (json!("v1alpha1"), json!(true), json!(false)));
        assert_eq!(versions[0]["schema"], versions[1]["schema"]);
        let names = json!({
            "kind": "NamespaceOffloading", "plural": "namespaceoffloadings", "singular": "namespaceoffloading",
            "shortNames": ["nso", "nsof", "nsoff", "nsoffloading"], "categories": ["liqo"],
        });
        assert_eq!(crd["spec"]["names"], names);
        let columns = versions[0]["additionalPrinterColumns"].as_array().unwrap();
        let columns: Vec<_> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        // Liqo's in their order, and one of ours.
        let want = [
            "NamespaceMappingStrategy",
            "PodOffloadingStrategy",
            "OffloadingPhase",
            "PlacementEnforced",
            "RemoteNamespaceName",
            "Age",
        ];
        assert_eq!(columns, want);
    }

    #[test]
    fn defaults_are_written_and_unknown_strategies_refused() {
        let offloading = spec("NamespaceOffloading");
        let fields = &offloading["properties"];
        assert_eq!(offloading["default"], json!({}));
        assert_eq!(fields["namespaceMappingStrategy"]["default"], "DefaultName");
        assert_eq!(fields["podOffloadingStrategy"]["default"], "LocalAndRemote");
        assert_eq!(fields["podOffloadingStrategy"]["enum"], json!(["Local", "Remote", "LocalAndRemote"]));
        assert_eq!(fields["clusterSelector"]["properties"]["nodeSelectorTerms"]["maxItems"], 50);
        assert_eq!(fields["clusterSelector"]["default"], Value::Null);
        let incoming = &spec("OffloadPeer")["properties"]["incoming"];
        assert_eq!(incoming["properties"]["maxNamespaces"]["default"], 100);
        assert_eq!(incoming["properties"]["podSecurity"]["default"], "baseline");
        assert_eq!(incoming["default"], Value::Null, "absent is no");
        assert_eq!(crd("OffloadPeer")["spec"]["scope"], "Cluster");
    }

    #[test]
    fn a_record_without_its_payload_is_refused() {
        assert_eq!(spec("NamespaceMap")["required"], json!(["desiredMapping", "destination", "origin"]));
        assert_eq!(spec("NamespaceMap")["properties"]["desiredMapping"]["maxProperties"], 2000);
        assert_eq!(spec("OffloadOffer")["required"], json!(["home", "host", "publicKey", "resources"]));
        let sealed = ["destination", "namespace", "origin", "pod", "sealed", "uid"];
        assert_eq!(spec("ShadowPod")["required"], json!(sealed));
        assert_eq!(spec("ShadowPod")["properties"]["sealed"]["maxLength"], 64 << 10);
        let amounts = &spec("OffloadOffer")["properties"]["resources"]["additionalProperties"];
        assert_eq!(amounts["x-kubernetes-int-or-string"], true);
        assert_eq!(amounts["maxLength"], 64);
    }
}
