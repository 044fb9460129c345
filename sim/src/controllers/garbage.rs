//! Garbage collection: an object whose owners are all missing is deleted. Dependents of an owner that is deleted without them lose it first.

use serde_json::{Value, json};

use crate::api::{ORPHAN, State};

/// Takes the dependents from owners that are deleted without them, and lets these end.
pub(super) fn release(state: &mut State) {
    let kinds: Vec<_> = state.kinds().cloned().collect();
    for kind in kinds {
        let going = state.objects(&kind.group, &kind.plural).filter_map(|(key, object)| {
            let metadata = &object.value["metadata"];
            let finalizers = metadata["finalizers"].as_array().filter(|_| object.is_terminating())?;
            finalizers
                .contains(&json!(ORPHAN))
                .then(|| (key.clone(), metadata["uid"].clone(), finalizers.clone()))
        });
        let going: Vec<_> = going.collect();
        for (key, uid, mut finalizers) in going {
            release_from(state, &uid);
            finalizers.retain(|finalizer| finalizer != ORPHAN);
            state.merge(&kind, &key, "", &json!({"metadata": {"finalizers": finalizers}}));
        }
    }
}

fn release_from(state: &mut State, uid: &Value) {
    let dependents: Vec<_> = state.dependents().cloned().collect();
    for ((group, plural), key) in dependents {
        let (Some(kind), Some(object)) = (state.kind(&group, &plural), state.get(&group, &plural, &key))
        else {
            continue;
        };
        let mut owners = object.value["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let all = owners.len();
        owners.retain(|owner| owner["uid"] != *uid);
        if owners.len() < all {
            state.merge(&kind, &key, "", &json!({"metadata": {"ownerReferences": owners}}));
        }
    }
}

pub(super) fn collect(state: &mut State) {
    let dependents: Vec<_> = state.dependents().cloned().collect();
    for ((group, plural), key) in dependents {
        let Some(object) = state.get(&group, &plural, &key) else { continue };
        let owners = object.value["metadata"]["ownerReferences"].as_array();
        let is_owned =
            owners.is_none_or(|owners| owners.iter().any(|owner| is_present(state, &key.0, owner)));
        if let (false, Some(kind)) = (is_owned, state.kind(&group, &plural)) {
            state.delete_key(&kind, &key);
        }
    }
}

/// Reports whether an owner exists. Owners of a kind that is not served count as present, as they may be once it is.
fn is_present(state: &State, namespace: &str, owner: &Value) -> bool {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let Some(kind) = state.kind_of(text("apiVersion"), text("kind")) else { return true };
    let namespace = if kind.namespaced { namespace } else { "" };
    let found = state.get(&kind.group, &kind.plural, &(namespace.to_owned(), text("name").to_owned()));
    found.is_some_and(|found| found.value["metadata"]["uid"] == owner["uid"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::testkit::{WIDGETS, map, send, server, widget};

    #[test]
    fn a_dependent_outlives_an_owner_that_is_deleted_without_it() {
        let server = server();
        server.install(&widget("a", 1));
        let uid = server.all("example.com", "widgets")[0]["metadata"]["uid"].clone();
        let mut owned = map("owned", "web");
        owned["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": uid}]);
        server.install(&owned);
        send(&server, "DELETE", &format!("{WIDGETS}/a"), &json!({"propagationPolicy": "Orphan"}));
        (0..2).for_each(|_| server.tick());
        assert_eq!(server.names("example.com", "widgets"), Vec::<String>::new());
        assert!(server.names("", "configmaps").iter().any(|name| name == "owned"));
    }

    #[test]
    fn an_object_ends_with_its_last_owner() {
        let server = server();
        ["a", "b"].iter().for_each(|name| server.install(&widget(name, 1)));
        let owner = |widget: &serde_json::Value| {
            let metadata = &widget["metadata"];
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": metadata["name"], "uid": metadata["uid"]})
        };
        let owners: Vec<_> = server.all("example.com", "widgets").iter().map(owner).collect();
        let mut owned = map("owned", "web");
        owned["metadata"]["ownerReferences"] = json!(owners);
        server.install(&owned);
        let exists = || server.names("", "configmaps").iter().any(|name| name == "owned");
        server.remove("example.com", "widgets", "shop", "a");
        server.tick();
        assert!(exists());
        server.remove("example.com", "widgets", "shop", "b");
        server.install(&widget("b", 1));
        server.tick();
        assert!(!exists(), "the new `b` has another uid");
    }
}
