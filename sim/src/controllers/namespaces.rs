//! Namespaces: each has ServiceAccount `default` and ConfigMap `kube-root-ca.crt`; of a terminating one everything is deleted, then the
//! Namespace itself.

use api::name::ROOT_CA;
use serde_json::json;

use crate::api::State;

fn key(name: &str) -> (String, String) {
    (String::new(), name.to_owned())
}

/// Names of the Namespaces that are terminating, or are not.
fn names(state: &State, terminating: bool) -> Vec<String> {
    let all = state.objects("", "namespaces").filter(|(_, object)| object.is_terminating() == terminating);
    all.map(|((_, name), _)| name.clone()).collect()
}

/// Creates what each Namespace has.
pub(super) fn fill(state: &mut State) {
    for namespace in names(state, false) {
        let has = |state: &State, plural: &str, name: &str| {
            state.get("", plural, &(namespace.clone(), name.to_owned())).is_some()
        };
        if !has(state, "serviceaccounts", "default") {
            let metadata = json!({"name": "default", "namespace": namespace});
            state
                .install(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}), false);
        }
        if !has(state, "configmaps", ROOT_CA) {
            let metadata = json!({"name": ROOT_CA, "namespace": namespace});
            let data = json!({"ca.crt": state.authority()});
            state.install(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
                false,
            );
        }
    }
}

/// Deletes the contents of terminating Namespaces, and those that are empty.
pub(super) fn empty(state: &mut State) {
    let Some(kind) = state.kind("", "namespaces") else { return };
    for namespace in names(state, true) {
        let kinds: Vec<_> = state.kinds().filter(|kind| kind.namespaced).cloned().collect();
        let mut is_empty = true;
        for kind in kinds {
            let keys: Vec<_> = state.within(&kind, &namespace).map(|(key, _)| key.clone()).collect();
            for key in keys {
                is_empty &= !state.delete_key(&kind, &key);
            }
        }
        if let (true, Some(object)) = (is_empty, state.get("", "namespaces", &key(&namespace)).cloned()) {
            state.erase(&kind, key(&namespace), object);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::api::testkit::{WIDGETS, patch, server, widget};

    #[test]
    fn each_namespace_has_an_account_and_the_authority() {
        let server = server();
        server.tick();
        let maps = server.all("", "configmaps");
        assert_eq!(maps.len(), server.names("", "namespaces").len());
        assert!(maps.iter().all(|map| map["data"]["ca.crt"] == "certificate"), "{maps:?}");
        let version = server.version();
        server.tick();
        assert_eq!(server.version(), version);
    }

    #[test]
    fn a_namespace_ends_after_its_contents() {
        let server = server();
        let mut held = widget("w", 1);
        held["metadata"]["finalizers"] = json!(["example.com/a"]);
        server.install(&held);
        server.remove("", "namespaces", "", "shop");
        server.tick();
        assert!(server.uid("namespaces", "shop").is_some(), "a Widget has a finalizer");
        patch(&server, "merge", &format!("{WIDGETS}/w"), &json!({"metadata": {"finalizers": Value::Null}}));
        server.tick();
        assert_eq!(server.uid("namespaces", "shop"), None);
    }
}
