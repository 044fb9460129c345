//! Pods of other clusters, at the host: watches the ShadowPods whose destination we are, the Pods that were made for
//! them, twins and OffloadPeers; makes those Pods, mends their labels and annotations, deletes them where their home
//! says so, and writes how they are (`status` of the ShadowPod). Safe to run twice: what is there is held against
//! what is asked for, and only differences are sent.
//!
//! A record or a consent that vanished takes no Pod along. A Pod that somebody deletes before it has finished is made
//! again; one that has finished never is. Of each home so many records are kept with what they are made of; the
//! others wait.

mod plan;
mod reserve;

use std::time::{Duration, Instant};

use api::{
    condition::{Status, Verdict, conditions},
    name::member_lease,
    offload::{
        label,
        seal::PrivateKey,
        shadow_pod::{ACCEPTED, ShadowPodSpec, ShadowPodStatus},
    },
    view::{QUOTE_MAX, shortened},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    metrics::Tally,
    objects::Change,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::ResourceExt;
use presence::vouch::Vouching;

use self::plan::{Around, Planned, Refused, Step, plan, state};
pub(super) use self::reserve::Reserved;
use super::{
    index::SHADOW,
    knowledge::Knowledge,
    pace::Pace,
    view::{HostedPod, NewPod, PeerPod},
};

/// How soon what is refused here is tried again, where nothing tells that it may be allowed now.
const AGAIN: Duration = Duration::from_secs(30);

/// Answers at once to a home about Namespaces that are no twins of it: its own may be on their way.
pub(super) const ANSWERS: u32 = 20;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct ShadowPods {
    pub(super) knowledge: Knowledge,
    pub(super) vouching: Vouching<String>,
    pub(super) local_writer: Writer,
    pub(super) leader_writer: Writer,
    pub(super) tally: Tally,
    /// What is reserved for Pods that are being made.
    pub(super) reserved: Reserved,
    /// How many answers homes get about Namespaces that are no twins of theirs.
    pub(super) pace: Pace,
}

/// What came of a step.
struct Done {
    /// The Pod of the record, as it is now.
    pod: Option<HostedPod>,
    /// What there is to say of it that was not said before.
    verdict: Option<Verdict>,
    /// Nothing of it is left.
    is_deleted: bool,
    result: Result<Outcome, Error>,
}

impl Done {
    fn with(pod: Option<HostedPod>, verdict: Option<Verdict>) -> Self {
        Self { pod, verdict, is_deleted: false, result: Ok(Outcome::Done) }
    }

    /// Whether there is anything to say. Without a Pod and without a word about it, what was said before stands.
    fn is_known(&self) -> bool {
        self.pod.is_some() || self.verdict.is_some() || self.is_deleted
    }
}

impl ShadowPods {
    /// Brings the Pod of a Namespace and name up to date, and the records that are about it.
    pub(super) async fn reconcile(self, place: String) -> Result<Outcome, Error> {
        let entry = self.knowledge.shadows.get(&place).unwrap_or_default();
        self.count(&place, entry.pod.as_ref());
        if let Some(record) = entry.records.values().find(|record| record.is_due()) {
            return self.read(record).await;
        }
        let key = self.knowledge.key();
        let is_current =
            |home: &str| self.vouching.is_current(&self.knowledge.us.cluster, &member_lease(home));
        let around =
            |spec: &ShadowPodSpec| around(&self.knowledge, spec, key.as_ref(), is_current(&spec.origin));
        let mut outcome = Ok(Outcome::Done);
        for Planned { record, spec, own, is_strangers, step } in plan(&entry, around) {
            let mut done = self.carry_out(record, spec, own.cloned(), step).await;
            let said = match self.news(record, spec, &done) {
                Some(want) => match self.has_to_wait(spec, is_strangers) {
                    Some(wait) => {
                        done.result = done.result.map(|_| Outcome::Requeue(wait));
                        Ok(())
                    }
                    None => self.say(record, &want).await,
                },
                None => Ok(()),
            };
            outcome = match (outcome, said.and(done.result)) {
                (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                (Ok(Outcome::Done), Ok(next)) => Ok(next),
                (before, Ok(_)) => before,
            };
        }
        outcome
    }

    /// Counts the Pod that is there, if this member made it for a home. A copy has its labels.
    fn count(&self, place: &str, pod: Option<&HostedPod>) {
        let home = pod.filter(|pod| pod.is_made_here()).and_then(|pod| pod.labels().get(label::ORIGIN));
        let home = home.filter(|home| self.knowledge.clusters.get(home).is_some());
        let phase = pod.and_then(|pod| pod.status.phase.as_deref()).unwrap_or("Unknown");
        self.tally.put(place, home.map(|home| [home.as_str(), phase]));
    }

    /// Reads what a record is made of. That it is here now enqueues it again.
    async fn read(&self, record: &PeerPod) -> Result<Outcome, Error> {
        match self.leader_writer.read(record).await {
            Ok(record) => self.knowledge.shadows.change(Change::<PeerPod>::Apply(record)),
            // The watch tells.
            Err(Error::Gone) => {}
            Err(error) => return Err(error),
        }
        Ok(Outcome::Done)
    }

    async fn carry_out(
        &self,
        record: &PeerPod,
        spec: &ShadowPodSpec,
        own: Option<HostedPod>,
        step: Step,
    ) -> Done {
        match step {
            Step::Leave => Done::with(own, None),
            Step::Refuse(why) => {
                // One without room is asked again when it has.
                let next = if record.is_over() { Outcome::Done } else { Outcome::Requeue(AGAIN) };
                Done { result: Ok(next), ..Done::with(own, Some(no(why))) }
            }
            Step::Create { new, is_first } => self.create(spec, &new, is_first).await,
            Step::Keep(want) => {
                let mended =
                    self.knowledge.shadows.put(&self.local_writer, SHADOW, own.as_ref(), &want).await;
                let result = mended.map(|_| Outcome::Done);
                Done { result, ..Done::with(own, Some(yes())) }
            }
            Step::Delete(pod, grace) => {
                // The watch tells when it has gone.
                let result = self.local_writer.delete_within(&*pod, grace).await.map(|()| Outcome::Done);
                Done { result, ..Done::with(own, None) }
            }
            Step::Confirm(at) => self.confirm(spec, &at).await,
            Step::Gone => Done { is_deleted: true, ..Done::with(None, None) },
        }
    }

    async fn create(&self, spec: &ShadowPodSpec, new: &NewPod, is_first: bool) -> Done {
        let want = HostedPod::from(new.clone());
        // Until its answer is known.
        let _reserved = match self.reserve(spec, &want) {
            Ok(reserved) => reserved,
            Err(why) => {
                let next = Ok(Outcome::Requeue(AGAIN));
                return Done { result: next, ..Done::with(None, Some(no(why.into()))) };
            }
        };
        let request = async {
            let made = self.local_writer.put(None, new).await?;
            Ok(made.map_or_else(|| want.clone(), HostedPod::from))
        };
        let made = match self.knowledge.shadows.write(SHADOW, &want, request).await {
            Err(Error::Stale) => {
                let is_its_own = |there: &HostedPod| there.is_of(spec) && (is_first || there.is_labelled());
                let adopted = self.local_writer.adopt(&want, is_its_own);
                self.knowledge.shadows.write(SHADOW, &want, adopted).await
            }
            made => made,
        };
        match made {
            Ok(pod) => Done::with(Some(pod), Some(yes())),
            // What was said of it is no reason to be silent about others.
            Err(error) => match refused(spec, &error) {
                Some(why) => Done { result: Ok(Outcome::Requeue(AGAIN)), ..Done::with(None, Some(no(why))) },
                None => Done { result: Err(error), ..Done::with(None, None) },
            },
        }
    }

    /// Finds out whether nothing of it is left: somebody may have taken off the labels by which it is known.
    async fn confirm(&self, spec: &ShadowPodSpec, at: &HostedPod) -> Done {
        let have = Done::with(None, None);
        match self.local_writer.read(at).await {
            Ok(there) if there.is_of(spec) => {
                let grace = plan::grace(spec);
                let deleted = match there.is_going() {
                    true => Ok(()),
                    false => self.local_writer.delete_within(&there, grace).await,
                };
                // No watch tells of it.
                let result = deleted.map(|()| Outcome::Requeue(Duration::from_secs(1)));
                Done { result, ..have }
            }
            Ok(_) | Err(Error::Gone) => Done { is_deleted: true, ..have },
            Err(error) => Done { result: Err(error), ..have },
        }
    }

    /// How long the home of a record has to wait for an answer, if it has to: whoever has the twin waits for what is written before.
    fn has_to_wait(&self, spec: &ShadowPodSpec, is_strangers: bool) -> Option<Duration> {
        is_strangers.then(|| self.pace.wait(&spec.origin, Instant::now())).flatten()
    }

    /// What the record's status does not say yet.
    fn news(&self, record: &PeerPod, spec: &ShadowPodSpec, done: &Done) -> Option<ShadowPodStatus> {
        let nothing = ShadowPodStatus::default();
        let have = record.status.0.as_ref().unwrap_or(&nothing);
        let said = match &done.verdict {
            Some(verdict) => conditions(
                std::slice::from_ref(verdict),
                &have.conditions,
                record.metadata.generation,
                &Time(Timestamp::now()),
            ),
            None => have.conditions.clone(),
        };
        let want = ShadowPodStatus {
            pod: state(spec, have, done.pod.as_ref()),
            deleted: done.is_deleted || have.deleted,
            conditions: said,
        };
        (done.is_known() && record.status.0.as_ref() != Ok(&want)).then_some(want)
    }

    async fn say(&self, record: &PeerPod, want: &ShadowPodStatus) -> Result<(), Error> {
        let answer = match record.is_over() {
            // There is no room for it: the watch tells.
            true => self.leader_writer.put_status(record, want).await,
            false => self.knowledge.shadows.put_status(&self.leader_writer, SHADOW, record, want).await,
        };
        match answer {
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// What a record is held against.
fn around<'a>(
    knowledge: &'a Knowledge,
    spec: &ShadowPodSpec,
    key: Option<&'a PrivateKey>,
    is_current: bool,
) -> Around<'a> {
    let home = knowledge.clusters.get(&spec.origin).unwrap_or_default();
    Around {
        us: &knowledge.us.cluster,
        refusal: home.consent(&spec.origin).err(),
        is_of_home: knowledge.is_of_home(&spec.namespace, &spec.origin),
        has_twin: knowledge.twin(&spec.namespace, &spec.origin).is_some(),
        is_current,
        key,
    }
}

fn yes() -> Verdict {
    Verdict::new(ACCEPTED, Status::True, "Accepted", "the Pod is there")
}

fn no(why: Refused) -> Verdict {
    Verdict::new(ACCEPTED, Status::False, why.reason, shortened(why.message, QUOTE_MAX))
}

/// What a failure to make the Pod means to its home; nothing if it is about neither.
fn refused(spec: &ShadowPodSpec, error: &Error) -> Option<Refused> {
    match error {
        Error::NotOurs { .. } => Some(plan::name_taken(spec)),
        Error::Gone => Some(plan::no_twin(spec)),
        error => error.refusal().map(|message| Refused { reason: "Refused", message }),
    }
}

#[cfg(test)]
mod tests;
