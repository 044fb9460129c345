//! How a policy in a cluster differs from the one that Freeport installs.

use serde_json::Value;

use crate::objects::Object;

/// Fields that we leave empty, and that exempt requests from a policy if somebody else fills them.
const NARROWING: [&str; 9] = [
    "excludeResourceRules",
    "matchConditions",
    "matchExpressions",
    "matchResources",
    "namespaceSelector",
    "objectSelector",
    "paramKind",
    "paramRef",
    "resourceNames",
];

/// How a policy is weaker than the one that Freeport installs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PolicyDrift {
    /// Policy or binding, as messages name an object.
    pub(crate) place: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

/// The first drift of a policy and its binding from what is `wanted`. Fields that the API server adds by itself are none.
pub(crate) fn drift(wanted: &[Object; 2], there: &[Option<Object>; 2]) -> Option<PolicyDrift> {
    wanted.iter().zip(there).find_map(|(wanted, there)| {
        let what = match there {
            None => "does not exist".to_owned(),
            Some(there) => refuses_nothing(wanted, there).or_else(|| altered(wanted, there))?,
        };
        Some(PolicyDrift { place: wanted.to_string(), what })
    })
}

/// A binding may only warn, as somebody wants it or as we do.
fn refuses_nothing(wanted: &Object, there: &Object) -> Option<String> {
    let refuses = |binding: &Object| {
        let actions = binding.body.pointer("/spec/validationActions")?.as_array()?;
        Some(actions.iter().any(|action| action == "Deny"))
    };
    (refuses(wanted)? && !refuses(there)?)
        .then(|| "is switched off: spec.validationActions lacks Deny".to_owned())
}

fn altered(wanted: &Object, there: &Object) -> Option<String> {
    let spec = |object: &Object| {
        let mut spec = object.body.get("spec").cloned().unwrap_or_default();
        if let Some(fields) = spec.as_object_mut() {
            // What it does beside refusing is up to whoever reads audit logs.
            fields.remove("validationActions");
        }
        spec
    };
    let field = difference("spec", &spec(wanted), &spec(there))?;
    Some(format!("is not as Freeport {} installs it: {field} differs", env!("CARGO_PKG_VERSION")))
}

/// The first field that lacks what is wanted, or narrows it.
fn difference(field: &str, wanted: &Value, there: &Value) -> Option<String> {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => {
            let lacking = wanted.iter().find_map(|(key, value)| {
                difference(&format!("{field}.{key}"), value, there.get(key).unwrap_or(&Value::Null))
            });
            let narrowing = || {
                let mut added = there.iter().filter(|(key, _)| !wanted.contains_key(*key));
                let selects = field.ends_with(".matchLabels");
                let narrows = |(key, value): &(&String, &Value)| {
                    selects || NARROWING.contains(&key.as_str()) && !is_empty(value)
                };
                added.find(narrows).map(|(key, _)| format!("{field}.{key}"))
            };
            lacking.or_else(narrowing)
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => wanted
            .iter()
            .zip(there)
            .enumerate()
            .find_map(|(at, (wanted, there))| difference(&format!("{field}[{at}]"), wanted, there)),
        _ => (wanted != there).then(|| field.to_owned()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use api::label;
    use serde_json::json;

    use super::{super::records, *};

    /// As the API server gives them back: with what it adds by itself.
    fn there() -> [Object; 2] {
        let [mut policy, mut binding] = records::objects();
        policy.body["metadata"]["uid"] = json!("u1");
        policy.body["spec"]["matchConstraints"]["namespaceSelector"] = json!({});
        policy.body["spec"]["matchConstraints"]["objectSelector"] = json!({});
        policy.body["status"] = json!({"observedGeneration": 1});
        binding.body["spec"]["matchResources"]["matchPolicy"] = json!("Equivalent");
        binding.body["spec"]["matchResources"]["objectSelector"] = json!({});
        [policy, binding]
    }

    fn of(there: [Object; 2]) -> Option<(String, String)> {
        let found = drift(&records::objects(), &there.map(Some))?;
        Some((found.place, found.what))
    }

    #[test]
    fn what_the_api_server_adds_is_no_alteration() {
        assert_eq!(of(there()), None);
    }

    #[test]
    fn without_either_it_is_off() {
        let [policy, binding] = there();
        let wanted = records::objects();
        let found = drift(&wanted, &[Some(policy), None]).unwrap();
        assert_eq!(found.place, "ValidatingAdmissionPolicyBinding freeport-records");
        assert_eq!(found.what, "does not exist");
        let found = drift(&wanted, &[None, Some(binding)]).unwrap();
        assert_eq!(found.place, "ValidatingAdmissionPolicy freeport-records");
    }

    #[test]
    fn a_binding_that_only_warns_is_off() {
        let [policy, mut binding] = there();
        binding.body["spec"]["validationActions"] = json!(["Warn", "Audit"]);
        assert!(of([policy.clone(), binding.clone()]).unwrap().1.starts_with("is switched off"));
        binding.body["spec"]["validationActions"] = json!(["Audit", "Deny"]);
        assert_eq!(of([policy, binding]), None);
    }

    #[test]
    fn what_weakens_it_is_named() {
        let changed = |which: usize, path: &str, value: Value| {
            let mut objects = there();
            *objects[which].body.pointer_mut(path).unwrap() = value;
            of(objects).map(|(_, what)| what).unwrap_or_default()
        };
        for (which, path, value, field) in [
            (0, "/spec/validations/3/expression", json!("true"), "spec.validations[3].expression"),
            (0, "/spec/validations", json!([]), "spec.validations"),
            (0, "/spec/failurePolicy", json!("Ignore"), "spec.failurePolicy"),
            (
                0,
                "/spec/matchConstraints/objectSelector",
                json!({"matchLabels": {"a": "b"}}),
                "objectSelector",
            ),
            (1, "/spec/policyName", json!("other"), "spec.policyName"),
            (1, "/spec/matchResources/namespaceSelector/matchLabels", json!({"a": "b"}), "matchLabels"),
        ] {
            let what = changed(which, path, value);
            assert!(what.contains(field) && what.ends_with("differs"), "{path}: {what:?}");
        }
        for (key, value, field) in [
            ("matchExpressions", json!([{"key": "a", "operator": "Exists"}]), "matchExpressions"),
            ("matchLabels", json!({(label::COMMON_AREA): "true", "a": "b"}), "matchLabels.a"),
        ] {
            let [policy, mut binding] = there();
            binding.body["spec"]["matchResources"]["namespaceSelector"][key] = value;
            assert!(of([policy, binding]).unwrap().1.contains(field), "{field}");
        }
        let [mut policy, binding] = there();
        policy.body["spec"]["matchConstraints"]["excludeResourceRules"] = json!([{"resources": ["leases"]}]);
        assert!(of([policy, binding]).unwrap().1.contains("excludeResourceRules"));
    }
}
