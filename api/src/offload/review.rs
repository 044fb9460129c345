//! What the webhook changes of a Pod, so that the scheduler binds it where its Namespace's NamespaceOffloading wants it.
//!
//! Read on the raw JSON and answered as a JSON patch of `/spec/affinity` and `/spec/tolerations`: what we do not know of a Pod stays.

mod terms;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use self::terms::{Imposed, Required, imposed};
use super::{
    label,
    namespace::{NamespaceOffloadingSpec, PodOffloadingStrategy},
};

/// Most terms of required node affinity that a Pod gets.
pub const TERMS_MAX: usize = 100;

/// Why a Pod cannot be created, in a sentence for who creates it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The Namespace has the label, but says nothing about its Pods: they would stay in the wrong place for life.
    #[error(
        "Namespace {namespace} has label {label}=true but no NamespaceOffloading, so nobody knows where its Pods may run: create one \
         (freeport offload namespace {namespace}), or take the label off",
        label = label::SCHEDULING_ENABLED
    )]
    NotOffloaded {
        /// The Namespace.
        namespace: String,
    },
    /// The kind has to come back first.
    #[error(
        "Namespace {namespace} has label {label}=true, and which Pods may run where is not known: CustomResourceDefinition \
         namespaceoffloadings.offloading.liqo.io is missing; run `freeport join --offload` again, then `freeport status`, which has what \
         offloads the Namespace again",
        label = label::SCHEDULING_ENABLED
    )]
    KindMissing {
        /// The Namespace.
        namespace: String,
    },
    /// The label has to go first; the member takes it off.
    #[error(
        "NamespaceOffloading {namespace}/offloading is being deleted, and label {label} of the Namespace is still there: try again in a \
         moment; if freeport-member does not run, take the label off, and new Pods run in this cluster",
        label = label::SCHEDULING_ENABLED
    )]
    Ending {
        /// The Namespace.
        namespace: String,
    },
    /// The NamespaceOffloading has to be mended.
    #[error(
        "NamespaceOffloading {namespace}/offloading cannot be read, so nobody knows where its Pods may run: {problem}"
    )]
    Unreadable {
        /// The Namespace.
        namespace: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The Pod or the NamespaceOffloading has to have fewer terms.
    #[error(
        "the Pod has {pod} terms of required node affinity and the NamespaceOffloading brings {offloading}, which makes {product} \
         together, and at most {TERMS_MAX} are possible: use fewer terms in either"
    )]
    TooManyTerms {
        /// Terms of the Pod.
        pod: usize,
        /// Terms that the strategy makes of the selector.
        offloading: usize,
        /// Terms that the Pod would have.
        product: usize,
    },
    /// No API server sends this.
    #[error("this is no Pod: {0}")]
    NotAPod(String),
}

/// The patch (RFC 6902) that makes a new Pod follow the NamespaceOffloading of its Namespace; empty where it needs none.
///
/// Afterwards the Pod fits a node if it did before, and the strategy allows that node: `Local` a node that is not virtual, `Remote`
/// a virtual one that is selected, `LocalAndRemote` either. Reviewed again, it needs no patch.
///
/// Not changed are Pods that are bound or mirror one of a kubelet, those of DaemonSets (their controller chose the node), and those with
/// RuntimeClass `liqo`, which run on virtual nodes by themselves.
pub fn review(pod: &Value, offloading: &NamespaceOffloadingSpec) -> Result<Vec<Value>, Denial> {
    let spec = pod.get("spec").filter(|spec| spec.is_object());
    let spec = spec.ok_or_else(|| Denial::NotAPod("it has no spec".into()))?;
    if offloading.pod_offloading_strategy == PodOffloadingStrategy::Local || is_placed(pod, spec) {
        return Ok(Vec::new());
    }
    let affinity = match imposed(offloading) {
        Some(imposed) => affinity(spec, &imposed)?,
        None => None,
    };
    Ok(affinity.into_iter().chain(toleration(spec)).collect())
}

/// [`review`] of a Pod that cannot travel: `LocalAndRemote` keeps it on Nodes of this cluster. With `Remote` it may run nowhere else, so it
/// follows the strategy as every Pod, and says at the virtual node why it does not run.
pub fn review_untravelling(pod: &Value, offloading: &NamespaceOffloadingSpec) -> Result<Vec<Value>, Denial> {
    let spec = pod.get("spec").filter(|spec| spec.is_object() && !is_placed(pod, spec));
    match (offloading.pod_offloading_strategy, spec) {
        (PodOffloadingStrategy::LocalAndRemote, Some(spec)) => {
            Ok(affinity(spec, &[Imposed::at_home()])?.into_iter().collect())
        }
        _ => review(pod, offloading),
    }
}

/// Whether somebody else decides where a Pod with this `spec` runs: no strategy does.
pub fn is_placed(pod: &Value, spec: &Value) -> bool {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let metadata = |field: &str| pod.get("metadata").and_then(|metadata| metadata.get(field));
    let is_mirror = metadata("annotations").is_some_and(|all| all.get(label::MIRROR_POD).is_some());
    let owners = metadata("ownerReferences").and_then(Value::as_array);
    !text("nodeName").is_empty()
        || text("runtimeClassName") == label::RUNTIME_CLASS
        || is_mirror
        || owners.into_iter().flatten().any(is_daemon_set)
}

fn is_daemon_set(owner: &Value) -> bool {
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    owner.get("controller") == Some(&Value::Bool(true))
        && text("kind") == "DaemonSet"
        && text("apiVersion").starts_with("apps/")
}

/// The way to a Pod's required node affinity.
const AFFINITY: [&str; 4] =
    ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];

/// Sets the terms that are missing, with no more around them than is missing too.
fn affinity(spec: &Value, imposed: &[Imposed]) -> Result<Option<Value>, Denial> {
    let mut present = spec;
    let mut depth = 0;
    while let Some(next) =
        AFFINITY.get(depth).and_then(|field| present.get(field)).filter(|next| !next.is_null())
    {
        (present, depth) = (next, depth + 1);
    }
    let terms = if depth == AFFINITY.len() { present } else { &Value::Null };
    let Some(terms) = Required::of(terms)?.with(imposed)? else { return Ok(None) };
    let (there, missing) = AFFINITY.split_at(depth.min(AFFINITY.len() - 1));
    let Some((first, inner)) = missing.split_first() else { return Ok(None) };
    let path: String = there.iter().chain([first]).map(|field| format!("/{field}")).collect();
    let value = inner.iter().rev().fold(Value::Array(terms), |value, field| json!({ (*field): value }));
    Ok(Some(add(&format!("/spec{path}"), &value)))
}

/// Lets it onto virtual nodes, if nothing does.
fn toleration(spec: &Value) -> Option<Value> {
    let ours = json!({"key": label::NOT_ALLOWED, "operator": "Exists", "effect": label::NO_EXECUTE});
    match spec.get("tolerations").and_then(Value::as_array) {
        Some(all) if all.iter().any(is_tolerated_by) => None,
        Some(_) => Some(add("/spec/tolerations/-", &ours)),
        None => Some(add("/spec/tolerations", &json!([ours]))),
    }
}

/// Whether a toleration is as ours or broader, and for as long as the Pod lives.
fn is_tolerated_by(toleration: &Value) -> bool {
    let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
    text("operator") == "Exists"
        && matches!(text("key"), "" | label::NOT_ALLOWED)
        && matches!(text("effect"), "" | label::NO_EXECUTE)
        && toleration.get("tolerationSeconds").is_none_or(Value::is_null)
}

fn add(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}
