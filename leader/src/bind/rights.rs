//! What a consumer may do with the objects of the APIs that are exported to it: pure.

use api::{
    bind::{
        export::APIServiceExport,
        label,
        resource::{InformerScope, Isolation},
    },
    name,
};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};
use kube::{ResourceExt, core::ObjectMeta};

use super::{
    credential::BINDER,
    known::{Known, Place},
};

/// Longest name of an object.
const NAME_MAX: usize = 253;
/// Kind of the roles that give rights on APIs, and what their names begin with.
const CLUSTER_ROLE: &str = "ClusterRole";
const ROLE_PREFIX: &str = "freeport-bind-";

/// Where a consumer may do something with an API.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    /// In the cluster namespace: objects are converted.
    Within(String),
    /// In the whole cluster: objects have no Namespace.
    Everywhere(String),
    /// Reading in the whole cluster: that is how it watches.
    Reading(String),
}

/// Rights that come with an export. Those in the Namespaces of a consumer come with its APIServiceNamespaces.
pub(super) fn of_export(export: &APIServiceExport, known: &Known) -> Vec<Right> {
    let cluster_namespace = export.namespace().unwrap_or_default();
    let marks =
        known.contract(&cluster_namespace).and_then(|contract| contract.annotations().get(label::READS_ALL));
    let reads_all = marks.is_some_and(|value| value == "true");
    let mut rights = Vec::new();
    for resource in &export.spec.resources {
        let api = resource.name();
        let Some(schema) = known.schema(&cluster_namespace, &api) else { continue };
        match (schema.spec.scope, export.spec.isolation, schema.spec.informer_scope) {
            (InformerScope::Cluster, Isolation::Namespaced, _) if reads_all => {
                rights.extend([Right::Within(api.clone()), Right::Reading(api)]);
            }
            (InformerScope::Cluster, Isolation::Namespaced, _) => rights.push(Right::Within(api)),
            (InformerScope::Cluster, ..) => rights.push(Right::Everywhere(api)),
            (InformerScope::Namespaced, _, InformerScope::Cluster) => rights.push(Right::Reading(api)),
            (InformerScope::Namespaced, ..) => {}
        }
    }
    rights
}

/// Whether an API of the export has Namespaces at its consumer.
pub(super) fn has_namespaces(export: &APIServiceExport, known: &Known) -> bool {
    let cluster_namespace = export.namespace().unwrap_or_default();
    export.spec.resources.iter().any(|resource| is_namespaced(&cluster_namespace, &resource.name(), known))
}

fn is_namespaced(cluster_namespace: &str, api: &str, known: &Known) -> bool {
    let schema = known.schema(cluster_namespace, api);
    schema.is_some_and(|schema| schema.spec.scope == InformerScope::Namespaced)
}

/// APIs of which a consumer has objects in Namespaces of its own.
pub(super) fn in_namespaces(cluster_namespace: &str, known: &Known) -> Vec<String> {
    let exports = known.exports_of(cluster_namespace).filter(|export| is_live(export));
    let apis = exports.flat_map(|export| export.spec.resources.iter().map(|resource| resource.name()));
    apis.filter(|api| is_namespaced(cluster_namespace, api, known)).collect()
}

/// Whether the export is not taken back.
pub(super) fn is_live(export: &APIServiceExport) -> bool {
    export.metadata.deletion_timestamp.is_none()
}

/// All that a consumer may have of an API outside of Namespaces of its own, by their names: what it was given follows from a schema that
/// may be gone before.
pub(super) fn outside(cluster_namespace: &str, api: &str) -> (RoleBinding, ClusterRoleBinding) {
    let mut everywhere = ClusterRoleBinding::default();
    everywhere.metadata.name = Some(called(cluster_namespace, api));
    (within(cluster_namespace, cluster_namespace, api), everywhere)
}

/// Whether what has this name may give a right on an API to the consumer.
pub(super) fn may_be_of(name: &str, cluster_namespace: &str) -> bool {
    name.starts_with(&format!("{BINDER}-{cluster_namespace}-"))
}

/// Reports whether it gives a right on an API to the consumer, and to nobody else.
pub(super) fn is_of(binding: &RoleBinding, cluster_namespace: &str) -> bool {
    gives(&binding.role_ref, binding.subjects.as_deref(), cluster_namespace)
}

/// [`is_of`] for the whole cluster.
pub(super) fn is_of_everywhere(binding: &ClusterRoleBinding, cluster_namespace: &str) -> bool {
    gives(&binding.role_ref, binding.subjects.as_deref(), cluster_namespace)
}

fn gives(role: &RoleRef, subjects: Option<&[Subject]>, cluster_namespace: &str) -> bool {
    let is_its = |has: &Subject| {
        let its = subject(cluster_namespace);
        (&has.kind, &has.name, &has.namespace) == (&its.kind, &its.name, &its.namespace)
    };
    role.kind == CLUSTER_ROLE
        && role.name.starts_with(ROLE_PREFIX)
        && matches!(subjects.unwrap_or_default(), [only] if is_its(only))
}

/// The right to an API in a Namespace.
pub(super) fn within(namespace: &str, cluster_namespace: &str, api: &str) -> RoleBinding {
    RoleBinding {
        metadata: ObjectMeta {
            name: Some(called(cluster_namespace, api)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: role(&format!("{ROLE_PREFIX}{api}")),
        subjects: Some(vec![subject(cluster_namespace)]),
    }
}

/// The right to an API in the whole cluster. It goes with the cluster namespace.
pub(super) fn everywhere(contract: &Place, api: &str, reading: bool) -> ClusterRoleBinding {
    let name = contract.name_any();
    let (suffix, owner) = (if reading { "-read" } else { "" }, super::namespace_owner(contract));
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(called(&name, api)),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        role_ref: role(&format!("{ROLE_PREFIX}{api}{suffix}")),
        subjects: Some(vec![subject(&name)]),
    }
}

fn called(cluster_namespace: &str, api: &str) -> String {
    let whole = format!("{BINDER}-{cluster_namespace}-{api}");
    if whole.len() <= NAME_MAX {
        return whole;
    }
    let hash = name::hash(&whole);
    format!(
        "{}-{hash}",
        whole[..whole.floor_char_boundary(NAME_MAX - hash.len() - 1)].trim_end_matches(['-', '.'])
    )
}

fn role(name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: CLUSTER_ROLE.to_owned(),
        name: name.to_owned(),
    }
}

fn subject(cluster_namespace: &str) -> Subject {
    Subject {
        kind: "ServiceAccount".to_owned(),
        name: BINDER.to_owned(),
        namespace: Some(cluster_namespace.to_owned()),
        ..Subject::default()
    }
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;
    use serde_json::json;

    use super::*;

    fn rights(scope: &str, isolation: &str, informers: &str) -> (Vec<Right>, usize) {
        given(scope, isolation, informers, false)
    }

    fn given(scope: &str, isolation: &str, informers: &str, marked: bool) -> (Vec<Right>, usize) {
        let mut known = Known::default();
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
        let schema = json!({"metadata": {"name": "m.g", "namespace": "cns"}, "spec": {"informerScope": informers, "group": "g",
            "names": {"plural": "m", "kind": "M"}, "scope": scope, "versions": [version]}});
        known.schemas.change(Change::Apply(serde_json::from_value(schema).unwrap()));
        let export = json!({"metadata": {"name": "x", "namespace": "cns"}, "spec": {"informerScope": informers,
            "isolation": isolation, "resources": [{"group": "g", "resource": "m"}]}});
        let export: APIServiceExport = serde_json::from_value(export).unwrap();
        let marks = marked.then(|| json!({label::READS_ALL: "true"}));
        let contract = json!({"metadata": {"name": "cns", "labels": {label::BIND: label::CONTRACT}, "annotations": marks}});
        known.places.change(Change::Apply(serde_json::from_value(contract).unwrap()));
        known.exports.change(Change::Apply(serde_json::from_value(json!(export)).unwrap()));
        (of_export(&export, &known), in_namespaces("cns", &known).len())
    }

    #[test]
    fn a_consumer_may_do_something_where_its_objects_are_and_nowhere_else() {
        let api = || "m.g".to_owned();
        assert_eq!(rights("Namespaced", "Prefixed", "Namespaced"), (vec![], 1));
        assert_eq!(rights("Namespaced", "None", "Cluster"), (vec![Right::Reading(api())], 1));
        assert_eq!(rights("Cluster", "Namespaced", "Cluster"), (vec![Right::Within(api())], 0));
        assert_eq!(rights("Cluster", "Prefixed", "Namespaced"), (vec![Right::Everywhere(api())], 0));
    }

    #[test]
    fn a_consumer_that_an_administrator_marked_reads_all_objects_of_a_converted_api() {
        let both = vec![Right::Within("m.g".into()), Right::Reading("m.g".into())];
        assert_eq!(given("Cluster", "Namespaced", "Namespaced", true), (both, 0));
        assert_eq!(given("Namespaced", "Prefixed", "Namespaced", true), (vec![], 1), "no other one");
    }

    #[test]
    fn whose_a_right_is_says_its_subject() {
        let is_its = |binding: &RoleBinding| {
            may_be_of(binding.metadata.name.as_deref().unwrap_or_default(), "cns") && is_of(binding, "cns")
        };
        assert!(is_its(&within("team1", "cns", "m.g")) && is_its(&within("team1", "cns", &"a.".repeat(150))));
        assert!(!is_its(&within("team1", "cns-b", "m.g")), "its name begins as ours do");
        let mut several = within("team1", "cns", "m.g");
        several.subjects.get_or_insert_default().push(subject("other"));
        assert!(!is_its(&several));
        let mut others = within("team1", "cns", "m.g");
        others.metadata.name = Some("readers".into());
        assert!(!is_its(&others));
        let mut by_hand = within("team1", "cns", "m.g");
        by_hand.role_ref.name = "view".into();
        assert!(!is_its(&by_hand), "another right under the same name");
        let contract: Place = serde_json::from_value(json!({"metadata": {"name": "cns"}})).unwrap();
        let whole = everywhere(&contract, "m.g", true);
        assert!(is_of_everywhere(&whole, "cns") && !is_of_everywhere(&whole, "cns-b"));
    }

    #[test]
    fn a_long_name_ends_in_a_hash() {
        let long = called("kube-bind-37p3oxx6sh4fd", &"a.".repeat(150));
        assert!(long.len() <= NAME_MAX && long != called("kube-bind-37p3oxx6sh4fd", &"a.".repeat(151)));
    }
}
