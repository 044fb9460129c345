//! Pods at home that are bound to a virtual node: watches these Pods and our ShadowPods for the host; writes the ShadowPods, sealed to the
//! host's key, and the status of the Pods as the host says it; deletes a Pod here when the host has deleted it as it was told, and
//! a ShadowPod when its Pod has gone. It may run twice: a record is a function of the Pod and of both keys, a status of what the host
//! says, and only differences are sent.
//!
//! A Pod ends at the host by decision only: it is deleted here, or its Namespace is not offloaded there any more. While the host or the
//! leader is silent nothing changes. A record that vanished is written again. Each host has an exchange of its own ([`exchange`]).

pub(super) mod exchange;
mod index;
mod plan;
mod status;
mod twin;
pub(super) mod view;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    name::member_lease,
    offload::{
        names,
        pod_status::PodState,
        shadow_pod::{Deletion, ShadowPodSpec},
    },
    view::{Lenient, Meta},
};
use ipnet::IpNet;
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use kit::{
    events::Events,
    index::Shared,
    metrics::Tally,
    queue::Outcome,
    store::Store,
    write::{Error, Writer},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, ObjectMeta},
};
use presence::{standing::Standing, vouch::Vouching};
use serde_json::json;

use self::{
    index::{POD, PodEntry},
    plan::{Around, OfPod, OfRecord, plan},
    status::{Said, patch},
    twin::twin,
    view::{BoundPod, OwnShadowPod},
};
use super::{
    index::{ClusterEntry, STATUS},
    knowledge::Knowledge,
    refused::Refusal,
    view::VirtualNode,
};

/// How soon a Pod is looked at again that waits for something, of which perhaps no watch tells.
const RESYNC: Duration = Duration::from_secs(10);
/// How soon a record is looked at again whose Pod is there and not in our watch yet.
const SOON: Duration = Duration::from_secs(1);

/// What this controller knows of the Pods of one host, and whom it asks. Cloning shares it.
#[derive(Clone)]
pub(super) struct Pods {
    host: String,
    knowledge: Knowledge,
    vouching: Vouching<String>,
    store: Store<String, PodEntry>,
    /// Ranges of this cluster's Services.
    services: Shared<Arc<[IpNet]>>,
    tally: Tally,
    /// Reads from this cluster.
    local: Client,
    local_writer: Writer,
    leader_writer: Writer,
    events: Events,
}

impl Pods {
    /// Brings one Pod and its record up to date.
    pub(super) async fn reconcile(self, uid: String) -> Result<Outcome, Error> {
        let entry = self.store.get(&uid).unwrap_or_default();
        self.count(&uid, entry.pod.as_ref().map(phase).as_deref());
        let outcome = match (&entry.pod, &entry.record) {
            (None, None) => Ok(Outcome::Done),
            (None, Some(record)) => self.take_back(&uid, record).await,
            (Some(pod), _) => self.follow(&entry, pod).await,
        };
        self.note_refusal(&uid, outcome.as_ref().err());
        outcome
    }

    /// The Pod is in this phase now, or gone.
    fn count(&self, uid: &str, phase: Option<&str>) {
        self.tally.put(uid, phase.map(|phase| [self.host.as_str(), phase]));
    }

    /// Notes for the status of its NamespaceOffloading whether the Pod, if it is there, is refused: by its own status, or because it was not
    /// sent and an API server refused what was written for it, with this error.
    fn note_refusal(&self, uid: &str, failed: Option<&Error>) {
        let entry = self.store.get(&uid.to_owned()).unwrap_or_default();
        let words = failed.and_then(Error::refusal).filter(|_| entry.record.is_none());
        let refusal = entry.pod.as_ref().filter(|pod| !pod.is_going()).and_then(|pod| {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
            match words {
                Some(words) => Some(Refusal::of_write(&words, (&namespace, &name), &self.host)),
                None => Refusal::of(&PodState::of(pod.said()), (&namespace, &name), &self.host),
            }
        });
        let changed = self.knowledge.refused.note(uid, refusal);
        self.knowledge.namespaces.enqueue(changed.into_iter().map(|namespace| (namespace, STATUS)).collect());
    }

    /// Notes of all Pods whether they are refused.
    fn note_refusals(&self) {
        self.store.keys().iter().for_each(|uid| self.note_refusal(uid, None));
        self.knowledge.refused.saw(&self.host);
    }

    /// Does what is to be done about a Pod that is there.
    async fn follow(&self, entry: &PodEntry, pod: &BoundPod) -> Result<Outcome, Error> {
        let Some(cluster) = self.knowledge.clusters.get(&self.host) else {
            return Ok(Outcome::Requeue(RESYNC));
        };
        // Whose Node is gone is Kubernetes' to collect, and a Node of somebody else is theirs.
        if !cluster.node.as_ref().is_some_and(VirtualNode::is_ours) {
            return Ok(Outcome::Requeue(RESYNC));
        }
        let plan = self.plan(entry, pod, &cluster);
        let put = match &plan.record {
            OfRecord::Put(want) => self.put(entry.record.as_ref(), pod, want).await,
            OfRecord::Keep | OfRecord::Delete => Ok(()),
        };
        let done = match &plan.pod {
            OfPod::Keep => Ok(()),
            OfPod::Say(said) => self.say(pod, said).await,
            OfPod::Delete => self.local_writer.delete_within(pod, Some(0)).await,
        };
        if let (Ok(()), OfRecord::Delete, Some(record)) = (&done, &plan.record, &entry.record) {
            self.leader_writer.delete(record, false).await?;
        }
        put.and(done)?;
        let is_written = matches!(plan.record, OfRecord::Put(_));
        Ok(match &entry.record {
            None => Outcome::Requeue(RESYNC),
            Some(record) if is_written && has_ended(record) => Outcome::Requeue(SOON),
            Some(_) => Outcome::Done,
        })
    }

    fn plan(&self, entry: &PodEntry, pod: &BoundPod, cluster: &ClusterEntry) -> plan::Plan {
        let namespace = pod.namespace().unwrap_or_default();
        let known = self.knowledge.namespaces.get(&namespace);
        let offloading = known.as_ref().and_then(|known| known.offloading.as_ref());
        let key = self.knowledge.key();
        let around = Around {
            us: &self.knowledge.us.cluster,
            host: &self.host,
            twin: twin(&self.host, cluster, &namespace, offloading),
            key: key.as_ref(),
            public_key: cluster.offered().map(|offered| offered.public_key.as_str()),
            is_silent: self.is_silent(),
            services: &self.services.with(|services| services.clone()),
            now: Timestamp::now(),
        };
        plan(entry, pod, &around)
    }

    /// Whether what the host says may not be so any more: it is silent, or the Common Area was restored from a backup and it has not
    /// looked at what is there.
    fn is_silent(&self) -> bool {
        let us = &self.knowledge.us.cluster;
        matches!(self.knowledge.standing(&self.host, Instant::now()), None | Some(Standing::Silent { .. }))
            || !self.vouching.is_current(us, &member_lease(&self.host))
    }

    /// Writes the record as it has to be.
    async fn put(
        &self,
        have: Option<&OwnShadowPod>,
        pod: &BoundPod,
        want: &ShadowPodSpec,
    ) -> Result<(), Error> {
        let metadata = ObjectMeta {
            name: Some(want.name()),
            namespace: Some(self.knowledge.us.common_area.clone()),
            ..ObjectMeta::default()
        };
        let object =
            OwnShadowPod { metadata, spec: Lenient(Ok(Some(want.clone()))), status: Lenient::default() };
        let put = self.store.put_ours(&self.leader_writer, POD, (have, &object), |_| true).await;
        match &put {
            Ok(_) if have.is_none() && want.deletion.is_none() => {
                let (host, namespace, name) = (&self.host, &want.namespace, &want.pod);
                let message = format!(
                    "sent to cluster {host} as {namespace}/{name}; for its logs, in cluster {host}: kubectl -n {namespace} logs {name}"
                );
                self.events.tell(pod.object_ref(&()), "Offload", "Offloaded", &message);
            }
            Err(error @ (Error::Refused(_) | Error::Pruned { .. })) => {
                let message = format!("the Common Area does not take its ShadowPod: {error}");
                self.events.warn(pod.object_ref(&()), "Offload", "RecordRefused", &message);
            }
            Ok(_) | Err(_) => {}
        }
        put.map(drop)
    }

    /// Writes the status of a Pod, bound to the version that it was made of: its list of conditions has other writers.
    async fn say(&self, pod: &BoundPod, said: &Said) -> Result<(), Error> {
        let status = patch(pod.said(), &PodState::of(pod.said()), &said.state);
        let body = json!({"metadata": {"resourceVersion": pod.resource_version()}, "status": status});
        let written = self.store.write(POD, pod, self.local_writer.merge(pod, Some("status"), body)).await;
        match written {
            Ok(_) => {
                if let Some(warning) = &said.warning {
                    self.events.warn(pod.object_ref(&()), "Offload", warning.reason, &warning.message);
                }
                self.count(&pod.uid().unwrap_or_default(), said.state.phase.as_deref());
                Ok(())
            }
            Err(Error::Gone) => Ok(()),
            Err(error) => {
                if let Error::Refused(why) = &error {
                    let message = format!("what cluster {} says of it is refused here: {why}", self.host);
                    self.events.warn(pod.object_ref(&()), "Offload", "StatusRefused", &message);
                }
                Err(error)
            }
        }
    }

    /// A record without a Pod: the host deletes its own, then the record goes.
    async fn take_back(&self, uid: &str, record: &OwnShadowPod) -> Result<Outcome, Error> {
        if self.is_there(uid, record).await? {
            return Ok(Outcome::Requeue(SOON));
        }
        match record.wanted() {
            Some(spec) if spec.deletion.is_none() => {
                let spec = ShadowPodSpec { deletion: Some(Deletion::default()), ..spec.clone() };
                let want = OwnShadowPod { spec: Lenient(Ok(Some(spec))), ..record.clone() };
                self.store.put(&self.leader_writer, POD, Some(record), &want).await.map(drop)?;
                if has_ended(record) {
                    return Ok(Outcome::Requeue(SOON));
                }
            }
            Some(_) if !record.is_done() => {}
            // Of what cannot be read nobody makes a Pod.
            Some(_) | None => self.leader_writer.delete(record, false).await?,
        }
        Ok(Outcome::Done)
    }

    /// Whether the Pod of a record is there after all: asked of the API server, since our watch may be behind.
    async fn is_there(&self, uid: &str, record: &OwnShadowPod) -> Result<bool, Error> {
        let node = format!("spec.nodeName={}", names::virtual_node(&self.host));
        let fields = match record.wanted() {
            Some(spec) => format!("{node},metadata.name={}", spec.pod),
            None => node,
        };
        let pods = Api::<Meta<core::Pod>>::all(self.local.clone());
        let found = pods.list(&ListParams::default().fields(&fields)).await?;
        Ok(found.iter().any(|pod| pod.uid().as_deref() == Some(uid)))
    }
}

/// Whether the host has said before it was told that its Pod is gone: one that leaves does. It says nothing more of it.
fn has_ended(record: &OwnShadowPod) -> bool {
    record.said().is_some_and(|said| said.deleted)
}

fn phase(pod: &BoundPod) -> String {
    PodState::of(pod.said()).phase.unwrap_or_else(|| "Unknown".to_owned())
}
