//! What an installed CRD does not know of one of ours: pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, JSONSchemaProps, JSONSchemaPropsOrArray,
    JSONSchemaPropsOrBool,
};

/// What the API server throws away of objects of ours, since the schema it has lacks the field (as `spec.ports[].appProtocol`), and
/// versions it does not serve (as `version v1beta1`). Of a field that is missing, what would be in it is not listed.
pub fn lacks(
    installed: &CustomResourceDefinitionSpec,
    ours: &CustomResourceDefinitionSpec,
) -> BTreeSet<String> {
    let served = |crd: &CustomResourceDefinitionSpec| -> BTreeMap<String, CustomResourceDefinitionVersion> {
        let served = crd.versions.iter().filter(|version| version.served);
        served.map(|version| (version.name.clone(), version.clone())).collect()
    };
    let (installed, ours) = (served(installed), served(ours));
    let mut lacks = BTreeSet::new();
    for (name, version) in &ours {
        match installed.get(name) {
            None => drop(lacks.insert(format!("version {name}"))),
            Some(installed) => {
                if let (Some(there), Some(ours)) = (schema(installed), schema(version)) {
                    compare("", there, ours, &mut lacks);
                }
            }
        }
    }
    lacks
}

fn schema(version: &CustomResourceDefinitionVersion) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn compare(path: &str, there: &JSONSchemaProps, ours: &JSONSchemaProps, lacks: &mut BTreeSet<String>) {
    if there.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    for (field, ours) in ours.properties.iter().flatten() {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        match there.properties.as_ref().and_then(|properties| properties.get(field)) {
            Some(there) => compare(&path, there, ours, lacks),
            None => drop(lacks.insert(path)),
        }
    }
    if let (Some(JSONSchemaPropsOrArray::Schema(there)), Some(JSONSchemaPropsOrArray::Schema(ours))) =
        (&there.items, &ours.items)
    {
        compare(&format!("{path}[]"), there, ours, lacks);
    }
    if let (Some(JSONSchemaPropsOrBool::Schema(there)), Some(JSONSchemaPropsOrBool::Schema(ours))) =
        (&there.additional_properties, &ours.additional_properties)
    {
        compare(&format!("{path}.*"), there, ours, lacks);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::crd::member;

    fn imports() -> CustomResourceDefinitionSpec {
        member().into_iter().find(|crd| crd.spec.names.kind == "ServiceImport").unwrap().spec
    }

    fn changed(change: impl Fn(&mut Value)) -> Vec<String> {
        let mut crd = json!(imports());
        change(&mut crd["versions"]);
        lacks(&serde_json::from_value(crd).unwrap(), &imports()).into_iter().collect()
    }

    #[test]
    fn r78_what_an_older_schema_loses_is_named() {
        let lacks = changed(|versions| {
            versions.as_array_mut().unwrap().truncate(1);
            let schema = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"];
            let spec = schema["spec"]["properties"].as_object_mut().unwrap();
            spec.remove("ipFamilies");
            spec["ports"]["items"]["properties"].as_object_mut().unwrap().remove("appProtocol");
            schema["status"]["properties"].as_object_mut().unwrap().remove("conditions");
        });
        assert_eq!(
            lacks,
            ["spec.ipFamilies", "spec.ports[].appProtocol", "status.conditions", "version v1beta1"]
        );
    }

    #[test]
    fn a_newer_schema_and_one_that_keeps_everything_lack_nothing() {
        assert!(changed(|_| ()).is_empty());
        let newer = changed(|versions| {
            versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["later"] =
                json!({"type": "string"});
        });
        assert!(newer.is_empty(), "{newer:?}");
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let loose = changed(|versions| {
            for version in versions.as_array_mut().unwrap() {
                version["schema"]["openAPIV3Schema"] = anything.clone();
            }
        });
        assert!(loose.is_empty(), "{loose:?}");
    }
}
