//! What has to be sent to turn one object into another, and what of it did not arrive: pure.

use api::label;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The first field the API server has thrown away. It may default, and change what is there; but what was wanted is there.
pub(super) fn pruned<P: Serialize>(answer: &P, wanted: &Value) -> Option<String> {
    // What we cannot read of the answer is for the watch to tell.
    let answer = serde_json::to_value(answer).ok()?;
    missing(&answer, wanted.as_object()?, |key| key != "metadata" && key != "status")
}

/// Path of the first field of `wanted` that is not in `answer`. Go leaves empty values out, so those are not missed.
fn missing(answer: &Value, wanted: &Map<String, Value>, ours: fn(&str) -> bool) -> Option<String> {
    let empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    wanted.iter().filter(|(key, value)| ours(key) && !empty(value)).find_map(|(key, wanted)| {
        match (answer.get(key).filter(|answer| !answer.is_null()), wanted) {
            (None, _) => Some(key.clone()),
            (Some(answer), Value::Object(wanted)) => {
                missing(answer, wanted, |_| true).map(|path| format!("{key}.{path}"))
            }
            (Some(Value::Array(answers)), Value::Array(wanted)) if answers.len() == wanted.len() => {
                let pairs = answers.iter().zip(wanted);
                pairs
                    .filter_map(|(a, w)| missing(a, w.as_object()?, |_| true))
                    .next()
                    .map(|p| format!("{key}[].{p}"))
            }
            _ => None,
        }
    })
}

/// What a merge patch sets, without what it removes.
pub(super) fn without_nulls(patch: &Value) -> Value {
    let Value::Object(fields) = patch else { return patch.clone() };
    let set = fields.iter().map(|(key, value)| (key.clone(), without_nulls(value)));
    let is_set =
        |value: &Value| !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty());
    Value::Object(set.filter(|(_, value)| is_set(value)).collect())
}

/// The merge patch that turns `have` into `want`; `None` when there is nothing to turn.
///
/// Both are views of what we own, so what `want` lacks goes away; but metadata belongs to many, and there only our keys
/// are set, and only those go that an annotation says to be ours ([`label::EXPORTED_METADATA`]). Finalizers and owners, which decide
/// how long an object lives, all go where `want` says that there are none.
pub(super) fn difference(have: &Value, want: &Value) -> Option<Map<String, Value>> {
    let (Value::Object(have), Value::Object(want)) = (have, want) else {
        return None;
    };
    let mut patch = Map::new();
    for field in ["labels", "annotations"] {
        let in_metadata = |object: &'_ Map<String, Value>| {
            object
                .get("metadata")
                .and_then(|metadata| metadata.get(field)?.as_object().cloned())
                .unwrap_or_default()
        };
        let (want, had) = (in_metadata(want), in_metadata(have));
        let gone =
            noted(have, field).into_iter().filter(|key| had.contains_key(key) && !want.contains_key(key));
        let mut changed: Map<_, _> = gone.map(|key| (key, Value::Null)).collect();
        changed.extend(want.into_iter().filter(|(key, value)| had.get(key) != Some(value)));
        if !changed.is_empty() {
            patch.entry("metadata").or_insert_with(|| json!({}))[field] = Value::Object(changed);
        }
    }
    for field in ["finalizers", "ownerReferences"] {
        let in_metadata =
            |object: &Map<String, Value>| object.get("metadata")?.get(field)?.as_array().cloned();
        let want = in_metadata(want);
        if want.is_some_and(|want| want.is_empty() && in_metadata(have).is_some_and(|had| !had.is_empty())) {
            patch.entry("metadata").or_insert_with(|| json!({}))[field] = json!([]);
        }
    }
    patch.extend(turn(have, want, |key| key != "metadata" && key != "status"));
    (!patch.is_empty()).then_some(patch)
}

/// Keys of labels or annotations that the object says to be ours; the note itself is one.
fn noted(object: &Map<String, Value>, field: &str) -> Vec<String> {
    let note = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations")?.get(label::EXPORTED_METADATA)?.as_str());
    let Some(note) = note.and_then(|note| serde_json::from_str::<Value>(note).ok()) else { return vec![] };
    let keys = note.get(field).and_then(Value::as_array).into_iter().flatten();
    let keys = keys.filter_map(|key| key.as_str().map(str::to_owned));
    keys.chain((field == "annotations").then(|| label::EXPORTED_METADATA.to_owned())).collect()
}

fn turn(have: &Map<String, Value>, want: &Map<String, Value>, ours: fn(&str) -> bool) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, wanted) in want.iter().filter(|(key, _)| ours(key)) {
        match (have.get(key), wanted) {
            (Some(had), wanted) if had == wanted => {}
            (Some(Value::Object(had)), Value::Object(wanted)) => {
                patch.insert(key.clone(), Value::Object(turn(had, wanted, |_| true)));
            }
            _ => drop(patch.insert(key.clone(), wanted.clone())),
        }
    }
    for key in have.keys().filter(|key| ours(key) && !want.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_patch_sets_has_to_be_kept_and_what_it_removes_not() {
        let patch = json!({"spec": {"kept": {"a": null, "b": 7}, "removed": {"c": null}, "gone": null}});
        let set = without_nulls(&patch);
        assert_eq!(set, json!({"spec": {"kept": {"b": 7}}}));
        assert_eq!(pruned(&json!({"spec": {"kept": {"b": 7}}}), &set), None);
        assert_eq!(pruned(&json!({"spec": {}}), &set), Some("spec.kept".to_owned()));
    }

    #[test]
    fn only_the_difference_travels_and_other_peoples_metadata_stays() {
        let have = json!({
            "metadata": {"name": "a", "resourceVersion": "1", "labels": {"ours": "1", "theirs": "x"}},
            "spec": {"type": "ClusterIP", "ports": [{"port": 80}], "sessionAffinity": "ClientIP"},
        });
        let want = json!({
            "metadata": {"name": "a", "labels": {"ours": "2"}},
            "spec": {"type": "ClusterIP", "ports": [{"port": 80}, {"port": 81}]},
        });
        assert_eq!(
            Value::Object(difference(&have, &want).unwrap()),
            json!({
                "metadata": {"labels": {"ours": "2"}},
                "spec": {"ports": [{"port": 80}, {"port": 81}], "sessionAffinity": null},
            })
        );
        let same = json!({"metadata": {"labels": {"ours": "1"}}, "spec": have["spec"]});
        assert_eq!(difference(&have, &same), None);
    }

    #[test]
    fn finalizers_and_owners_go_where_there_have_to_be_none() {
        let have = json!({"metadata": {"finalizers": ["example.com/x"], "ownerReferences": [{"name": "p"}]}});
        let want = json!({"metadata": {"finalizers": [], "ownerReferences": []}});
        assert_eq!(Value::Object(difference(&have, &want).unwrap()), want);
        assert_eq!(difference(&have, &json!({"metadata": {"name": "a"}})), None, "not ours to say");
        assert_eq!(difference(&have, &json!({"metadata": {"finalizers": ["example.com/y"]}})), None);
        assert_eq!(difference(&json!({"metadata": {"name": "a"}}), &want), None);
    }

    #[test]
    fn what_was_noted_as_ours_goes_from_metadata_and_nothing_else() {
        let note = r#"{"labels": ["ours", "kept", "gone already"], "annotations": ["ours"]}"#;
        let have = json!({"metadata": {
            "labels": {"ours": "1", "kept": "1", "theirs": "x"},
            "annotations": {"ours": "1", "theirs": "x", label::EXPORTED_METADATA: note},
        }});
        let want = json!({"metadata": {"labels": {"kept": "1"}}});
        assert_eq!(
            Value::Object(difference(&have, &want).unwrap()),
            json!({"metadata": {
                "labels": {"ours": null},
                "annotations": {"ours": null, label::EXPORTED_METADATA: null},
            }})
        );
        assert_eq!(difference(&json!({"metadata": {"labels": {"theirs": "x"}}}), &want["nothing"]), None);
    }

    #[test]
    fn what_a_server_throws_away_is_noticed_and_what_it_adds_is_not() {
        let wanted = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80, "name": "p"}], "gone": {}, "n": 0}});
        let missed = |answer: Value| missing(&answer, wanted.as_object().unwrap(), |key| key != "metadata");
        assert_eq!(
            missed(json!({"spec": {"ports": [{"port": 80, "name": "p", "nodePort": 1}], "n": 1, "more": 2}})),
            None
        );
        assert_eq!(missed(json!({"spec": {"ports": [{"port": 80}], "n": 0}})).unwrap(), "spec.ports[].name");
        assert_eq!(missed(json!({"spec": {"ports": [], "n": 0}})), None, "changed, not thrown away");
        assert_eq!(missed(json!({})).unwrap(), "spec");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), any::<u8>().prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// RFC 7386, as the API server does it.
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            return *target = patch.clone();
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (key, value) in patch {
            if value.is_null() {
                target.as_object_mut().unwrap().remove(key);
            } else {
                merge(&mut target[key.as_str()], value);
            }
        }
    }

    proptest! {
        #[test]
        fn the_patch_turns_one_into_the_other(have in value(), want in value()) {
            let (have, want) = (json!({"spec": have}), json!({"spec": want}));
            let mut turned = have.clone();
            if let Some(patch) = difference(&have, &want) {
                merge(&mut turned, &Value::Object(patch));
            }
            prop_assert_eq!(turned, want);
        }
    }
}
