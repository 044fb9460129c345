//! What travels of a Pod, and what becomes of it at the host.
//!
//! On the raw JSON, so that a field of a Kubernetes newer than we are travels. The home refuses early what cannot travel, by [`content`]: the
//! webhook keeps such a Pod at home, and the member sends none. The host looks again, since a home may be hostile: all by [`spec`].

mod spec;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::spec::DoesNotTravel;
use super::{
    label, seal,
    shadow_pod::{SEALED_MAX, ShadowPodSpec},
};

/// Why a Pod cannot run in another cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotTravel {
    /// A field means something of the home that the host has not.
    #[error(transparent)]
    Field(#[from] DoesNotTravel),
    /// The text of its spec is longer than what travels; it is not read.
    #[error("its spec has {0} bytes as JSON, and sealed no more than {SEALED_MAX} travel")]
    Spec(usize),
    /// What travels of it does not fit a record.
    #[error("sealed it has {0} characters, and at most {SEALED_MAX} travel")]
    TooLong(usize),
    /// It is not JSON that can be read.
    #[error("the Pod cannot be read: {0}")]
    Unreadable(String),
}

/// What is to be sealed of a Pod, given as its API server has it.
///
/// # Errors
/// [`CannotTravel`].
pub fn content(pod: &Value) -> Result<Vec<u8>, CannotTravel> {
    let content = serde_json::to_vec(&travelling(pod)?);
    let content = content.map_err(|error| CannotTravel::Unreadable(error.to_string()))?;
    match seal::sealed_length(content.len()) {
        long if long > SEALED_MAX => Err(CannotTravel::TooLong(long)),
        _ => Ok(content),
    }
}

/// Reads the text of a spec, unless it is longer than what travels.
///
/// # Errors
/// [`CannotTravel::Spec`] and [`CannotTravel::Unreadable`].
pub fn read_spec(text: &str) -> Result<Value, CannotTravel> {
    if text.len() > SEALED_MAX {
        return Err(CannotTravel::Spec(text.len()));
    }
    serde_json::from_str(text).map_err(|error| CannotTravel::Unreadable(error.to_string()))
}

/// What is sealed in a ShadowPod.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default)]
pub struct Travelling {
    /// Labels of the Pod.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Pod.
    pub annotations: BTreeMap<String, String>,
    /// Its spec.
    pub spec: Value,
}

/// What travels of a Pod, given as its API server has it.
///
/// # Errors
/// [`DoesNotTravel`] where a field means something of the home that the host has not.
pub fn travelling(pod: &Value) -> Result<Travelling, DoesNotTravel> {
    let map = |field: &str| {
        let map = pod.pointer(&format!("/metadata/{field}"));
        map.and_then(|map| BTreeMap::<String, String>::deserialize(map).ok()).unwrap_or_default()
    };
    Ok(Travelling {
        labels: map("labels").into_iter().filter(|(key, _)| !is_of_the_cluster(key, &[])).collect(),
        annotations: map("annotations")
            .into_iter()
            .filter(|(key, _)| !is_of_the_cluster(key, &["kubernetes.io"]))
            .collect(),
        spec: spec::travelling(pod.get("spec").unwrap_or(&Value::Null))?,
    })
}

impl Travelling {
    /// The Pod that the host makes for this record: with the labels by which it is known, and for Nodes that are none of other
    /// clusters alone.
    ///
    /// # Errors
    /// [`DoesNotTravel`]: the home should not have sent it.
    pub fn pod(&self, record: &ShadowPodSpec) -> Result<Value, DoesNotTravel> {
        let own = [
            (label::MANAGED_BY, label::SHADOW_POD),
            (label::ORIGIN, &record.origin),
            (label::DESTINATION, &record.destination),
            (label::ORIGIN_UID, &record.uid),
        ];
        let mut labels = self.labels.clone();
        labels.retain(|key, _| !is_of_the_cluster(key, &[]));
        labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let mut annotations = self.annotations.clone();
        annotations.retain(|key, _| !is_of_the_cluster(key, &["kubernetes.io"]));
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": record.pod, "namespace": record.namespace, "labels": labels, "annotations": annotations},
            "spec": spec::at_the_host(&self.spec)?,
        }))
    }
}

/// Whether a key means something in the one cluster only: those of offloading, and of these domains.
fn is_of_the_cluster(key: &str, domains: &[&str]) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return false };
    let is_in = |domain: &&str| {
        prefix.strip_suffix(*domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domains.iter().chain(&["liqo.io", "multicluster.freeport.dev"]).any(is_in) && key != DEFAULT_CONTAINER
}

/// Annotation of a Pod that kubectl reads: which container is meant where none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
