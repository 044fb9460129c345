//! Bounds of what members write: whoever reads it has to have the memory for it.
//!
//! They are wide: what an API server takes as a Service or as an EndpointSlice fits, and so does what Antrea's controllers write. The
//! leader checks the rest and says what is wrong. Imports have no bounds: they hold the merge of all, and only the leader writes them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use super::schemas;
use crate::resource_export::PORTS_MAX;

/// The CRD, with a bound on each text, list and map that a member writes who does not write the status.
pub(super) fn bounded(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    bounded_but(&["metadata", "status"], crd)
}

/// The CRD, with a bound on each text, list and map.
pub(super) fn bounded_with_status(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    bounded_but(&["metadata"], crd)
}

/// The API server has bounds on metadata.
fn bounded_but(others: &[&str], mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for schema in schemas(&mut crd) {
        let fields = schema.properties.iter_mut().flatten();
        fields
            .filter(|(field, _)| !others.contains(&field.as_str()))
            .for_each(|(field, schema)| bound(field, schema));
    }
    crd
}

fn bound(path: &str, schema: &mut JSONSchemaProps) {
    match schema.type_.as_deref() {
        // Of an enumeration the words are the bound.
        Some("string") if schema.enum_.is_some() => {}
        Some("string") => schema.max_length = schema.max_length.or(Some(longest(path))),
        Some("array") => schema.max_items = schema.max_items.or(Some(most(path))),
        Some("object") if schema.additional_properties.is_some() => {
            schema.max_properties = schema.max_properties.or(Some(most(path)));
        }
        _ => {}
    }
    for (field, schema) in schema.properties.iter_mut().flatten() {
        bound(&format!("{path}.{field}"), schema);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        bound(path, items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        bound(path, values);
    }
}

/// Characters of a text.
fn longest(path: &str) -> i64 {
    match path {
        "spec.service.exportedAnnotations" => 64 * 1024,
        // Names of Namespaces, which hosts repeat in the status, and values of labels.
        "spec.desiredMapping" | "spec.nodeLabels" | "spec.incoming.nodeLabels" => 63,
        // As in Kubernetes' own conditions: Pods quote programs.
        _ if path.starts_with("status.") && path.ends_with(".message") => 32 * 1024,
        _ => 1024,
    }
}

/// Items of a list or of a map.
fn most(path: &str) -> i64 {
    match path {
        "spec.endpointSlice.endpoints" | "spec.endpoints.subsets" => 1000,
        // All endpoints of a Service in one record.
        "spec.endpoints.subsets.addresses" | "spec.endpoints.subsets.notReadyAddresses" => 20_000,
        "spec.service.exportedLabels" | "spec.service.exportedAnnotations" => 4096,
        // With one more of ours they have to be few enough for a Pod.
        "spec.clusterSelector.nodeSelectorTerms" => 50,
        "status.remoteNamespacesConditions" => 1000,
        _ if path.ends_with(".ports") => PORTS_MAX.into(),
        _ => 100,
    }
}

#[cfg(test)]
mod tests {
    use kube::CustomResourceExt;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        announce::MemberClusterAnnounce, crd::offload, report::ClusterReport, resource_export::ResourceExport,
    };

    /// Places of lists, maps and texts without a bound.
    fn unbounded(path: &str, schema: &Value, found: &mut Vec<String>) {
        let bound = match schema["type"].as_str() {
            Some("string") if schema.get("enum").is_some() => "enum",
            Some("string") => "maxLength",
            Some("array") => "maxItems",
            Some("object") if schema.get("additionalProperties").is_some() => "maxProperties",
            _ => "type",
        };
        if bound != "type" && schema.get(bound).is_none() {
            found.push(path.to_owned());
        }
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(&format!("{path}.{field}"), schema, found);
        }
        for inner in ["items", "additionalProperties"] {
            if let Some(schema) = schema.get(inner) {
                unbounded(&format!("{path}[]"), schema, found);
            }
        }
    }

    fn unbounded_but(others: &[&str], crd: &CustomResourceDefinition) -> Vec<String> {
        let crd = json!(crd);
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        let mut found = Vec::new();
        for (field, schema) in schema.as_object().unwrap() {
            if !others.contains(&field.as_str()) {
                unbounded(field, schema, &mut found);
            }
        }
        found
    }

    #[test]
    fn a4_all_that_a_member_writes_has_a_bound() {
        for crd in [ResourceExport::crd(), MemberClusterAnnounce::crd()] {
            let found = unbounded_but(&["metadata", "status"], &bounded(crd));
            assert!(found.is_empty(), "{found:?}");
        }
        let reports = bounded_with_status(ClusterReport::crd());
        for crd in offload::leader().into_iter().chain(offload::member()).chain([reports]) {
            let found = unbounded_but(&["metadata"], &crd);
            assert!(found.is_empty(), "{found:?}");
        }
        let crd = json!(bounded(ResourceExport::crd()));
        let spec =
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        assert_eq!(spec["endpointSlice"]["properties"]["endpoints"]["maxItems"], 1000);
        assert_eq!(spec["service"]["properties"]["serviceSpec"]["properties"]["ports"]["maxItems"], 250);
    }
}
