//! What `--selector` says: one term, written as kubectl's selectors are.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};

use api::offload::selector;

/// The term that a text says: requirements with commas between them, each `key=value`, `key!=value`, `key` or `!key`. None for an empty
/// text.
pub(super) fn term(text: &str) -> Result<Option<NodeSelectorTerm>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let term = NodeSelectorTerm {
        match_expressions: Some(text.split(',').map(requirement).collect()),
        match_fields: None,
    };
    let wrong = |error: String| {
        format!("--selector {text:?}: {}", error.trim_start_matches("nodeSelectorTerms[0]: "))
    };
    selector::check(std::slice::from_ref(&term)).map_err(wrong)?;
    Ok(Some(term))
}

fn requirement(text: &str) -> NodeSelectorRequirement {
    let text = text.trim();
    let of = |key: &str, operator: &str, value: Option<&str>| NodeSelectorRequirement {
        key: key.trim().to_owned(),
        operator: operator.to_owned(),
        values: value.map(|value| vec![value.trim().to_owned()]),
    };
    if let Some((key, value)) = text.split_once("!=") {
        of(key, "NotIn", Some(value))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        of(key, "In", Some(value))
    } else if let Some(key) = text.strip_prefix('!') {
        of(key, "DoesNotExist", None)
    } else {
        of(text, "Exists", None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_one_term() {
        for (text, want) in [
            ("region=a", json!([{"key": "region", "operator": "In", "values": ["a"]}])),
            ("region==a", json!([{"key": "region", "operator": "In", "values": ["a"]}])),
            (
                "liqo.io/region=a,!staging",
                json!([
                    {"key": "liqo.io/region", "operator": "In", "values": ["a"]},
                    {"key": "staging", "operator": "DoesNotExist"},
                ]),
            ),
            (
                "gpu, region != b",
                json!([{"key": "gpu", "operator": "Exists"}, {"key": "region", "operator": "NotIn", "values": ["b"]}]),
            ),
        ] {
            assert_eq!(json!(term(text).unwrap())["matchExpressions"], want, "{text}");
        }
        assert_eq!(term(" "), Ok(None));
        for bad in ["a b=c", "a,,b", "=a", "!", "a=b c"] {
            let error = term(bad).unwrap_err();
            assert!(error.starts_with(&format!("--selector {bad:?}: ")), "{error}");
        }
    }
}
