//! What becomes of a Pod that is bound to a virtual node, and of its record: pure.

use api::offload::{
    pod_status::PodState,
    seal::{CannotSeal, PrivateKey, seal},
    shadow_pod::{Deletion, ShadowPodSpec, ShadowPodStatus},
    travel::content,
};
use ipnet::IpNet;
use jiff::Timestamp;
use kube::ResourceExt;

use super::{
    index::PodEntry,
    status::{Said, aborted, has_started, mirrored, refused, waits},
    twin::Twin,
    view::{BoundPod, OwnShadowPod},
};

/// What a Pod is held against.
pub(super) struct Around<'a> {
    /// ID of this cluster.
    pub(super) us: &'a str,
    pub(super) host: &'a str,
    pub(super) twin: Twin<'a>,
    /// Our own key, once it is there.
    pub(super) key: Option<&'a PrivateKey>,
    /// The key of the host, as it offers it.
    pub(super) public_key: Option<&'a str>,
    /// What the host said may not be so any more.
    pub(super) is_silent: bool,
    /// Ranges of this cluster's Services.
    pub(super) services: &'a [IpNet],
    pub(super) now: Timestamp,
}

/// What becomes of the record.
#[derive(Debug, PartialEq)]
pub(super) enum OfRecord {
    Keep,
    Put(Box<ShadowPodSpec>),
    Delete,
}

/// What becomes of the Pod here.
#[derive(Debug, PartialEq)]
pub(super) enum OfPod {
    Keep,
    Say(Said),
    /// At once: nothing of it runs anywhere.
    Delete,
}

/// What is to be done. Where a record goes, first the Pod says so.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) record: OfRecord,
    pub(super) pod: OfPod,
}

impl Plan {
    const NOTHING: Self = Self { record: OfRecord::Keep, pod: OfPod::Keep };

    fn pod(pod: OfPod) -> Self {
        Self { pod, ..Self::NOTHING }
    }

    fn says(said: Option<Said>) -> Self {
        Self::pod(said.map_or(OfPod::Keep, OfPod::Say))
    }

    fn put(want: ShadowPodSpec) -> Self {
        Self { record: OfRecord::Put(Box::new(want)), ..Self::NOTHING }
    }
}

/// Why a Pod is not sent.
enum Unsent {
    /// Something is missing that may come.
    NotYet(String),
    /// It is so made that it cannot run elsewhere.
    Never(String),
}

/// What becomes of a Pod that is there.
pub(super) fn plan(entry: &PodEntry, pod: &BoundPod, around: &Around<'_>) -> Plan {
    let have = PodState::of(pod.said());
    match &entry.record {
        None if pod.is_going() => {
            let was_sent = entry.had_record || has_started(&have);
            going_without_record(was_sent, pod, &have, around)
        }
        None if have.is_final() => Plan::NOTHING,
        None => without_record(pod, &have, around),
        Some(record) if pod.is_going() || is_over(record, around) => going(record, pod, &have, around),
        Some(record) => running(record, pod, &have, around),
    }
}

fn without_record(pod: &BoundPod, have: &PodState, around: &Around<'_>) -> Plan {
    let wait = |why: String| Plan::says(waits(have, why));
    match &around.twin {
        Twin::There(twin) => match wanted(pod, twin, None, around) {
            Ok(spec) => Plan::put(spec),
            Err(Unsent::NotYet(_) | Unsent::Never(_)) if has_started(have) => Plan::NOTHING,
            Err(Unsent::NotYet(why)) => wait(why),
            Err(Unsent::Never(why)) => Plan::says(refused(have, why, around.now)),
        },
        // The record vanished, and the map too: what it was is not known to be over.
        Twin::NotThere(_) if has_started(have) => Plan::NOTHING,
        Twin::NotThere(why) => wait(why.clone()),
        Twin::Unwanted if has_started(have) => Plan::says(aborted(have, around.host)),
        Twin::Unwanted => {
            let namespace = pod.namespace().unwrap_or_default();
            wait(format!("Namespace {namespace} is not offloaded to cluster {}", around.host))
        }
    }
}

/// A Pod that goes, and of which there is no record. The host may have it all the same, and has to be told: the record may have gone with a hub
/// that was restored. `was_sent`: it is known to have had one.
fn going_without_record(was_sent: bool, pod: &BoundPod, have: &PodState, around: &Around<'_>) -> Plan {
    match &around.twin {
        Twin::Unwanted => Plan::pod(OfPod::Delete),
        // What has finished there needs nobody to end it.
        Twin::NotThere(_) if have.is_final() || !was_sent => Plan::pod(OfPod::Delete),
        Twin::NotThere(_) => Plan::NOTHING,
        Twin::There(twin) => match wanted(pod, twin, Some(deletion(pod)), around) {
            Ok(spec) => Plan::put(spec),
            Err(Unsent::NotYet(_)) if was_sent => Plan::NOTHING,
            Err(Unsent::NotYet(_) | Unsent::Never(_)) => Plan::pod(OfPod::Delete),
        },
    }
}

/// Whether nobody wants the Pod of this record any more, though its Pod here is not deleted. A deletion that was once asked for goes on.
fn is_over(record: &OwnShadowPod, around: &Around<'_>) -> bool {
    let wanted = record.wanted();
    match &around.twin {
        Twin::Unwanted => true,
        Twin::There(twin) => wanted.is_some_and(|spec| spec.deletion.is_some() || spec.namespace != *twin),
        Twin::NotThere(_) => wanted.is_some_and(|spec| spec.deletion.is_some()),
    }
}

/// A Pod that is to end at the host: because it is deleted here, or because it is not wanted there any more.
fn going(record: &OwnShadowPod, pod: &BoundPod, have: &PodState, around: &Around<'_>) -> Plan {
    let Some(spec) = record.wanted() else {
        // Somebody garbled it, and the host cannot read it either. It is written anew, if it was not deleted.
        return match &around.twin {
            Twin::There(twin) => match wanted(pod, twin, Some(deletion(pod)), around) {
                Ok(spec) => Plan::put(spec),
                Err(_) => Plan::NOTHING,
            },
            Twin::NotThere(_) => Plan::NOTHING,
            Twin::Unwanted => Plan { record: OfRecord::Delete, ..Plan::NOTHING },
        };
    };
    if record.is_done() {
        return match pod.is_going() {
            // The record goes when the Pod has gone.
            true => Plan::pod(OfPod::Delete),
            // After a restore of the Common Area that may be of a time before it ran again.
            false if around.is_silent => Plan::NOTHING,
            false => {
                // It had been sent. One that has not started goes out again if it is wanted again by now.
                let is_over = has_started(have) || matches!(around.twin, Twin::Unwanted);
                let said = aborted(have, around.host).filter(|_| is_over && !have.is_final());
                Plan { record: OfRecord::Delete, ..Plan::says(said) }
            }
        };
    }
    let deletion = if pod.is_going() { deletion(pod) } else { spec.deletion.clone().unwrap_or_default() };
    let plan = mirror(record, pod, have, around);
    match spec.deletion.as_ref() == Some(&deletion) {
        true => plan,
        false => Plan {
            record: OfRecord::Put(Box::new(ShadowPodSpec { deletion: Some(deletion), ..spec.clone() })),
            ..plan
        },
    }
}

/// A Pod that is there, with its record.
fn running(record: &OwnShadowPod, pod: &BoundPod, have: &PodState, around: &Around<'_>) -> Plan {
    let plan = mirror(record, pod, have, around);
    let Twin::There(twin) = &around.twin else { return plan };
    if have.is_final() {
        return finished(record, plan, around);
    }
    match wanted(pod, twin, None, around) {
        Ok(want) if record.wanted() != Some(&want) => Plan { record: OfRecord::Put(Box::new(want)), ..plan },
        // Of what runs there already the record says enough.
        Ok(_) | Err(_) => plan,
    }
}

/// A Pod that has finished here. If its host does not say so, because the Common Area was restored or somebody else ended the Pod here, it
/// must not run there again.
fn finished(record: &OwnShadowPod, plan: Plan, around: &Around<'_>) -> Plan {
    let says = record.said().and_then(|said| said.pod.as_ref());
    let spec = record.wanted().filter(|_| !around.is_silent && !says.is_some_and(PodState::is_final));
    match spec {
        Some(spec) => {
            let spec = ShadowPodSpec { deletion: Some(Deletion::default()), ..spec.clone() };
            Plan { record: OfRecord::Put(Box::new(spec)), ..plan }
        }
        None => plan,
    }
}

fn mirror(record: &OwnShadowPod, pod: &BoundPod, have: &PodState, around: &Around<'_>) -> Plan {
    // A host that leaves says at last that nothing is left of it; that stays true.
    let is_last = |said: &&ShadowPodStatus| {
        let was_told = record.wanted().is_some_and(|spec| spec.deletion.is_some());
        said.deleted && !was_told && said.pod.as_ref().is_some_and(PodState::is_final)
    };
    let said = record.said().filter(|said| !around.is_silent || is_last(said));
    let mirrored =
        |said: &ShadowPodStatus| mirrored(pod, have, said, around.host, around.services, around.now);
    Plan::says(said.and_then(mirrored))
}

fn deletion(pod: &BoundPod) -> Deletion {
    let seconds = pod.metadata.deletion_grace_period_seconds;
    Deletion { grace_period_seconds: seconds.and_then(|seconds| i32::try_from(seconds).ok()) }
}

/// The record as it has to be.
fn wanted(
    pod: &BoundPod,
    twin: &str,
    deletion: Option<Deletion>,
    around: &Around<'_>,
) -> Result<ShadowPodSpec, Unsent> {
    let never = |why: String| Unsent::Never(why);
    let key =
        around.key.ok_or_else(|| Unsent::NotYet("this cluster has no key of its own yet".to_owned()))?;
    let offered = around.public_key.and_then(|key| key.parse().ok());
    let to = offered
        .ok_or_else(|| Unsent::NotYet(format!("cluster {} offers no key to seal Pods with", around.host)))?;
    let content = pod.content().and_then(|pod| content(&pod)).map_err(|error| never(error.to_string()))?;
    let mut spec = ShadowPodSpec {
        origin: around.us.to_owned(),
        destination: around.host.to_owned(),
        namespace: twin.to_owned(),
        pod: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        sealed: String::new(),
        deletion,
    };
    spec.sealed = seal(&content, &spec.about(), &to, key).map_err(|error| match error {
        CannotSeal::WeakKey => Unsent::NotYet(error.to_string()),
        CannotSeal::TooLong(_) => never(error.to_string()),
    })?;
    Ok(spec)
}

#[cfg(test)]
mod tests;
