//! YAML that kubectl reads correctly.
//!
//! kubectl follows YAML 1.1, where `no` and `on` are booleans and `2026-11-01` is a time, all of which are names a cluster may
//! have. The library writes YAML 1.2, where they are text, and leaves them without quotes.

use serde_json::{Map, Value};

/// One document.
pub(super) fn document(body: &Value) -> Result<String, serde_yaml::Error> {
    let text = serde_yaml::to_string(&marked(body))?;
    Ok(text.replace(BEGIN, "\"").replace(END, "\""))
}

/// Stand for quotes while the library writes. Letters alone, so that it adds none of its own.
const BEGIN: &str = "FreeportBeginsQuotedText";
const END: &str = "FreeportEndsQuotedText";

fn marked(value: &Value) -> Value {
    match value {
        Value::String(text) if is_ambiguous(text) => Value::String(format!("{BEGIN}{text}{END}")),
        Value::Array(items) => items.iter().map(marked).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), marked(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// Whether YAML 1.1 reads the text as something else and YAML 1.2 does not.
fn is_ambiguous(text: &str) -> bool {
    let word = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    let number_or_time = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | ':' | '-' | '.'));
    word || number_or_time
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_yaml_takes_for_something_else_are_quoted() {
        let quoted = [
            "n",
            "no",
            "On",
            "off",
            "yes",
            "y",
            "123",
            "012",
            "1e3",
            "0x1f",
            "1_0",
            "2026-11-01",
            "1:20",
            "true",
        ];
        for text in quoted {
            let yaml = document(&json!({"k": text, "l": [text]})).unwrap();
            let value = yaml.lines().next().unwrap().strip_prefix("k: ").unwrap();
            assert!(value == format!("\"{text}\"") || value == format!("'{text}'"), "{yaml}");
            assert_eq!(serde_yaml::from_str::<Value>(&yaml).unwrap(), json!({"k": text, "l": [text]}));
        }
        assert_eq!(
            document(&json!({"k": "east-1", "n": 1, "b": true})).unwrap(),
            "b: true\nk: east-1\nn: 1\n"
        );
    }
}
