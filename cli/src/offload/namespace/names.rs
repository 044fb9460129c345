//! What the twins would be called: refused before anything is written, where no twin can be called so or the twins that are there are called
//! otherwise.

use api::offload::{namespace::NamespaceOffloadingSpec, twin::twin};
use serde_json::Value;

use super::{super::vanished::Vanished, read};
use crate::{Error, cluster::Cluster};

/// Refuses names that do not fit. A NamespaceOffloading that is there keeps its name.
pub(super) async fn check(
    cluster: &Cluster,
    namespaces: &[String],
    spec: &Value,
    vanished: &Vanished,
) -> Result<(), Error> {
    let spec: NamespaceOffloadingSpec =
        serde_json::from_value(spec.clone()).map_err(|error| Error::Argument(error.to_string()))?;
    let mut wrong = Vec::new();
    for namespace in namespaces {
        if let Some(why) = misnamed(namespace, &spec, vanished)
            && read(cluster, namespace).await?.is_none()
        {
            wrong.push(why);
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(cluster.refuse(format!("{}; nothing was changed", wrong.join("; ")))),
    }
}

/// Why the twins of a Namespace cannot be called as the flags say, as far as the ID of this cluster is known.
fn misnamed(namespace: &str, spec: &NamespaceOffloadingSpec, vanished: &Vanished) -> Option<String> {
    match twin(spec, namespace, vanished.us()?) {
        Err(error) => Some(format!(
            "Namespace {namespace}: {error}, by --namespace-mapping-strategy EnforceSameName, or SelectedName with --remote-namespace-name"
        )),
        Ok(name) => {
            let twins = vanished.in_words(namespace)?;
            let is_other = vanished.names(namespace).all(|twin| twin != name);
            is_other.then(|| {
                format!(
                    "Namespace {namespace} has {twins}, whose NamespaceOffloading vanished, and no other twin beside: by these flags it would \
                     be called {name}; run `{}`",
                    vanished.again(namespace)
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::super::vanished::tests::example, *};

    #[test]
    fn a_name_that_cannot_be_is_refused_with_the_flags_that_work() {
        let why = |namespace: &str, spec: Value| {
            misnamed(namespace, &serde_json::from_value(spec).unwrap(), &example())
        };
        let default = || json!({"clusterSelector": null});
        let same = || json!({"namespaceMappingStrategy": "EnforceSameName"});
        let long = "n".repeat(60);
        let said = why(&long, default()).unwrap();
        assert!(said.contains("65 characters") && said.contains("--remote-namespace-name"), "{said}");
        assert_eq!(why(&long, same()), None);
        let said = why("web", default()).unwrap();
        assert!(said.contains("would be called web-west; run `freeport offload namespace web --"), "{said}");
        assert_eq!(why("web", same()), None);
        assert_eq!(why("shop", default()), None);
        assert!(why("shop", same()).unwrap().ends_with("run `freeport offload namespace shop`"));
        assert_eq!(why("other", same()), None, "nothing is known of a twin");
    }
}
