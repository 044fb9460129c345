//! Odd objects for unit tests of whatever lists and watches: no object may stop a list. Those that go through a real API server are in
//! `e2e`.

use std::error::Error;

use kube::core::ObjectList;
use proptest::{collection, option, prelude::*, sample::select};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Times at the limits of what Go can say. Not all of them can be held in Rust.
const TIMES: [&str; 4] = [
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00+23:59",
    "2026-01-01T10:00:00+99:99",
    "2026-01-01T10:00:00.999999Z",
];

/// Whatever JSON can say, under names of these fields and others: of a kind that an API server knows by a CRD, which may be an older one
/// or somebody else's.
pub fn anything(fields: &'static [&'static str]) -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        select(&TIMES[..]).prop_map(Value::from),
    ];
    let field = prop_oneof![8 => select(fields).prop_map(str::to_owned), 1 => "[a-z]{0,4}"];
    let nested = leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            collection::btree_map(field.clone(), inner, 0..5).prop_map(|map| json!(map)),
        ]
    });
    nested.boxed()
}

/// This object with other values of the same types, and without some fields other than those that are `always` there: of a kind
/// whose types every API server checks.
pub fn like(good: &Value, always: &'static [&'static str]) -> BoxedStrategy<Value> {
    match good {
        Value::Null => Just(Value::Null).boxed(),
        Value::Bool(_) => any::<bool>().prop_map(Value::from).boxed(),
        Value::Number(_) => any::<i32>().prop_map(Value::from).boxed(),
        Value::String(text) if TIMES.contains(&text.as_str()) => {
            select(&TIMES[..]).prop_map(Value::from).boxed()
        }
        Value::String(_) => ".{0,8}".prop_map(Value::from).boxed(),
        Value::Array(items) => {
            let item = items.first().map_or_else(|| Just(json!({})).boxed(), |item| like(item, always));
            collection::vec(item, 0..4).prop_map(Value::from).boxed()
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let (name, value) = (name.clone(), like(value, always));
                let value = match always.contains(&name.as_str()) {
                    true => value.prop_map(Some).boxed(),
                    false => option::weighted(0.8, value).boxed(),
                };
                value.prop_map(move |value| Some((name.clone(), value?))).boxed()
            };
            let fields: Vec<_> = fields.iter().map(field).collect();
            fields
                .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
                .boxed()
        }
    }
}

/// Decodes a list of an object with these fields beside its metadata, and of another one of the same kind.
///
/// # Errors
/// If the list does not decode, or an object is missing in it.
pub fn list<V: DeserializeOwned + Clone>(fields: &Value) -> Result<Vec<V>, Box<dyn Error>> {
    let with_name = |name: &str| {
        let mut object = fields.clone();
        object["metadata"] = json!({"name": name, "managedFields": [{"manager": "x", "time": TIMES[0]}]});
        object
    };
    let list = json!({"metadata": {"resourceVersion": "1"}, "items": [with_name("odd"), with_name("other")]});
    // As text, which is how it arrives: some types keep text of what they do not decode.
    let list: ObjectList<V> = serde_json::from_str(&list.to_string())?;
    match list.items.len() {
        2 => Ok(list.items),
        length => Err(format!("{length} of 2 objects are in the list").into()),
    }
}

/// [`list`] of an object that says `odd` wherever it can.
///
/// # Errors
/// As those of [`list`].
pub fn everywhere<V: DeserializeOwned + Clone>(odd: &Value) -> Result<Vec<V>, Box<dyn Error>> {
    list(&json!({"spec": odd, "status": odd, "value": odd, "data": odd}))
}
