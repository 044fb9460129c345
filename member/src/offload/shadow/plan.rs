//! What becomes of each Pod that another cluster wants to run here, and what is said of it: pure.

use api::{
    label as general,
    offload::{
        consent::Refusal,
        pod_status::PodState,
        requests::Requests,
        seal::{self, PrivateKey},
        shadow_pod::{ShadowPodSpec, ShadowPodStatus},
        travel::Travelling,
    },
};
use kube::{ResourceExt, api::ObjectMeta};
use serde_json::json;

use crate::offload::{
    index::ShadowEntry,
    room::RECORDS_MAX,
    view::{HostedPod, NewPod, PeerPod},
};

/// What a record is held against.
pub(super) struct Around<'a> {
    pub(super) us: &'a str,
    /// Why no Pods of its home may come.
    pub(super) refusal: Option<Refusal>,
    /// Whether its Namespace was made for that home. In any other nothing is that home's.
    pub(super) is_of_home: bool,
    /// Whether its Namespace is a twin of that home, and stays.
    pub(super) has_twin: bool,
    /// Whether what the home says is of after a restore of the Common Area.
    pub(super) is_current: bool,
    /// Our key, if it is known.
    pub(super) key: Option<&'a PrivateKey>,
}

/// Why there is no Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { reason: refusal.reason(), message: refusal.to_string() }
    }
}

/// What is to be done about one record.
#[derive(Debug)]
pub(super) enum Step {
    Create {
        new: Box<NewPod>,
        /// Whether a Pod without labels that has its name can be of no other record.
        is_first: bool,
    },
    /// It is there; its labels and annotations are to be so.
    Keep(Box<HostedPod>),
    /// With these seconds to end by itself.
    Delete(Box<HostedPod>, Option<u32>),
    /// It is to be deleted and is not known to be there: has it gone?
    Confirm(Box<HostedPod>),
    /// It is to be deleted, and nothing of it can be there.
    Gone,
    Refuse(Refused),
    Leave,
}

/// A record, and what is to be done about it.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub(super) record: &'a PeerPod,
    pub(super) spec: &'a ShadowPodSpec,
    /// Its Pod, if that is there.
    pub(super) own: Option<&'a HostedPod>,
    /// Whether it is refused, and its home has no twin of this name: that one may ask as often as it likes.
    pub(super) is_strangers: bool,
    pub(super) step: Step,
}

/// The steps of all records about one Namespace and name. Who has the twin comes first: nobody waits for what others ask.
pub(super) fn plan<'a, 'b>(
    entry: &'a ShadowEntry,
    around: impl Fn(&ShadowPodSpec) -> Around<'b>,
) -> Vec<Planned<'a>> {
    let mut all: Vec<_> = entry.asked().map(|(record, spec)| (record, spec, around(spec))).collect();
    all.sort_by_key(|(_, _, around)| !around.has_twin);
    let may_come = |spec: &ShadowPodSpec, around: &Around<'_>| {
        spec.deletion.is_none() && around.has_twin && around.refusal.is_none()
    };
    // Of several the home has made the last one last.
    let asked = all.iter().filter(|(_, spec, around)| may_come(spec, around));
    let next = asked.max_by_key(|(record, _, _)| (record.creation_timestamp(), record.name_any()));
    let next = next.map(|(record, _, _)| record.name_any());
    // Somebody took off the label that says for which the Pod was made: others came only after it.
    let made_for = all.iter().filter(|(record, _, around)| around.is_of_home && !is_deleted(record));
    let first = made_for.min_by_key(|(record, _, _)| (record.creation_timestamp(), record.name_any()));
    let first = first.map(|(record, _, _)| record.name_any());
    let planned = |(record, spec, around): (&'a PeerPod, &'a ShadowPodSpec, Around<'b>)| {
        let is_next = next.as_ref() == Some(&record.name_any());
        let pod = entry.pod.as_ref();
        let is_first = first.as_ref() == Some(&record.name_any());
        let own = pod.filter(|pod| around.is_of_home && pod.is_of(spec) && (pod.is_labelled() || is_first));
        let step = step(record, spec, (pod.is_some(), own), (is_next, is_first), &around);
        let is_strangers = !around.is_of_home && matches!(step, Step::Refuse(_));
        Planned { record, spec, own, is_strangers, step }
    };
    all.into_iter().map(planned).collect()
}

fn step(
    record: &PeerPod,
    spec: &ShadowPodSpec,
    (is_taken, own): (bool, Option<&HostedPod>),
    (is_next, is_first): (bool, bool),
    around: &Around<'_>,
) -> Step {
    if spec.destination != around.us {
        return Step::Leave;
    }
    let status = record.status.0.as_ref().ok();
    if spec.deletion.is_some() {
        return match own {
            Some(pod) if is_due(pod, spec) => Step::Delete(Box::new(pod.clone()), grace(spec)),
            None if is_deleted(record) => Step::Leave,
            None if around.is_of_home => Step::Confirm(Box::new(at(spec))),
            None => Step::Gone,
            Some(_) => Step::Leave,
        };
    }
    if let Some(pod) = own {
        // What cannot be opened any more, because our key is another now, stays as it is.
        let want = made(spec, around.key).map_or_else(|_| pod.clone(), HostedPod::from);
        return Step::Keep(Box::new(want));
    }
    if status.is_some_and(|status| is_final(status.pod.as_ref())) || !around.is_current {
        return Step::Leave;
    }
    if let Some(refusal) = &around.refusal {
        return Step::Refuse(refusal.clone().into());
    }
    if !around.has_twin {
        return Step::Refuse(no_twin(spec));
    }
    if record.is_over() {
        return Step::Refuse(too_many(spec));
    }
    if is_taken || !is_next {
        return Step::Refuse(name_taken(spec));
    }
    made(spec, around.key).map_or_else(Step::Refuse, |new| Step::Create { new: Box::new(new), is_first })
}

/// Whether its home was told that nothing of it is left.
fn is_deleted(record: &PeerPod) -> bool {
    record.status.0.as_ref().is_ok_and(|status| status.deleted)
}

pub(super) fn no_twin(spec: &ShadowPodSpec) -> Refused {
    let message =
        format!("Namespace {} is no twin of a Namespace of cluster {}", spec.namespace, spec.origin);
    Refused { reason: "NoTwin", message }
}

pub(super) fn name_taken(spec: &ShadowPodSpec) -> Refused {
    let message = format!(
        "Namespace {} has a Pod {} that was not made for this one: it has to go first",
        spec.namespace, spec.pod
    );
    Refused { reason: "NameTaken", message }
}

fn too_many(spec: &ShadowPodSpec) -> Refused {
    let message = format!(
        "cluster {} asks for more than {RECORDS_MAX} Pods here: this one comes when others have gone",
        spec.origin
    );
    Refused { reason: "TooManyPods", message }
}

/// Seconds that the Pod has to end by itself, where its home says so.
pub(super) fn grace(spec: &ShadowPodSpec) -> Option<u32> {
    u32::try_from(spec.deletion.as_ref()?.grace_period_seconds?).ok()
}

/// Whether the Pod is to be deleted now: it is not going yet, or has longer than it is to have.
fn is_due(pod: &HostedPod, spec: &ShadowPodSpec) -> bool {
    let has = pod.metadata.deletion_grace_period_seconds;
    !pod.is_going() || grace(spec).zip(has).is_some_and(|(grace, has)| i64::from(grace) < has)
}

fn is_final(state: Option<&PodState>) -> bool {
    state.is_some_and(PodState::is_final)
}

/// The Pod of a record by its name alone.
fn at(spec: &ShadowPodSpec) -> HostedPod {
    let metadata = ObjectMeta {
        name: Some(spec.pod.clone()),
        namespace: Some(spec.namespace.clone()),
        ..ObjectMeta::default()
    };
    HostedPod { metadata, requests: Requests::default(), status: PodState::default() }
}

/// The Pod that a record asks for. It notes which labels and annotations are of the home, so that they go when they do there.
fn made(spec: &ShadowPodSpec, key: Option<&PrivateKey>) -> Result<NewPod, Refused> {
    let cannot = |message: String| Refused { reason: "CannotOpen", message };
    let Some(key) = key else { return Err(cannot("the key of this cluster is not known yet".to_owned())) };
    let content = seal::open(&spec.sealed, &spec.about(), key).map_err(|error| cannot(error.to_string()))?;
    let travelling: Travelling =
        serde_json::from_slice(&content).map_err(|_| cannot("what was sealed is no Pod".to_owned()))?;
    let pod = travelling
        .pod(spec)
        .map_err(|refused| Refused { reason: "FieldRefused", message: refused.to_string() })?;
    let mut new: NewPod =
        serde_json::from_value(pod).map_err(|_| cannot("what was sealed is no Pod".to_owned()))?;
    let keys = |of: Option<&std::collections::BTreeMap<String, String>>| {
        of.into_iter().flat_map(|all| all.keys().cloned()).collect::<Vec<_>>()
    };
    let metadata = &mut new.metadata;
    let note =
        json!({"labels": keys(metadata.labels.as_ref()), "annotations": keys(metadata.annotations.as_ref())});
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(general::EXPORTED_METADATA.to_owned(), note.to_string());
    Ok(new)
}

/// How the Pod is, as its home is to know.
pub(super) fn state(
    spec: &ShadowPodSpec,
    have: &ShadowPodStatus,
    pod: Option<&HostedPod>,
) -> Option<PodState> {
    let was_final = is_final(have.pod.as_ref());
    match pod {
        // Its containers were ended because somebody here deleted it: it has not finished, and is made again.
        Some(pod) if pod.is_going() && spec.deletion.is_none() && pod.status.is_final() && !was_final => {
            have.pod.clone()
        }
        Some(pod) => Some(pod.status.clone().bounded()),
        None if was_final || spec.deletion.is_some() => have.pod.clone(),
        None => None,
    }
}

#[cfg(test)]
mod tests;
