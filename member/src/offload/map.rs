//! Twins, at the host: watches the NamespaceMaps whose destination we are, Namespaces, their RoleBindings `freeport-offload` and ServiceAccounts
//! `default`, and OffloadPeers; writes twins, the RoleBinding by which we make Pods in them, and what became of them (`status.currentMapping`); deletes
//! twins that their home has withdrawn in writing (`spec.withdrawn`). Safe to run twice: each entry is held against its twin, on events and
//! every 30 s, and only differences are sent.
//!
//! A Namespace that is not a twin of that home for that map is never touched. A key that is missing, and a map that is missing, does not
//! decode, or is of before a restore of the Common Area, delete nothing.

mod binding;
mod entries;
mod plan;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{
    name::member_lease,
    offload::{
        map::{ACCEPTED, CREATION_LOOP_BACK_OFF, MappedNamespace, NamespaceMapSpec, TERMINATING},
        names,
    },
};
use futures::{StreamExt, stream};
use kit::{
    metrics::Tally,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::ResourceExt;
use presence::vouch::Vouching;
use serde_json::{Value, json};

use self::{
    entries::{Said, accepted, current, refused, status, terminating, undeleted},
    plan::{Around, Refused, Step, plan},
};
use super::{
    index::{ClusterEntry, MAP, NAMESPACE},
    knowledge::Knowledge,
    pace::Pace,
    view::{Namespace, PeerMap},
};

/// How often twins are looked at, and what failed is tried again.
const PROBE: Duration = Duration::from_secs(30);
/// Most twins that are made before those that are there are said: a reconcile must not take for ever.
const AT_ONCE: usize = 50;
/// Twins of one home that are written at the same time.
const AT_A_TIME: usize = 8;

/// What this controller knows and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Maps {
    pub(super) knowledge: Knowledge,
    pub(super) vouching: Vouching<String>,
    pub(super) local_writer: Writer,
    pub(super) leader_writer: Writer,
    pub(super) tally: Tally,
    /// How often homes are answered without consent.
    pub(super) pace: Pace,
}

impl Maps {
    /// Brings the twins of one home up to date, and its map.
    pub(super) async fn reconcile(self, home: String) -> Result<Outcome, Error> {
        let entry = self.knowledge.clusters.get(&home).unwrap_or_default();
        let Some(map) = &entry.map else {
            self.count(&home);
            return Ok(Outcome::Done);
        };
        let Some(spec) = entry.asked_here() else {
            tracing::warn!(
                home,
                "the NamespaceMap of this cluster cannot be read: its twins stay as they are"
            );
            return Ok(Outcome::Done);
        };
        let record = names::namespace_map(&home, &self.knowledge.us.cluster);
        let twins = twins(&self.knowledge, &home, &record, &entry);
        let is_current = self.vouching.is_current(&self.knowledge.us.cluster, &member_lease(&home));
        let mut steps = desired(&self.knowledge, (&home, &record), &entry, spec, &twins);
        steps.retain(|(_, step)| is_current || !matches!(step, Step::Delete(_)));
        let is_cut = cut(&mut steps);
        let (said, result) = self.carry_out_all(&entry, steps).await;
        let mut said: Said = said.into_iter().map(|(namespace, entry)| (namespace, Some(entry))).collect();
        let gone = current(&entry).into_keys().filter(|name| !spec.desired_mapping.contains_key(name));
        let gone = gone.filter(|name| !twins.iter().any(|twin| is_of(twin, &record, name)));
        said.extend(gone.map(|name| (name, None)));
        // What goes wrong with others is no reason for a home to wait.
        let undesired = twins.iter().filter_map(|twin| twin.twin_of(&record));
        let mut undesired = undesired.filter(|(_, name)| !spec.desired_mapping.contains_key(*name));
        let have = current(&entry);
        let are_said = undesired.all(|(_, name)| said.contains_key(name) || have.contains_key(name));
        let next = match status(&entry, map, said, is_current && are_said) {
            None => PROBE,
            Some(status) => {
                // Who has a twin here had consent, and may be waiting for its end.
                let is_unknown = twins.is_empty() && entry.consent(&home).is_err();
                match is_unknown.then(|| self.pace.wait(&home, Instant::now())).flatten() {
                    Some(wait) => wait,
                    None if self.say(map, status).await? => PROBE,
                    None => Duration::ZERO,
                }
            }
        };
        self.count(&home);
        result.map(|()| Outcome::Requeue(if is_cut { Duration::ZERO } else { next }))
    }

    /// Carries out these steps, some at the same time: what there is to say of their entries, and how it went.
    async fn carry_out_all(
        &self,
        entry: &ClusterEntry,
        steps: Vec<(String, Step)>,
    ) -> (BTreeMap<String, MappedNamespace>, Result<(), Error>) {
        let one = |(namespace, step): (String, Step)| async move {
            let done = self.carry_out(step).await;
            (namespace, done)
        };
        let all: Vec<_> = stream::iter(steps).map(one).buffer_unordered(AT_A_TIME).collect().await;
        let (mut said, mut result) = (BTreeMap::new(), Ok(()));
        let before = current(entry);
        for (namespace, done) in all {
            match done {
                Ok(Done::Says(entry)) => drop(said.insert(namespace, entry)),
                // By now Kubernetes may have made what the twin needs; if not, the watch tells.
                Ok(Done::Stands(twin)) => {
                    let accepted = accepted(twin);
                    if before.get(&namespace) == Some(&accepted)
                        || takes_pods(&self.knowledge, &accepted.remote_namespace)
                    {
                        said.insert(namespace, accepted);
                    }
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        (said, result)
    }

    /// Counts what the map says now.
    fn count(&self, home: &String) {
        let entry = self.knowledge.clusters.get(home);
        let said = entry.map(|entry| current(&entry)).unwrap_or_default();
        let of = |phase| {
            let many = said.values().filter(|entry| entry.phase == phase).count();
            ([home.as_str(), phase], i64::try_from(many).unwrap_or(i64::MAX))
        };
        self.tally.count(home, [ACCEPTED, CREATION_LOOP_BACK_OFF, TERMINATING].map(of));
    }

    async fn carry_out(&self, step: Step) -> Result<Done, Error> {
        match step {
            Step::Create(want) => match self.put(None, &want).await {
                Ok(()) => self.bind(&want).await,
                Err(error) => refusal(&want, error),
            },
            Step::Mend { have, want } => {
                let mended = self.put(Some(&have), &want).await;
                let bound = self.bind(&want).await;
                mended.map_or_else(|error| refusal(&want, error), |()| bound)
            }
            Step::Refuse { twin, why } => Ok(Done::Says(refused(twin, &why))),
            Step::Wait { twin } => Ok(Done::Says(terminating(twin))),
            Step::Keep { twin } => Ok(Done::Says(accepted(twin))),
            Step::Delete(twin) => {
                // The watch tells when it is going, and when it is gone.
                let deleted = match twin.is_going() {
                    true => Ok(()),
                    false => self.local_writer.delete(&twin, false).await,
                };
                match deleted.as_ref().err().and_then(Error::refusal) {
                    Some(words) => Ok(Done::Says(undeleted(twin.name_any(), words))),
                    None => deleted.map(|()| Done::Says(terminating(twin.name_any()))),
                }
            }
        }
    }

    async fn put(&self, have: Option<&Namespace>, want: &Namespace) -> Result<(), Error> {
        self.knowledge.namespaces.put(&self.local_writer, NAMESPACE, have, want).await.map(drop)
    }

    /// A twin takes no Pods before we may make some.
    async fn bind(&self, twin: &Namespace) -> Result<Done, Error> {
        let namespaces = &self.knowledge.namespaces;
        let have = namespaces.get(&twin.name_any()).and_then(|entry| entry.binding.clone());
        let want = binding::wanted(&twin.name_any(), self.knowledge.system());
        match namespaces.put_ours(&self.local_writer, MAP, (have.as_ref(), &want), |_| true).await {
            Ok(_) => Ok(Done::Stands(twin.name_any())),
            Err(error) => refusal(twin, error),
        }
    }

    /// Writes this status. Whether the map asks for the same as before: this write is not bound to its version, as the home writes it too,
    /// so nobody else tells us of what came meanwhile.
    async fn say(&self, map: &PeerMap, status: Value) -> Result<bool, Error> {
        let merge = self.leader_writer.merge(map, Some("status"), json!({"status": status}));
        let answer = self.knowledge.clusters.write(MAP, map, merge).await?;
        Ok(answer.spec == map.spec)
    }
}

/// What becomes of all that the map of a home asks for.
fn desired(
    knowledge: &Knowledge,
    (home, record): (&str, &str),
    entry: &ClusterEntry,
    spec: &NamespaceMapSpec,
    twins: &[Namespace],
) -> Vec<(String, Step)> {
    let around = Around {
        home,
        record,
        incoming: entry.consent(home),
        twins,
        exists: &|name: &str| knowledge.namespace(name).is_some(),
        system: &|name: &str| knowledge.system_with(name),
    };
    plan(spec, &around)
}

/// The twins of a home that are here, by its map: those that this member wrote, or that it has said in the map to be one. What somebody
/// copied is nobody's, though the home asks for it by name.
fn twins(knowledge: &Knowledge, home: &str, record: &str, entry: &ClusterEntry) -> Vec<Namespace> {
    let names = knowledge.namespaces.keys().into_iter();
    let entries = names.filter_map(|name| knowledge.namespaces.get(&name));
    let said = current(entry);
    let is_said = |namespace: &Namespace, original: &str| {
        said.get(original).is_some_and(|said| {
            said.phase != CREATION_LOOP_BACK_OFF && said.remote_namespace == namespace.name_any()
        })
    };
    let is_one = |namespace: &&Namespace| {
        namespace.twin_of(record).is_some_and(|(of, original)| {
            of == home && (namespace.is_made_here() || is_said(namespace, original))
        })
    };
    entries.filter_map(|entry| entry.namespace.as_ref().filter(is_one).cloned()).collect()
}

/// A new twin takes no Pods before Kubernetes has made its ServiceAccount.
fn takes_pods(knowledge: &Knowledge, twin: &String) -> bool {
    knowledge.namespaces.get(twin).is_some_and(|entry| entry.has_account)
}

/// What came of a step.
enum Done {
    /// The entry says this now.
    Says(MappedNamespace),
    /// The twin of this name is there, and ours to make Pods in.
    Stands(String),
}

/// Leaves out what is too much for one reconcile; whether that is anything.
fn cut(steps: &mut Vec<(String, Step)>) -> bool {
    let (before, mut room) = (steps.len(), AT_ONCE);
    steps.retain(|(_, step)| {
        let is_new = matches!(step, Step::Create(_));
        let has_room = !is_new || room > 0;
        room -= usize::from(is_new && has_room);
        has_room
    });
    steps.len() < before
}

fn is_of(twin: &Namespace, record: &str, namespace: &str) -> bool {
    twin.twin_of(record).is_some_and(|(_, original)| original == namespace)
}

/// What its API server refuses is for the home to know.
fn refusal(twin: &Namespace, error: Error) -> Result<Done, Error> {
    match error.refusal() {
        Some(message) => Ok(Done::Says(refused(twin.name_any(), &Refused { reason: "Refused", message }))),
        None => Err(error),
    }
}

#[cfg(test)]
mod tests;
