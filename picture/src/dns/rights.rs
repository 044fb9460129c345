//! What CoreDNS may watch, decided from ClusterRoles and their bindings.

use api::mcs::ServiceImport;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, PolicyRule, Subject};
use kube::Resource;

/// Name of the ClusterRole that is bound to the ServiceAccount of this Namespace and name, if that is who a binding is about.
pub fn role_for<'a>(binding: &'a ClusterRoleBinding, namespace: &str, account: &str) -> Option<&'a str> {
    let groups = [
        "system:authenticated".to_owned(),
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ];
    let user = format!("system:serviceaccount:{namespace}:{account}");
    let is_it = |subject: &Subject| match subject.kind.as_str() {
        "ServiceAccount" => subject.name == account && subject.namespace.as_deref() == Some(namespace),
        "Group" => groups.contains(&subject.name),
        _ => subject.name == user,
    };
    let is_about = binding.subjects.iter().flatten().any(is_it);
    is_about.then_some(binding.role_ref.name.as_str())
}

/// Whether the rules allow to list and to watch ServiceImports everywhere.
pub fn may_watch_imports(rules: &[PolicyRule]) -> bool {
    let (group, plural) = (ServiceImport::group(&()), ServiceImport::plural(&()));
    let has = |words: Option<&Vec<String>>, wanted: &str| {
        words.is_some_and(|words| words.iter().any(|word| word == wanted || word == "*"))
    };
    ["list", "watch"].into_iter().all(|verb| {
        rules.iter().any(|rule| {
            has(rule.api_groups.as_ref(), &group)
                && has(rule.resources.as_ref(), &plural)
                && has(Some(&rule.verbs), verb)
                && rule.resource_names.as_ref().is_none_or(Vec::is_empty)
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(value: Value) -> PolicyRule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_equal_right_counts() {
        let of = |group: &str, kind: &str, verbs: &[&str]| {
            rule(json!({"apiGroups": [group], "resources": [kind], "verbs": verbs}))
        };
        let (group, kind) = ("multicluster.x-k8s.io", "serviceimports");
        assert!(may_watch_imports(&[of(group, kind, &["list", "watch"])]));
        assert!(may_watch_imports(&[of("*", "*", &["*"])]));
        assert!(may_watch_imports(&[of(group, kind, &["list"]), of(group, "*", &["watch"])]));
        for less in [of(group, kind, &["list"]), of(group, "serviceexports", &["*"]), of("", kind, &["*"])] {
            assert!(!may_watch_imports(&[less]));
        }
        let named =
            json!({"apiGroups": [group], "resources": [kind], "verbs": ["*"], "resourceNames": ["web"]});
        assert!(!may_watch_imports(&[rule(named)]), "of one name only");
    }

    #[test]
    fn a_role_is_bound_to_the_account_itself_or_to_a_group_that_it_is_in() {
        let role = |kind: &str, name: &str, namespace: Option<&str>| {
            let binding: ClusterRoleBinding = serde_json::from_value(json!({
                "metadata": {"name": "b"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": kind, "name": name, "namespace": namespace}],
            }))
            .unwrap();
            role_for(&binding, "kube-system", "coredns").map(str::to_owned)
        };
        for (kind, name, namespace) in [
            ("ServiceAccount", "coredns", Some("kube-system")),
            ("User", "system:serviceaccount:kube-system:coredns", None),
            ("Group", "system:serviceaccounts:kube-system", None),
        ] {
            assert_eq!(role(kind, name, namespace).as_deref(), Some("r"), "{kind} {name}");
        }
        for (kind, name, namespace) in [
            ("ServiceAccount", "coredns", Some("default")),
            ("ServiceAccount", "node", Some("kube-system")),
            ("Group", "system:serviceaccounts:default", None),
        ] {
            assert_eq!(role(kind, name, namespace), None, "{kind} {name}");
        }
    }
}
