//! Odd values in the place of good ones.

use serde_json::{Map, Value, json};

use sim::random::Random;

use super::schema::Schemas;

const TIMES: [&str; 10] = [
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999-23:59",
    "0000-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "2026-01-01T10:00:00+99:99",
    "2026-06-30T23:59:60Z",
    "1970-01-01T00:00:00.000000001Z",
    "2026-01-01 10:00:00Z",
    "2026-01-01T10:00:00z",
    "",
];

const WORDS: [&str; 26] = [
    "",
    " ",
    "-",
    ".",
    "..",
    "/",
    "a/b",
    "None",
    "null",
    "True",
    "0",
    "-1",
    "1e400",
    "10.0.0.256",
    "::ffff:10.0.0.1",
    "fe80::1%eth0",
    "010.1.2.3",
    "127.0.0.1",
    "Ünïcödé",
    "\u{202e}txet",
    "a\nb",
    "{{.}}",
    "kubernetes",
    "freeport",
    "IPv5",
    "\u{1F980}",
];

const NUMBERS: [i64; 12] = [
    0,
    -1,
    1,
    65_535,
    65_536,
    99_999,
    i32::MAX as i64,
    i32::MIN as i64,
    i32::MAX as i64 + 1,
    i64::MAX,
    i64::MIN,
    3600,
];

/// Puts something odd into one to three places of `object`.
pub(crate) fn change(random: &mut Random, schemas: &Schemas, schema: &Value, object: &mut Value) {
    for _ in 0..=random.below(3) {
        descend(random, schemas, schema, object, 0);
    }
}

/// The object's text; now and then with a key that occurs twice.
pub(crate) fn text(random: &mut Random, object: &Value) -> String {
    let text = object.to_string();
    let keys: Vec<_> = text.match_indices("\":").filter_map(|(end, _)| key_before(&text, end)).collect();
    if !random.one_in(12) || keys.is_empty() {
        return text;
    }
    let (at, key) = *random.pick(&keys);
    let twice = format!("{key}:{},", any(random));
    [&text[..at], &twice, &text[at..]].concat()
}

/// The key whose closing quote is at `end`, with its quotes, and where it begins.
fn key_before(text: &str, end: usize) -> Option<(usize, &str)> {
    let begin = text[..end].rfind('"')?;
    let is_key = text[..begin].ends_with(['{', ',']);
    is_key.then(|| (begin, &text[begin..=end]))
}

fn descend(random: &mut Random, schemas: &Schemas, schema: &Value, value: &mut Value, depth: usize) {
    let schema = schemas.resolve(schema);
    let is_here = depth > 0 && random.one_in(4);
    if !is_here && let Some(properties) = schema["properties"].as_object() {
        let names: Vec<_> = properties.keys().filter(|name| is_ours_to_change(name, depth)).collect();
        let there: Vec<_> = names.iter().filter(|name| value.get(name.as_str()).is_some()).copied().collect();
        if !names.is_empty() {
            // What is there is read by somebody.
            let among = if there.is_empty() || random.one_in(3) { &names } else { &there };
            let name = *random.pick(among);
            if !value.is_object() {
                *value = json!({});
            }
            return descend(random, schemas, &properties[name], &mut value[name], depth + 1);
        }
    }
    if !is_here && schema["type"] == "array" {
        if value.as_array().is_none_or(Vec::is_empty) {
            *value = json!([null]);
        }
        let length = value.as_array().map_or(0, Vec::len);
        let at = random.below(length);
        return descend(random, schemas, &schema["items"], &mut value[at], depth + 1);
    }
    if !is_here && schema["additionalProperties"].is_object() {
        let key = key(random, value);
        if !value.is_object() {
            *value = json!({});
        }
        return descend(random, schemas, &schema["additionalProperties"], &mut value[key], depth + 1);
    }
    *value = odd(random, schemas, schema, value);
}

/// The kind has to stay what it is, or the request is of no interest.
fn is_ours_to_change(name: &str, depth: usize) -> bool {
    depth > 0 || !["apiVersion", "kind", "status"].contains(&name)
}

fn key(random: &mut Random, value: &Value) -> String {
    let there: Vec<_> = value.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    if there.is_empty() || random.one_in(3) {
        (*random.pick(&WORDS)).to_owned()
    } else {
        random.pick(&there).clone()
    }
}

/// Something odd of the schema's type, or of another.
fn odd(random: &mut Random, schemas: &Schemas, schema: &Value, value: &Value) -> Value {
    if random.one_in(10) {
        return any(random);
    }
    match schema["type"].as_str() {
        Some("string") if schema["format"] == "date-time" => json!(random.pick(&TIMES)),
        Some("string") => string(random),
        Some("integer" | "number") => json!(random.pick(&NUMBERS)),
        Some("boolean") => json!(!value.as_bool().unwrap_or_default()),
        Some("array") => array(random, schemas, schema, value),
        Some("object") => match random.below(3) {
            0 => json!({}),
            1 => json!({(*random.pick(&WORDS)): any(random)}),
            _ => Value::Null,
        },
        _ => any(random),
    }
}

fn string(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!("x".repeat(*random.pick(&[63, 64, 253, 254, 5000]))),
        1 => json!(random.pick(&TIMES)),
        _ => json!(random.pick(&WORDS)),
    }
}

fn array(random: &mut Random, schemas: &Schemas, schema: &Value, value: &Value) -> Value {
    let first = value
        .get(0)
        .cloned()
        .unwrap_or_else(|| odd(random, schemas, schemas.resolve(&schema["items"]), &Value::Null));
    match random.below(4) {
        0 => json!([]),
        1 => json!([first, first]),
        2 => Value::Array(vec![first; *random.pick(&[17, 101, 1001])]),
        _ => json!([first, any(random)]),
    }
}

/// Anything at all.
fn any(random: &mut Random) -> Value {
    match random.below(7) {
        0 => Value::Null,
        1 => json!(random.pick(&NUMBERS)),
        2 => json!(random.pick(&WORDS)),
        3 => json!([[[]], {}, null]),
        4 => json!({"unknown": {"field": [1, "two", null]}}),
        5 => json!(1.5e300),
        _ => (0..200).fold(json!(1), |inner, _| json!([inner])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_objects_again_and_another_seed_others() {
        let object = json!({"a": {"b": ["c", 1]}, "d": "e"});
        let texts = |seed: u64| {
            let mut random = Random::new(seed);
            (0..100).map(|_| text(&mut random, &object)).collect::<Vec<_>>()
        };
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
        assert!(texts(1).iter().any(|text| text.len() > object.to_string().len()), "a key that occurs twice");
    }
}
