//! The status of NamespaceOffloadings: watches them, our maps with what the hosts say in them, and Leases of members; writes phase and
//! conditions, one of them on whether the webhook places Pods; deletes nothing. Safe to run twice: a status is applied only when it says something else.
//!
//! Twins that are only on their way are said when they take long: most are there within a moment, and then that is all there is to say.

mod progress;

use std::time::{Duration, Instant};

use api::{
    cluster_set::WRITES_ACCEPTED,
    condition::{Status, Verdict, conditions},
    offload::{
        namespace::{NamespaceOffloadingStatus, PLACEMENT_ENFORCED, PODS_ACCEPTED, VALID},
        phase::{Phase, Summary, summary},
        view::NamespaceOffloadingView,
    },
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kit::{
    events::Events,
    metrics::{Refusals, Tally},
    queue::Outcome,
    write::{Error, Writer},
};
use kube::Resource;

use tokio::sync::watch;

use super::{
    certificate::{Answer, placement},
    index::{NAMESPACE, NamespaceEntry, STATUS},
    knowledge::{Clusters, Knowledge, is_overdue},
    pod::exchange::is_host,
    selection::{Invalid, is_held},
    writes,
};

/// How soon a status is looked at again that nobody asked for.
const RESYNC: Duration = Duration::from_secs(10);

/// The status, where it was `have`.
fn desired(
    offloading: &NamespaceOffloadingView,
    name: Result<String, Invalid>,
    said: &Summary,
    others: impl IntoIterator<Item = Verdict>,
    now: &Time,
) -> NamespaceOffloadingStatus {
    let have = offloading.status.0.clone().unwrap_or_default();
    let generation = offloading.metadata.generation;
    let invalid = |why: &Invalid| Verdict::new(VALID, Status::False, why.reason, why.message.clone());
    let verdicts: Vec<_> = name.as_ref().err().map(invalid).into_iter().chain(others).collect();
    NamespaceOffloadingStatus {
        remote_namespace_name: name.ok().or(have.remote_namespace_name),
        offloading_phase: Some(said.phase.as_str().to_owned()),
        remote_namespaces_conditions: said.conditions(&have.remote_namespaces_conditions, now),
        observed_generation: generation,
        conditions: conditions(&verdicts, &have.conditions, generation, now),
    }
}

/// Clusters that had a twin of a Namespace, and whose map is missing or cannot be read.
fn unread<'a>(clusters: &'a Clusters, known: &'a NamespaceEntry) -> impl Iterator<Item = String> + use<'a> {
    let had = clusters.iter().filter(|(id, entry)| entry.wanted().is_none() && known.had(id).is_some());
    had.map(|(id, _)| id.clone())
}

/// Whether the NamespaceOffloading says that already; other conditions are of other writers.
fn is_said(have: &NamespaceOffloadingStatus, want: &NamespaceOffloadingStatus) -> bool {
    let mut have = have.clone();
    let ours = [VALID, PLACEMENT_ENFORCED, PODS_ACCEPTED, WRITES_ACCEPTED];
    have.conditions.retain(|condition| ours.contains(&condition.type_.as_str()));
    have == *want
}

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct OffloadingStatus {
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) events: Events,
    pub(super) tally: Tally,
    pub(super) webhook: watch::Receiver<Answer>,
    /// Writes of this member that API servers refuse.
    pub(super) refusals: Refusals,
}

impl OffloadingStatus {
    /// Brings the status of one NamespaceOffloading up to date, when it is time.
    pub(super) async fn reconcile(self, namespace: String) -> Result<Outcome, Error> {
        let namespaces = &self.knowledge.namespaces;
        let entry = namespaces.get(&namespace).unwrap_or_default();
        let Some(offloading) = &entry.offloading else {
            self.tally.put::<1>(&namespace, None);
            return Ok(Outcome::Done);
        };
        // Before anything is computed: hosts may say something else as often as they like.
        if let Some(wait) = progress::wait(None, entry.said_at, Instant::now()) {
            return Ok(Outcome::Requeue(wait));
        }
        let clusters = self.knowledge.all_clusters();
        let is_deleting = offloading.metadata.deletion_timestamp.is_some();
        let name = self.knowledge.twins_name(&namespace, offloading);
        let asks = name.as_deref().ok().filter(|_| !is_deleting).map(|name| (offloading, name));
        let mut said =
            summary(&self.knowledge.hosts(&clusters, &namespace, asks, Instant::now()), is_deleting);
        let is_overdue = is_overdue(offloading, Timestamp::now());
        let waits_for = match is_deleting {
            true => self.knowledge.where_left(&namespace, is_overdue, Instant::now()),
            false => vec![],
        };
        if is_deleting {
            progress::unseen(&mut said, unread(&clusters, &entry));
        }
        if is_overdue {
            progress::unanswered(&mut said, &waits_for);
        }
        let (webhook, is_labelled) = (self.webhook.borrow().clone(), entry.is_labelled());
        let strategy = offloading.spec.0.as_ref().ok().map(|spec| spec.pod_offloading_strategy);
        let placed = strategy.filter(|_| name.is_ok());
        let placed = placed.map(|strategy| placement(strategy, &webhook, is_labelled));
        said.phase = said.phase.with_placement(placed.as_ref());
        self.tally.put(&namespace, Some([said.phase.as_str()]));
        let of_pods = placed.into_iter().chain(self.refused(offloading, &namespace, &clusters));
        let refused = writes::about_namespace(&self.knowledge, &self.refusals, &namespace);
        let want = desired(offloading, name.clone(), &said, of_pods.chain(refused), &Time(Timestamp::now()));
        let want = self.writer.known::<NamespaceOffloadingView, _>(&want)?;
        let have = offloading.status.0.clone().unwrap_or_default();
        if is_said(&have, &want) {
            self.note(&namespace, &entry, None);
        } else {
            let now = Instant::now();
            let since = entry.unsaid_since.unwrap_or(now);
            let (is_held, moved) = (is_held(offloading), self.knowledge.maps_moved());
            let due = || progress::due(&have, &want, is_held, since, moved);
            // Of one that offloads nothing nothing is on its way.
            let waits = name.is_ok() && (said.is_on_the_way() || !is_labelled);
            let due = waits.then(due).flatten();
            if let Some(wait) = progress::wait(due, entry.said_at, now) {
                self.note(&namespace, &entry, Some(since));
                return Ok(Outcome::Requeue(wait));
            }
            self.note(&namespace, &entry, None);
            match namespaces.put_status(&self.writer, STATUS, offloading, &want).await {
                Ok(_) => {
                    namespaces.note(&namespace, |entry| entry.said_at = Some(now));
                    self.publish(offloading, &have, &want, said.phase);
                }
                Err(Error::Gone) => return Ok(Outcome::Done),
                Err(error) => return Err(error),
            }
        }
        if is_deleting && waits_for.is_empty() {
            namespaces.enqueue([(namespace, NAMESPACE)].into());
        }
        Ok(Outcome::Requeue(RESYNC))
    }

    /// Whether Pods are refused at virtual nodes. Until the Pods of each host were seen, what was said before stays.
    fn refused(
        &self,
        offloading: &NamespaceOffloadingView,
        namespace: &str,
        clusters: &Clusters,
    ) -> Option<Verdict> {
        let hosts = clusters.iter().filter(|(_, entry)| is_host(entry)).map(|(id, _)| id);
        let (refused, is_all) = self.knowledge.refused.verdict(namespace, hosts);
        refused.or_else(|| {
            let status = offloading.status.0.as_ref().ok().filter(|_| !is_all)?;
            let before = status.conditions.iter().find(|condition| condition.type_ == PODS_ACCEPTED)?;
            Some(Verdict::new(PODS_ACCEPTED, Status::False, &*before.reason, &*before.message))
        })
    }

    fn note(&self, namespace: &String, entry: &NamespaceEntry, unsaid_since: Option<Instant>) {
        if entry.unsaid_since != unsaid_since {
            self.knowledge.namespaces.note(namespace, |entry| entry.unsaid_since = unsaid_since);
        }
    }

    fn publish(
        &self,
        offloading: &NamespaceOffloadingView,
        have: &NamespaceOffloadingStatus,
        want: &NamespaceOffloadingStatus,
        now: Phase,
    ) {
        let object = offloading.object_ref(&());
        if let Some(invalid) = want.conditions.iter().find(|condition| condition.type_ == VALID) {
            if !have.conditions.contains(invalid) {
                self.events.warn(object, "Offload", &invalid.reason, &invalid.message);
            }
            return;
        }
        let conditions = (have.conditions.as_slice(), want.conditions.as_slice());
        self.events.turned(object.clone(), "Place", PLACEMENT_ENFORCED, conditions);
        self.events.turned(object.clone(), "Offload", PODS_ACCEPTED, conditions);
        self.events.turned(object.clone(), "Write", WRITES_ACCEPTED, conditions);
        if have.offloading_phase == want.offloading_phase {
            return;
        }
        match now {
            Phase::SomeFailed | Phase::AllFailed => {
                let message = "twins cannot be made: see status.remoteNamespacesConditions";
                self.events.warn(object, "Offload", now.as_str(), message);
            }
            Phase::NoClusterSelected => {
                let message = "no virtual node matches spec.clusterSelector";
                self.events.warn(object, "Offload", now.as_str(), message);
            }
            Phase::Ready if progress::had_trouble(have) => {
                self.events.tell(object, "Offload", now.as_str(), "each selected cluster has its twin");
            }
            // What works as it was asked for is no news. Of the placement the condition says it.
            Phase::Ready | Phase::InProgress | Phase::PlacementNotEnforced | Phase::Terminating => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use api::offload::namespace::PodOffloadingStrategy;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::offload::{
        arrivals::{Known, Looks, events, seen},
        index::ClusterEntry,
    };

    /// What there is to say of the twins.
    fn look(known: &Known, namespace: &str) -> BTreeMap<String, String> {
        let entry = known.all.namespaces.get(&namespace.to_owned()).unwrap_or_default();
        let Some(offloading) = &entry.offloading else {
            return [(namespace.to_owned(), String::new())].into();
        };
        let clusters = known.all.all_clusters();
        let is_deleting = offloading.metadata.deletion_timestamp.is_some();
        let name = known.all.twins_name(namespace, offloading);
        let asks = name.as_deref().ok().filter(|_| !is_deleting).map(|name| (offloading, name));
        let said = summary(&known.all.hosts(&clusters, namespace, asks, known.now), is_deleting);
        let placed = entry.is_labelled();
        [(namespace.to_owned(), format!("{name:?} {said:?} {placed}"))].into()
    }

    const LOOKS: Looks<String> =
        Looks { queue: |known| known.namespaces.queue(1), keys: |known| known.namespaces.keys(), at: look };

    proptest! {
        #[test]
        fn whoever_says_how_it_stands_has_seen_the_last_of_it(events in events()) {
            let [last, now] = seen(&events, &LOOKS, &[]);
            prop_assert_eq!(last, now);
        }
    }

    #[test]
    fn a_twin_is_not_known_to_be_gone_while_the_map_is_missing() {
        let condition = json!({"type": "OffloadingRequired", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-11-01T12:00:00Z"});
        let status =
            json!({"remoteNamespaceName": "shop-west", "remoteNamespacesConditions": {"east": [condition]}});
        let offloading = json!({"metadata": {"name": "offloading"}, "spec": {}, "status": status});
        let known = NamespaceEntry {
            offloading: serde_json::from_value(offloading).unwrap(),
            ..NamespaceEntry::default()
        };
        let spec = json!({"origin": "west", "destination": "east", "desiredMapping": {}});
        let map = serde_json::from_value(json!({"metadata": {"name": "1.west.east"}, "spec": spec})).unwrap();
        let (missing, there) =
            (ClusterEntry::default(), ClusterEntry { own_map: map, ..ClusterEntry::default() });
        let of = |id: &str, entry: ClusterEntry| {
            let clusters = Clusters::from([(id.to_owned(), Arc::new(entry))]);
            unread(&clusters, &known).collect::<Vec<_>>()
        };
        assert_eq!(of("east", missing.clone()), ["east"]);
        assert_eq!(of("east", there), Vec::<String>::new());
        assert_eq!(of("north", missing), Vec::<String>::new(), "it never had one");
    }

    #[test]
    fn a_status_is_written_once_and_other_conditions_are_left_alone() {
        let mut offloading: NamespaceOffloadingView =
            serde_json::from_value(json!({"metadata": {"name": "offloading", "generation": 3}, "spec": {}}))
                .unwrap();
        let said = summary(&BTreeMap::new(), false);
        let now = Time(Timestamp::UNIX_EPOCH);
        let desired = |offloading: &NamespaceOffloadingView, name: Result<String, Invalid>| {
            let placed = placement(PodOffloadingStrategy::Remote, &Answer::Unknown, true);
            desired(offloading, name.clone(), &said, Some(placed).filter(|_| name.is_ok()), &now)
        };
        let want = desired(&offloading, Ok("shop-west".into()));
        assert_eq!(want.offloading_phase.as_deref(), Some("NoClusterSelected"));
        let mut have = want.clone();
        let other = Verdict::new("Noted", Status::True, "Noted", "");
        have.conditions.extend(conditions(&[other], &[], None, &now));
        assert!(is_said(&have, &want));
        offloading.status.0 = Ok(have.clone());
        let why = Invalid { reason: "NameTooLong", message: "too long".into() };
        let invalid = desired(&offloading, Err(why));
        assert!(!is_said(&have, &invalid));
        assert_eq!(invalid.conditions[0].reason, "NameTooLong");
        assert_eq!(invalid.remote_namespace_name.as_deref(), Some("shop-west"), "what there is stays said");
    }
}
