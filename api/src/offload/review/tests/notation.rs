//! The notation of the vectors: `{a=x/y & b & !c & d!=z & e>5 & @metadata.name=n} OR {...}`.

use serde_json::{Value, json};

/// A key, an operator and values.
pub(super) type Requirement = (String, &'static str, Vec<String>);

/// What one term requires of labels, and of the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Term {
    pub(super) labels: Vec<Requirement>,
    pub(super) name: Vec<Requirement>,
}

/// `-` is `None`, `[]` an empty list.
pub(super) fn terms(text: &str) -> Option<Vec<Term>> {
    match text {
        "-" => None,
        "[]" => Some(Vec::new()),
        text => Some(text.split(" OR ").map(term).collect()),
    }
}

fn term(text: &str) -> Term {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap();
    let mut term = Term::default();
    for part in inner.split(" & ").filter(|part| !part.is_empty()) {
        match part.strip_prefix('@') {
            Some(field) => term.name.push(requirement(field)),
            None => term.labels.push(requirement(part)),
        }
    }
    term
}

fn requirement(text: &str) -> Requirement {
    let key = |key: &str| if key == "T" { "liqo.io/type".to_owned() } else { key.to_owned() };
    let value = |value: &str| if value == "vn" { "virtual-node".to_owned() } else { value.to_owned() };
    let values = |values: &str| values.split('/').map(value).collect();
    if let Some(absent) = text.strip_prefix('!') {
        return (key(absent), "DoesNotExist", Vec::new());
    }
    for (sign, operator) in [("!=", "NotIn"), (">", "Gt"), ("<", "Lt"), ("=", "In")] {
        if let Some((name, all)) = text.split_once(sign) {
            return (key(name), operator, values(all));
        }
    }
    (key(text), "Exists", Vec::new())
}

/// The terms as Kubernetes writes them.
pub(super) fn json(terms: &[Term]) -> Value {
    let requirement = |(key, operator, values): &Requirement| match values.as_slice() {
        [] => json!({"key": key, "operator": operator}),
        values => json!({"key": key, "operator": operator, "values": values}),
    };
    let term = |term: &Term| {
        let mut fields = serde_json::Map::new();
        for (field, all) in [("matchExpressions", &term.labels), ("matchFields", &term.name)] {
            if !all.is_empty() {
                fields.insert(field.into(), all.iter().map(requirement).collect());
            }
        }
        Value::Object(fields)
    };
    terms.iter().map(term).collect()
}
