//! What becomes of each entry of a map, and of each twin: pure.

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    label as general,
    offload::{
        consent::{Refusal, allows_name, has_place},
        label,
        map::NamespaceMapSpec,
        peer::Incoming,
        twin::check_twin,
    },
};
use kube::{ResourceExt, api::ObjectMeta};

use crate::offload::view::Namespace;

/// What entries are held against.
pub(super) struct Around<'a> {
    pub(super) home: &'a str,
    /// Name of the map.
    pub(super) record: &'a str,
    /// The consent to that home, or why there is none.
    pub(super) incoming: Result<&'a Incoming, Refusal>,
    /// The twins of that home by that map.
    pub(super) twins: &'a [Namespace],
    /// Whether there is a Namespace of this name, whoever made it.
    pub(super) exists: &'a dyn Fn(&str) -> bool,
    /// Namespaces of the system, as far as they matter to a name.
    pub(super) system: &'a dyn Fn(&str) -> BTreeSet<String>,
}

/// Why there is no twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What becomes of one entry, or of a twin that no entry desires.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Create(Namespace),
    /// It is there; what is ours to say of it is to be as wanted.
    Mend {
        have: Namespace,
        want: Namespace,
    },
    Refuse {
        twin: String,
        why: Refused,
    },
    /// It is being deleted, and has to be gone before it can be made anew.
    Wait {
        twin: String,
    },
    /// It is there, and its home neither desires nor withdraws it.
    Keep {
        twin: String,
    },
    Delete(Namespace),
}

/// The steps towards what the map of a home says, by the names of the Namespaces at home. A twin is deleted if its home withdraws it, and not
/// because the map does not have its key, or the key names another one: no decision of a home's user is behind that.
pub(super) fn plan(spec: &NamespaceMapSpec, around: &Around<'_>) -> Vec<(String, Step)> {
    let desired = &spec.desired_mapping;
    let (mut steps, mut has, mut kept) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    for twin in around.twins {
        let Some((_, original)) = twin.twin_of(around.record) else { continue };
        // One that is going will be none.
        if !twin.is_going() {
            has.insert(original, twin.name_any());
        }
        if desired.contains_key(original) {
            continue;
        }
        if spec.withdraws(original) {
            steps.push((original.to_owned(), Step::Delete(twin.clone())));
        } else if kept.insert(original) {
            let name = twin.name_any();
            let step = if twin.is_going() { Step::Wait { twin: name } } else { Step::Keep { twin: name } };
            steps.push((original.to_owned(), step));
        }
    }
    let mut made = BTreeSet::new();
    for (namespace, twin) in desired {
        // Two Namespaces cannot have one twin.
        let step = match made.contains(twin) {
            true => {
                let home = around.home;
                refuse(twin, "NotOurs", format!("{twin} is the twin of another Namespace of cluster {home}"))
            }
            false => {
                let other = has.get(namespace.as_str()).map(String::as_str);
                entry((namespace, twin), other, around.twins.len() + made.len(), around)
            }
        };
        if matches!(step, Step::Create(_)) {
            made.insert(twin);
        }
        steps.push((namespace.clone(), step));
    }
    steps
}

fn refuse(twin: &str, reason: &'static str, message: String) -> Step {
    Step::Refuse { twin: twin.to_owned(), why: Refused { reason, message } }
}

fn not_ours(namespace: &str, twin: &str, around: &Around<'_>) -> Step {
    let home = around.home;
    refuse(
        twin,
        "NotOurs",
        format!("Namespace {twin} exists and was not made for {namespace} of cluster {home}"),
    )
}

/// `other`: the twin that the Namespace has, if this one is not there.
fn entry((namespace, twin): (&str, &str), other: Option<&str>, count: usize, around: &Around<'_>) -> Step {
    let is_its_own = |have: &&Namespace| {
        have.name_any() == twin && have.twin_of(around.record) == Some((around.home, namespace))
    };
    if let Some(have) = around.twins.iter().find(is_its_own) {
        return match have.is_going() {
            true => Step::Wait { twin: twin.to_owned() },
            false => Step::Mend { want: mended(have, around), have: have.clone() },
        };
    }
    if let Some(other) = other {
        let message = format!(
            "{namespace} has twin {other} here, whose name does not change; to have {twin}, end its offloading first"
        );
        return refuse(twin, "NameChanged", message);
    }
    // Before what else is here is told: a home learns nothing of names that it may not have.
    let named = around.incoming.clone().and_then(|incoming| {
        allows_name(incoming, around.home, namespace, twin)?;
        Ok(incoming)
    });
    let incoming = match named {
        Ok(incoming) => incoming,
        Err(error) => return refuse(twin, error.reason(), error.to_string()),
    };
    if let Err(error) = check_twin(twin, &(around.system)(twin)) {
        return refuse(twin, error.reason(), error.to_string());
    }
    if (around.exists)(twin) {
        return not_ours(namespace, twin, around);
    }
    match has_place(incoming, around.home, count) {
        Ok(()) => Step::Create(made(namespace, twin, around)),
        Err(error) => refuse(twin, error.reason(), error.to_string()),
    }
}

fn made(namespace: &str, twin: &str, around: &Around<'_>) -> Namespace {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let annotations =
        [pair(label::MANAGED_BY_NAMESPACE_MAP, around.record), pair(label::ORIGINAL_NAME, namespace)];
    let metadata = ObjectMeta {
        name: Some(twin.to_owned()),
        labels: Some(labels(around).collect()),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata }
}

/// The twin with its labels, and the level of Pod Security that is allowed now; without a consent it has the one that it had.
fn mended(have: &Namespace, around: &Around<'_>) -> Namespace {
    let mut want = have.clone();
    want.metadata.labels.get_or_insert_default().extend(labels(around));
    want
}

fn labels(around: &Around<'_>) -> impl Iterator<Item = (String, String)> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let security = around
        .incoming
        .as_ref()
        .ok()
        .map(|incoming| pair(label::POD_SECURITY, incoming.pod_security.as_str()));
    [pair(general::MANAGED_BY, general::FREEPORT), pair(label::REMOTE_CLUSTER_ID, around.home)]
        .into_iter()
        .chain(security)
}
