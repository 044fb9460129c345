//! The CustomResourceDefinitions of API binding: what they demand and what they fill in is kube-bind's, since its programs rely on it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::schemas;
use crate::bind::{
    binding::{APIServiceBinding, APIServiceBindingBundle, ClusterBinding},
    bound_schema::BoundSchema,
    export::{APIServiceExport, APIServiceExportRequest, APIServiceNamespace},
    offer::{APIServiceExportTemplate, BindableResourcesRequest, Cluster, Collection},
};

/// CRDs that the cluster of a provider needs.
pub fn provider() -> Vec<CustomResourceDefinition> {
    let mut requests = [APIServiceExportRequest::crd(), BindableResourcesRequest::crd()];
    requests.iter_mut().flat_map(schemas).for_each(|schema| with_default(schema, "status", json!({})));
    let mut bound = BoundSchema::crd();
    for schema in schemas(&mut bound) {
        let versions = schema.properties.as_mut().and_then(|all| all.get_mut("spec")?.properties.as_mut());
        if let Some(JSONSchemaPropsOrArray::Schema(version)) =
            versions.and_then(|all| all.get_mut("versions")?.items.as_mut())
        {
            with_default(version, "served", json!(true));
        }
    }
    let demanding = [
        APIServiceExport::crd(),
        APIServiceExportTemplate::crd(),
        ClusterBinding::crd(),
        Cluster::crd(),
        Collection::crd(),
    ];
    let demanding = requests.into_iter().chain(demanding).map(|crd| contract(crd, true));
    demanding.chain([APIServiceNamespace::crd(), bound].map(|crd| contract(crd, false))).collect()
}

/// CRDs that the cluster of a consumer needs.
pub fn consumer() -> Vec<CustomResourceDefinition> {
    [APIServiceBinding::crd(), APIServiceBindingBundle::crd()].map(|crd| contract(crd, false)).into()
}

fn with_default(schema: &mut JSONSchemaProps, field: &str, value: Value) {
    if let Some(field) = schema.properties.as_mut().and_then(|all| all.get_mut(field)) {
        field.default = Some(JSON(value));
    }
}

/// Without what our Rust types bring along. `kubectl explain` begins with what the kind is for.
fn contract(mut crd: CustomResourceDefinition, demands_spec: bool) -> CustomResourceDefinition {
    for schema in schemas(&mut crd) {
        plain("", schema);
        let about = schema.properties.as_ref().and_then(|all| all.get("spec")?.description.clone());
        schema.description = about.or(schema.description.take());
        schema.required = demands_spec.then(|| vec!["spec".to_owned()]);
    }
    crd
}

fn plain(field: &str, schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.default.take_if(|default| !is_contract(field, &default.0));
    schema.properties.iter_mut().flatten().for_each(|(field, inner)| plain(field, inner));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        plain("", items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        plain("", values);
    }
}

fn is_contract(field: &str, default: &Value) -> bool {
    match field {
        "group" => *default == "",
        "schemaUpdatePolicy" => *default == "Never",
        "phase" => *default == "Pending",
        "served" => *default == true,
        "status" => *default == json!({}),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn schema(kind: &str) -> Value {
        let mut all = provider().into_iter().chain(consumer());
        let crd = json!(all.find(|crd| crd.spec.names.kind == kind).unwrap());
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    /// What is filled in, by the paths of fields.
    fn defaults(schema: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
        if let Some(default) = schema.get("default") {
            found.insert(path.to_owned(), default.clone());
        }
        for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
            defaults(inner, &format!("{path}.{field}"), found);
        }
        if schema["items"].is_object() {
            defaults(&schema["items"], &format!("{path}[]"), found);
        }
    }

    #[test]
    fn each_kind_is_called_as_kube_bind_calls_it() {
        let all: Vec<_> = provider().into_iter().chain(consumer()).collect();
        let names: Vec<_> = all
            .iter()
            .map(|crd| {
                let short = crd.spec.names.short_names.clone().unwrap_or_default().join(",");
                let categories = crd.spec.names.categories.clone().unwrap_or_default().join(",");
                format!("{} {} {categories} {short}", crd.spec.names.plural, crd.spec.scope)
                    .trim_end()
                    .to_owned()
            })
            .collect();
        let want = [
            "apiserviceexportrequests Namespaced kube-bindings",
            "bindableresourcesrequests Namespaced kube-bindings",
            "apiserviceexports Namespaced kube-bindings",
            "apiserviceexporttemplates Cluster kube-bind",
            "clusterbindings Namespaced kube-bindings",
            "clusters Cluster kube-bind",
            "collections Cluster kube-bind",
            "apiservicenamespaces Namespaced kube-bindings",
            "boundschemas Namespaced kube-bindings bs",
            "apiservicebindings Cluster kube-bindings sb",
            "apiservicebindingbundles Cluster kube-bindings sbb",
        ];
        assert_eq!(names, want);
        assert!(
            all.iter().all(|crd| crd.spec.group == "kube-bind.io" && crd.spec.versions[0].name == "v1alpha2")
        );
        assert!(
            all.iter()
                .all(|crd| crd.spec.versions[0].subresources.as_ref().is_some_and(|s| s.status.is_some()))
        );
    }

    #[test]
    fn what_is_filled_in_is_what_kube_bind_fills_in() {
        let of = |kind: &str| {
            let mut found = BTreeMap::new();
            defaults(&schema(kind), "", &mut found);
            found.into_iter().map(|(path, value)| format!("{path}={value}")).collect::<Vec<_>>()
        };
        let group = ".spec.permissionClaims[].group=\"\"";
        let reference = ".spec.permissionClaims[].selector.references[].group=\"\"";
        let (resource, policy) = (".spec.resources[].group=\"\"", ".spec.schemaUpdatePolicy=\"Never\"");
        assert_eq!(
            of("APIServiceExportRequest"),
            [group, reference, resource, policy, ".status={}", ".status.phase=\"Pending\""]
        );
        assert_eq!(of("APIServiceExport"), [group, reference, resource]);
        assert_eq!(of("APIServiceExportTemplate"), [group, reference, resource, policy]);
        assert_eq!(of("BindableResourcesRequest"), [".status={}", ".status.phase=\"Pending\""]);
        assert_eq!(of("BoundSchema"), [".spec.versions[].served=true"]);
        for none in ["APIServiceNamespace", "ClusterBinding", "Cluster", "Collection"] {
            assert_eq!(of(none), Vec::<String>::new(), "{none}");
        }
    }

    #[test]
    fn what_is_demanded_is_what_kube_bind_demands() {
        let required = |kind: &str, path: &str| {
            let mut fields = Vec::new();
            if let Some(all) = schema(kind).pointer(path).and_then(|at| at["required"].as_array().cloned()) {
                fields = all.iter().map(|field| field.as_str().unwrap().to_owned()).collect();
            }
            fields.sort();
            fields.join(" ")
        };
        let spec = "/properties/spec";
        for (kind, path, want) in [
            ("APIServiceExport", "", "spec"),
            ("APIServiceExport", spec, "informerScope isolation resources"),
            ("APIServiceExportRequest", spec, "resources"),
            ("APIServiceExportTemplate", spec, "resources scope"),
            ("APIServiceBinding", "", ""),
            ("APIServiceBinding", spec, "kubeconfigSecretRef"),
            ("APIServiceBinding", "/properties/spec/properties/kubeconfigSecretRef", "key name namespace"),
            ("APIServiceNamespace", "", ""),
            ("ClusterBinding", spec, "kubeconfigSecretRef providerPrettyName"),
            ("ClusterBinding", "/properties/status/properties/consumerSecretRef", "name namespace"),
            ("BindableResourcesRequest", spec, "author clusterIdentity"),
            ("BindableResourcesRequest", "/properties/spec/properties/clusterIdentity", ""),
            ("BoundSchema", "", ""),
            ("BoundSchema", spec, "group informerScope names scope versions"),
            ("BoundSchema", "/properties/spec/properties/versions/items", "name schema served storage"),
            ("BoundSchema", "/properties/status/properties/acceptedNames", "kind plural"),
            ("Collection", spec, "templates"),
            ("Cluster", "", "spec"),
            (
                "APIServiceExport",
                "/properties/status/properties/conditions/items",
                "lastTransitionTime status type",
            ),
            (
                "BindableResourcesRequest",
                "/properties/status/properties/conditions/items",
                "lastTransitionTime message reason status type",
            ),
        ] {
            assert_eq!(required(kind, path), want, "{kind} {path}");
        }
    }

    #[test]
    fn what_must_not_change_is_immutable() {
        for (kind, fields) in [
            (
                "APIServiceExport",
                &["resources", "permissionClaims", "informerScope", "isolation", "clusterScopedIsolation"][..],
            ),
            (
                "APIServiceExportRequest",
                &["resources", "permissionClaims", "parameters", "schemaUpdatePolicy", "namespaces"],
            ),
            ("APIServiceBinding", &["kubeconfigSecretRef"]),
            ("ClusterBinding", &["kubeconfigSecretRef"]),
        ] {
            for field in fields {
                let rules =
                    schema(kind)["properties"]["spec"]["properties"][*field]["x-kubernetes-validations"]
                        .clone();
                assert_eq!(rules[0]["rule"], "self == oldSelf", "{kind} {field}");
            }
        }
        let one = schema("ClusterBinding")["x-kubernetes-validations"][0]["rule"].clone();
        assert_eq!(one, "self.metadata.name == \"cluster\"");
        let carried = schema("BoundSchema")["properties"]["spec"]["properties"].clone();
        let conversion = &carried["conversion"];
        assert_eq!(conversion["properties"]["strategy"]["enum"], json!(["None", "Webhook"]));
        assert!(
            conversion["x-kubernetes-validations"][0]["rule"].as_str().unwrap().contains("has(self.webhook)")
        );
        let client = conversion["properties"]["webhook"]["properties"]["clientConfig"]["properties"].clone();
        assert_eq!(client.as_object().unwrap().keys().collect::<Vec<_>>(), ["caBundle", "url"]);
        let any = carried["versions"].clone();
        let carried = &any["items"]["properties"]["schema"];
        assert_eq!(
            (&any["x-kubernetes-list-type"], &any["x-kubernetes-list-map-keys"]),
            (&json!("map"), &json!(["name"]))
        );
        assert_eq!(carried["x-kubernetes-preserve-unknown-fields"], true);
        assert_eq!(carried["x-kubernetes-map-type"], "atomic");
    }
}
