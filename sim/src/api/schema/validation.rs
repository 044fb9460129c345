//! Validation by the schema of a CRD: types, required fields, enums, limits. Patterns, formats and rules in CEL are not looked at.

use serde_json::Value;

use super::{Field, is_everywhere};
use crate::api::refusal::Cause;

/// Reports what the schema forbids in an object.
pub(in crate::api) fn validate(object: &Value, schema: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check_required("", object, schema, &mut causes);
    for (key, value) in object.as_object().into_iter().flatten() {
        if let (false, Field::Declared(schema)) = (is_everywhere(key), Field::of(schema, key)) {
            check(key, value, schema, &mut causes);
        }
    }
    causes
}

fn check(path: &str, value: &Value, schema: &Value, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(expected) = schema["type"].as_str()
        && !is_of_type(value, expected)
    {
        let why = format!("{path} in body must be of type {expected}: {:?}", type_of(value));
        causes.push(Cause::new(
            "FieldValueTypeInvalid",
            path,
            format!("Invalid value: {:?}: {why}", type_of(value)),
        ));
        return;
    }
    check_enum(path, value, schema, causes);
    check_limits(path, value, schema, causes);
    match value {
        Value::Object(map) => {
            check_required(path, value, schema, causes);
            for (key, value) in map {
                if let Field::Declared(schema) = Field::of(schema, key) {
                    check(&format!("{path}.{key}"), value, schema, causes);
                }
            }
        }
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                check(&format!("{path}[{at}]"), item, &schema["items"], causes);
            }
        }
        _ => {}
    }
}

fn check_required(path: &str, object: &Value, schema: &Value, causes: &mut Vec<Cause>) {
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if object.get(key).is_none() {
            let field = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            causes.push(Cause::new("FieldValueRequired", field, "Required value"));
        }
    }
}

fn check_enum(path: &str, value: &Value, schema: &Value, causes: &mut Vec<Cause>) {
    let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) else { return };
    let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
    let why = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
    causes.push(Cause::new("FieldValueNotSupported", path, why));
}

fn check_limits(path: &str, value: &Value, schema: &Value, causes: &mut Vec<Cause>) {
    let limit = |key: &str| schema[key].as_f64();
    let below = |key: &str, size: f64| limit(key).filter(|limit| size < *limit);
    let above = |key: &str, size: f64| limit(key).filter(|limit| size > *limit);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(limit) = below("minimum", number) {
                let why = format!("{path} in body should be greater than or equal to {limit}");
                causes.push(Cause::invalid(path, value, &why));
            }
            if let Some(limit) = above("maximum", number) {
                let why = format!("{path} in body should be less than or equal to {limit}");
                causes.push(Cause::invalid(path, value, &why));
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as f64;
            if let Some(limit) = below("minLength", length) {
                causes.push(Cause::invalid(
                    path,
                    value,
                    &format!("{path} in body should be at least {limit} chars long"),
                ));
            }
            if let Some(limit) = above("maxLength", length) {
                let why = format!("Too long: may not be more than {limit} bytes");
                causes.push(Cause::new("FieldValueTooLong", path, why));
            }
        }
        Value::Array(list) => {
            let length = list.len() as f64;
            if let Some(limit) = below("minItems", length) {
                let why = format!("{path} in body should have at least {limit} items");
                causes.push(Cause::invalid(path, &list.len().into(), &why));
            }
            if let Some(limit) = above("maxItems", length) {
                causes.push(too_many(path, length, limit));
            }
        }
        Value::Object(map) => {
            let length = map.len() as f64;
            if let Some(limit) = above("maxProperties", length) {
                causes.push(too_many(path, length, limit));
            }
        }
        _ => {}
    }
}

fn too_many(path: &str, length: f64, limit: f64) -> Cause {
    let why = format!("Too many: {length}: must have at most {limit} items");
    Cause::new("FieldValueTooMany", path, why)
}

fn is_of_type(value: &Value, expected: &str) -> bool {
    match expected {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        expected => type_of(value) == expected,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(spec: &Value) -> Vec<(&'static str, String)> {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "required": ["port"],
            "properties": {
                "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                "type": {"type": "string", "enum": ["ClusterSetIP", "Headless"]},
                "ips": {"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 4}},
                "note": {"type": "string", "nullable": true},
            },
        }}});
        let causes = validate(&json!({"metadata": {"name": "w"}, "spec": spec}), &schema);
        causes.into_iter().map(|cause| (cause.reason, cause.field)).collect()
    }

    #[test]
    fn a_valid_object_has_no_causes() {
        let spec = json!({"port": 80, "type": "Headless", "ips": ["::1"], "note": null, "unknown": 1});
        assert!(fields(&spec).is_empty());
    }

    #[test]
    fn each_invalid_field_is_a_cause() {
        let invalid = |reason, field: &str| (reason, field.to_owned());
        assert_eq!(fields(&json!({})), [invalid("FieldValueRequired", "spec.port")]);
        assert_eq!(fields(&json!({"port": "80"})), [invalid("FieldValueTypeInvalid", "spec.port")]);
        assert_eq!(fields(&json!({"port": 0})), [invalid("FieldValueInvalid", "spec.port")]);
        let spec = json!({"port": 1, "type": "None", "ips": ["a", "bbbbb"]});
        let expected = [
            invalid("FieldValueTooMany", "spec.ips"),
            invalid("FieldValueTooLong", "spec.ips[1]"),
            invalid("FieldValueNotSupported", "spec.type"),
        ];
        assert_eq!(fields(&spec), expected);
    }
}
