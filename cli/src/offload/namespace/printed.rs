//! What `--dry-run` prints, and the NamespaceOffloading as it is written.

use api::{
    label::TRUE,
    offload::{
        label::SCHEDULING_ENABLED,
        namespace::{NAME, NamespaceOffloading, PodOffloadingStrategy},
    },
};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use crate::{
    Error,
    eraser::{Say, called},
    objects::Object,
};

/// The objects, for whoever applies them.
pub(super) fn print(namespaces: &[String], spec: &Value, as_json: bool, say: Say<'_>) -> Result<(), Error> {
    let objects: Vec<_> = namespaces.iter().flat_map(|namespace| printed(namespace, spec)).collect();
    if as_json {
        let items: Vec<_> = objects.iter().map(|object| &object.body).collect();
        say(&format!("{:#}", json!({"apiVersion": "v1", "kind": "List", "items": items})));
        return Ok(());
    }
    for object in objects {
        let yaml = object.yaml().map_err(|source| Error::Yaml { object: object.to_string(), source })?;
        say(&format!("---\n{}", yaml.trim_end()));
    }
    Ok(())
}

/// The objects of one Namespace: the label first, so that no Pod that is created between the two slips through.
pub(super) fn printed(namespace: &str, spec: &Value) -> Vec<Object> {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    let mut objects = Vec::new();
    if spec["podOffloadingStrategy"] != json!(PodOffloadingStrategy::Local) {
        let labelled = Object {
            namespace: None,
            body: json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {SCHEDULING_ENABLED: TRUE}},
            }),
            ..called::<Namespace>("", namespace)
        };
        objects.push(labelled);
    }
    objects.push(offloading(namespace, &spec));
    objects
}

/// With what the flags say.
pub(in crate::offload) fn offloading(namespace: &str, spec: &Value) -> Object {
    let object = called::<NamespaceOffloading>(namespace, NAME);
    let body = json!({
        "apiVersion": object.resource.api_version, "kind": object.resource.kind,
        "metadata": {"name": NAME, "namespace": namespace}, "spec": spec,
    });
    Object { body, ..object }
}
