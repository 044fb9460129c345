//! Whether the APIs of a consumer can share its Namespaces: pure.

use api::bind::{
    export::APIServiceNamespace,
    grant::{EXPORTS_READY, Granted, Refused},
    resource::{InformerScope, Isolation},
};
use kube::ResourceExt;

use crate::bind::{
    key::Key,
    known::Known,
    namespace::{place, said},
    rights,
};

/// A Namespace of a consumer has one place here, whatever is in it: where its name says whose it is, or where it does not. So a consumer
/// cannot have both for APIs that have Namespaces at its side.
pub(super) fn contradiction(
    key: &Key,
    granted: &[Granted],
    isolation: Isolation,
    known: &Known,
) -> Option<Refused> {
    let has_namespaces = |granted: &Granted| granted.schema.scope == InformerScope::Namespaced;
    if isolation == Isolation::Namespaced || !granted.iter().any(has_namespaces) {
        return None;
    }
    let mut exports = known.exports_of(&key.cluster_namespace).filter(|export| export.name_any() != key.name);
    let other =
        exports.find(|export| export.spec.isolation != isolation && rights::has_namespaces(export, known));
    let message = match other {
        Some(other) => format!(
            "the objects of {} are kept apart otherwise ({:?}, not {isolation:?}), and a Namespace has one place at the provider",
            other.name_any(),
            other.spec.isolation
        ),
        None => left_over(key, isolation, known)?,
    };
    Some(Refused { condition: EXPORTS_READY, reason: "DifferentIsolation", message })
}

/// An APIServiceNamespace that an API left, with its copies, keeps its place.
fn left_over(key: &Key, isolation: Isolation, known: &Known) -> Option<String> {
    let is_elsewhere = |left: &&APIServiceNamespace| {
        let is_going = left.metadata.deletion_timestamp.is_some();
        !is_going && said(left).is_some_and(|said| said != place(&Key::of(*left), isolation))
    };
    let left = known.namespaces.within(&key.cluster_namespace).find(is_elsewhere)?;
    Some(format!(
        "APIServiceNamespace {}, which was left of an API whose objects were kept apart otherwise than {isolation:?}, has Namespace {}: \
         delete it, with which what was left there goes, or ask for an API of that isolation",
        left.name_any(),
        said(left).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use api::bind::label;
    use kit::objects::Change;
    use serde_json::json;

    use super::*;
    use crate::bind::request::fixture::{CNS, exports, known, of};

    #[test]
    fn a_namespace_of_a_consumer_has_one_place_for_all_its_apis() {
        let with = |template: &str, isolation: &str, scope: &str| {
            let mut known = known(&[("a", json!({label::ISOLATION: template}))], "a");
            exports(&mut known, "other", isolation, scope);
            of(&known).map(|exported| exported.export.spec.isolation)
        };
        assert_eq!(with("Prefixed", "None", "Namespaced"), Err("DifferentIsolation"));
        assert_eq!(with("None", "Prefixed", "Namespaced"), Err("DifferentIsolation"));
        assert_eq!(with("None", "None", "Namespaced"), Ok(Isolation::None));
        assert_eq!(with("Prefixed", "None", "Cluster"), Ok(Isolation::Prefixed), "it has no Namespaces");
        assert_eq!(with("Namespaced", "None", "Namespaced"), Ok(Isolation::Namespaced), "nor has this");
        let mut known = known(&[("a", json!({})), ("b", json!({label::ISOLATION: "None"}))], "a,b");
        exports(&mut known, "other", "None", "Namespaced");
        let exported = of(&known).map(|exported| exported.export.spec.isolation);
        assert_eq!(exported, Ok(Isolation::None), "by the template that does not contradict");
    }

    #[test]
    fn what_an_api_left_keeps_its_place_and_nothing_of_another_isolation_goes_there() {
        let with = |isolation: &str, said: &str, deleted: Option<&str>| {
            let mut known = known(&[("a", json!({label::ISOLATION: isolation}))], "a");
            let left = json!({"metadata": {"name": "shop", "namespace": CNS, "uid": "n", "deletionTimestamp": deleted,
                "finalizers": [label::BIND_FINALIZER]}, "spec": {}, "status": {"namespace": said}});
            known.namespaces.change(Change::Apply(serde_json::from_value(left).unwrap()));
            of(&known).map(|exported| exported.export.spec.isolation)
        };
        let prefixed = format!("{CNS}-shop");
        assert_eq!(with("Prefixed", "shop", None), Err("DifferentIsolation"));
        assert_eq!(with("None", &prefixed, None), Err("DifferentIsolation"));
        assert_eq!(with("Prefixed", &prefixed, None), Ok(Isolation::Prefixed));
        assert_eq!(with("None", "shop", None), Ok(Isolation::None));
        assert_eq!(with("Namespaced", "shop", None), Ok(Isolation::Namespaced), "it has no Namespaces");
        assert_eq!(with("None", "", None), Ok(Isolation::None), "it has no place yet");
        let going = Some("2026-01-01T00:00:00Z");
        assert_eq!(with("Prefixed", "shop", going), Ok(Isolation::Prefixed), "it is made anew");
    }
}
