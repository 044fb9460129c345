//! Selects the part of the answers that a bundle holds: Freeport's objects, and those they stand for. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::{label, name};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
        },
        core::v1::{Event, Node, Secret, Service},
        discovery::v1::EndpointSlice,
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::Resource;
use picture::dns;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::read::{Asked, items};
use crate::objects::SYSTEM;

/// Annotation with which kubectl keeps what was applied (Kubernetes).
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Metadata of a Secret that a bundle holds: `freeport status` finds a Secret by name and labels. Annotations of programs that apply manifests hold its content.
const SECRET_METADATA: [&str; 5] = ["name", "namespace", "uid", "creationTimestamp", "labels"];

/// Prefix of the names of all that Freeport installs outside of Namespaces.
const OURS: &str = "freeport";

/// Services of the set: by Namespace, the names of Services that are exported, imported, or made for an import.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    services: BTreeMap<String, BTreeSet<String>>,
}

impl Wanted {
    /// Collects the Services that these clusters export and import.
    pub(super) fn of(all: &[Asked]) -> Self {
        let mut services = BTreeMap::<_, BTreeSet<_>>::new();
        for (path, list) in all.iter().flat_map(|asked| &asked.answers) {
            let plural = path.rsplit('/').next().unwrap_or_default();
            let (namespace, name) = match plural {
                "serviceexports" | "serviceimports" => ("/metadata/namespace", "/metadata/name"),
                "resourceexports" | "resourceimports" => ("/spec/namespace", "/spec/name"),
                _ => continue,
            };
            let named = |item: &Value| Some((text(item, namespace)?, text(item, name)?));
            for (namespace, name) in items(list).iter().filter_map(named) {
                let names = services.entry(namespace).or_default();
                names.extend([name::imported_service(&name), name]);
            }
        }
        Self { services }
    }

    fn has(&self, namespace: &str, service: &str) -> bool {
        self.services.get(namespace).is_some_and(|names| names.contains(service))
    }
}

/// Returns the part of a cluster's answers that the bundle holds.
pub(super) fn kept(answers: BTreeMap<String, Value>, wanted: &Wanted) -> BTreeMap<String, Value> {
    let roles = roles(&answers);
    let keep = |(path, mut answer): (String, Value)| {
        let plural = path.rsplit('/').next().unwrap_or_default().to_owned();
        match answer.get_mut("items").and_then(Value::as_array_mut) {
            Some(all) => {
                let items = std::mem::take(all);
                all.extend(items.into_iter().filter_map(|item| item_kept(&plural, item, wanted, &roles)));
            }
            None => stripped(&mut answer),
        }
        (path, answer)
    };
    answers.into_iter().map(keep).collect()
}

/// Names of the ClusterRoles that CoreDNS is bound to.
fn roles(answers: &BTreeMap<String, Value>) -> BTreeSet<String> {
    let path = ClusterRoleBinding::url_path(&(), None);
    let bindings = answers.get(&path).map(items).unwrap_or_default();
    bindings
        .iter()
        .filter(|binding| is_of_dns(binding))
        .filter_map(|binding| text(binding, "/roleRef/name"))
        .collect()
}

fn is_of_dns(binding: &Value) -> bool {
    let binding = ClusterRoleBinding::deserialize(binding);
    let accounts = |binding: &ClusterRoleBinding| -> Vec<String> {
        binding.subjects.iter().flatten().map(|subject| subject.name.clone()).collect()
    };
    // Groups that CoreDNS is in hold every account of its Namespace.
    binding.is_ok_and(|binding| {
        let accounts = accounts(&binding);
        let accounts = accounts.iter().map(String::as_str).chain([dns::NAME]);
        accounts.into_iter().any(|account| dns::rights::role_for(&binding, dns::NAMESPACE, account).is_some())
    })
}

fn item_kept(plural: &str, mut item: Value, wanted: &Wanted, roles: &BTreeSet<String>) -> Option<Value> {
    stripped(&mut item);
    let name = text(&item, "/metadata/name").unwrap_or_default();
    let namespace = text(&item, "/metadata/namespace").unwrap_or_default();
    let is_ours = name.starts_with(OURS);
    let is = |plurals: &[std::borrow::Cow<'_, str>]| plurals.iter().any(|of| of == plural);
    if is(&[Service::plural(&())]) && !wanted.has(&namespace, &name) {
        return Some(bare_service(&item));
    }
    if is(&[EndpointSlice::plural(&())]) {
        let service = text_of_label(&item, label::SERVICE_NAME);
        return service.is_some_and(|service| wanted.has(&namespace, &service)).then_some(item);
    }
    if is(&[Event::plural(&())]) {
        return is_our_event(&item).then_some(item);
    }
    if is(&[Secret::plural(&())]) {
        return Some(secret(&item));
    }
    if is(&[CustomResourceDefinition::plural(&())]) {
        return Some(crd(item));
    }
    if is(&[Node::plural(&())])
        && let Some(status) = item.get_mut("status").and_then(Value::as_object_mut)
    {
        status.remove("images");
    }
    let policies = [
        ValidatingAdmissionPolicy::plural(&()),
        ValidatingAdmissionPolicyBinding::plural(&()),
        MutatingWebhookConfiguration::plural(&()),
    ];
    let stays = match () {
        () if is(&policies) => is_ours,
        () if is(&[ClusterRole::plural(&())]) => is_ours || roles.contains(&name),
        () if is(&[ClusterRoleBinding::plural(&())]) => is_ours || is_of_dns(&item),
        () => true,
    };
    stays.then_some(item)
}

/// Removes the copies of an object that its metadata holds. Who wrote it stays: commands tell by that what Freeport made.
fn stripped(item: &mut Value) {
    let Some(metadata) = item.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        let of = |field: &str| entry.get(field).map(|value| (field.to_owned(), value.clone()));
        *entry = Value::Object(Map::from_iter(
            ["manager", "operation", "subresource", "time"].into_iter().filter_map(of),
        ));
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

/// Reduces a Service that is neither exported nor imported to the fields that `freeport why` needs.
fn bare_service(service: &Value) -> Value {
    let of = |pointer: &str| service.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "metadata": {"namespace": of("/metadata/namespace"), "name": of("/metadata/name"), "uid": of("/metadata/uid")},
        "spec": {"type": of("/spec/type"), "ports": of("/spec/ports"), "clusterIP": of("/spec/clusterIP")},
    })
}

/// A Secret without what it holds: sizes, by key.
fn secret(secret: &Value) -> Value {
    let data = secret.get("data").cloned().map(BTreeMap::<String, ByteString>::deserialize);
    let sizes: BTreeMap<_, _> = match data {
        Some(Ok(data)) => data.into_iter().map(|(key, held)| (key, held.0.len())).collect(),
        _ => BTreeMap::new(),
    };
    let kept = |(field, value): (&String, &Value)| {
        SECRET_METADATA.contains(&field.as_str()).then(|| (field.clone(), value.clone()))
    };
    let metadata = secret.get("metadata").and_then(Value::as_object);
    let metadata: Map<_, _> = metadata.into_iter().flatten().filter_map(kept).collect();
    json!({"metadata": metadata, "type": secret.get("type"), "sizes": sizes})
}

/// A CustomResourceDefinition without schemas.
fn crd(mut crd: Value) -> Value {
    let version = |version: &Value| {
        let fields = ["name", "served", "storage"].map(|field| (field.to_owned(), version[field].clone()));
        Value::Object(Map::from_iter(fields))
    };
    if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
        let versions: Vec<_> =
            spec.get("versions").and_then(Value::as_array).into_iter().flatten().map(version).collect();
        spec.insert("versions".into(), versions.into());
        spec.remove("conversion");
    }
    crd
}

/// Reports whether a daemon of ours wrote the Event, or it is about what we define or have.
fn is_our_event(event: &Value) -> bool {
    let of = |pointer: &str| text(event, pointer).unwrap_or_default();
    let by = [of("/source/component"), of("/reportingComponent")];
    let about = of("/involvedObject/apiVersion");
    let groups = ["multicluster.", "kube-bind.io/", "offloading.liqo.io/"];
    by.iter().any(|by| by.starts_with(OURS))
        || groups.iter().any(|group| about.starts_with(group))
        || of("/involvedObject/namespace") == SYSTEM
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn text_of_label(item: &Value, label: &str) -> Option<String> {
    item.pointer("/metadata/labels")?.get(label)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[Value]) -> Value {
        json!({"kind": "List", "items": items})
    }

    #[test]
    fn a_secret_keeps_names_labels_and_sizes() {
        let named = json!({"name": "a", "namespace": "b", "uid": "1", "creationTimestamp": "2026-11-30T10:00:00Z", "labels": {"c": "d"}});
        let mut metadata = named.clone();
        metadata["managedFields"] = json!([1]);
        metadata["annotations"] = json!({"objectset.rio.cattle.io/applied": "H4sIAAAAAAAAA"});
        metadata["ownerReferences"] = json!([{"name": "e"}]);
        let token = json!({"metadata": metadata, "type": "Opaque", "data": {"token": "cGxhbnRlZA=="}});
        let answers =
            BTreeMap::from([("/api/v1/namespaces/freeport-system/secrets".to_owned(), list(&[token]))]);
        let kept = kept(answers, &Wanted::default());
        let secret = &kept["/api/v1/namespaces/freeport-system/secrets"]["items"][0];
        assert_eq!(*secret, json!({"metadata": named, "type": "Opaque", "sizes": {"token": 7}}));
    }

    #[test]
    fn what_is_nobodys_of_the_set_is_bare_or_gone() {
        let by = json!({"manager": "freeport-member", "operation": "Apply"});
        let mut entry = by.clone();
        entry["fieldsV1"] = json!({"f:spec": {}});
        let named = |name: &str| json!({"metadata": {"namespace": "shop", "name": name, "annotations": {"a": "b", LAST_APPLIED: "{}"}, "managedFields": [&entry]}, "spec": {"selector": {"a": "b"}}});
        let slice = |service: &str| json!({"metadata": {"namespace": "shop", "name": service, "labels": {label::SERVICE_NAME: service}}});
        let event = |by: &str| json!({"metadata": {"name": by}, "reportingComponent": by});
        let role = |name: &str| json!({"metadata": {"name": name}});
        let binding = |name: &str, namespace: &str| {
            let subjects = json!([{"kind": "ServiceAccount", "namespace": namespace, "name": "a"}]);
            json!({"metadata": {"name": name}, "subjects": subjects, "roleRef": {"apiGroup": "", "kind": "ClusterRole", "name": format!("role-{name}")}})
        };
        let path = |path: &str, items: &[Value]| (path.to_owned(), list(items));
        let asked = Asked {
            answers: BTreeMap::from([
                path("/apis/multicluster.x-k8s.io/v1alpha1/serviceexports", &[named("web")]),
                path("/api/v1/services", &[named("web"), named("antrea-mc-web"), named("db")]),
                path(
                    "/apis/discovery.k8s.io/v1/endpointslices",
                    &[slice("web"), slice("antrea-mc-web"), slice("db")],
                ),
                path("/api/v1/events", &[event("freeport-member"), event("kubelet")]),
                path(
                    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                    &[binding("x", "kube-system"), binding("y", "shop")],
                ),
                path(
                    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
                    &[role("role-x"), role("role-y"), role("freeport-member")],
                ),
            ]),
            ..Asked::default()
        };
        let wanted = Wanted::of(std::slice::from_ref(&asked));
        let kept = kept(asked.answers, &wanted);
        let names = |path: &str| -> Vec<String> {
            items(&kept[path]).iter().map(|item| text(item, "/metadata/name").unwrap()).collect()
        };
        assert_eq!(names("/apis/discovery.k8s.io/v1/endpointslices"), ["web", "antrea-mc-web"]);
        assert_eq!(names("/api/v1/events"), ["freeport-member"]);
        assert_eq!(names("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"), ["x"]);
        assert_eq!(names("/apis/rbac.authorization.k8s.io/v1/clusterroles"), ["role-x", "freeport-member"]);
        let services = items(&kept["/api/v1/services"]);
        let annotations: Vec<_> =
            services.iter().map(|of| of.pointer("/metadata/annotations").cloned()).collect();
        assert_eq!(services[1].pointer("/metadata/managedFields"), Some(&json!([by])));
        let left = Some(json!({"a": "b"}));
        assert_eq!(annotations, [left.clone(), left, None]);
    }
}
