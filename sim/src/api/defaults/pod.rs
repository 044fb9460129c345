//! Pods: defaults, and which of their fields may change.

use serde_json::{Value, json};

use super::default;
use crate::api::refusal::Cause;

/// Reason of the refusal of other changes, as far as it does not name them.
const IMMUTABLE: &str = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,\
`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Sets the defaults of a Pod, which was `old`.
pub(super) fn set(new: &mut Value, old: Option<&Value>) -> Result<(), Cause> {
    let spec = &mut new["spec"];
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        return Err(Cause::new("FieldValueRequired", "spec.containers", "Required value"));
    }
    for key in ["containers", "initContainers"] {
        items(spec, key).for_each(container);
    }
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "enableServiceLinks", json!(true));
    default(spec, "securityContext", json!({}));
    if let Some(account) = spec["serviceAccountName"].as_str().map(str::to_owned) {
        spec["serviceAccount"] = json!(account);
    }
    match old {
        None => new["status"] = first_status(&new["spec"]),
        Some(old) if fixed(&new["spec"]) != fixed(&old["spec"]) => {
            return Err(Cause::new("FieldValueForbidden", "spec", IMMUTABLE));
        }
        Some(_) => {}
    }
    Ok(())
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let is_latest =
        image.rsplit('/').next().is_none_or(|name| !name.contains(':') || name.ends_with(":latest"));
    default(container, "imagePullPolicy", json!(if is_latest { "Always" } else { "IfNotPresent" }));
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", json!("File"));
    for port in items(container, "ports") {
        default(port, "protocol", json!("TCP"));
    }
    for (resource, limit) in container["resources"]["limits"].as_object().cloned().into_iter().flatten() {
        default(&mut container["resources"]["requests"], &resource, limit);
    }
}

fn first_status(spec: &Value) -> Value {
    let mut status = json!({"phase": "Pending", "qosClass": qos_class(spec)});
    if spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": crate::api::rfc3339(0),
        }]);
    }
    status
}

/// The class of a Pod by what its containers request.
fn qos_class(spec: &Value) -> &'static str {
    let of = |container: &Value, what: &str| {
        let named = |key: &str| container["resources"][what].get(key).cloned();
        [named("cpu"), named("memory")]
    };
    let containers: Vec<_> = ["containers", "initContainers"]
        .iter()
        .flat_map(|key| spec[*key].as_array().into_iter().flatten())
        .collect();
    let has_none = |container: &&Value| {
        ["requests", "limits"].iter().all(|what| of(container, what).iter().all(Option::is_none))
    };
    let has_all = |container: &&Value| {
        of(container, "limits").iter().all(Option::is_some)
            && of(container, "limits") == of(container, "requests")
    };
    if containers.iter().all(has_none) {
        "BestEffort"
    } else if containers.iter().all(has_all) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Items of a list, which may be missing.
fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// A specification without what may change.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for key in ["containers", "initContainers"] {
        for container in items(&mut spec, key) {
            container["image"] = Value::Null;
        }
    }
    for key in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
        spec[key] = Value::Null;
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(resources: &Value) -> Value {
        let mut pod = json!({"spec": {"containers": [{"name": "c", "image": "registry:5000/i:1", "resources": resources}]}});
        set(&mut pod, None).unwrap();
        pod
    }

    #[test]
    fn a_pod_has_the_class_of_what_it_requests() {
        let class = |resources: Value| pod(&resources)["status"]["qosClass"].clone();
        assert_eq!(class(json!({})), "BestEffort");
        assert_eq!(class(json!({"requests": {"cpu": "1"}})), "Burstable");
        assert_eq!(class(json!({"limits": {"cpu": "1", "memory": "1Gi"}})), "Guaranteed");
    }

    #[test]
    fn an_image_with_a_tag_is_pulled_once() {
        assert_eq!(pod(&json!({}))["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    }

    #[test]
    fn of_a_specification_little_may_change() {
        let old = pod(&json!({}));
        let mut new = old.clone();
        new["spec"]["containers"][0]["image"] = json!("i:2");
        assert!(set(&mut new, Some(&old)).is_ok());
        new["spec"]["nodeName"] = json!("n1");
        assert_eq!(set(&mut new, Some(&old)).unwrap_err().field, "spec");
    }
}
