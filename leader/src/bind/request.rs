//! What a consumer asks for is judged, and exported.
//!
//! Watches APIServiceExportRequests, templates and exported CRDs. Writes BoundSchemas, the APIServiceExport and the APIServiceNamespaces of a
//! request that is granted, and its status. Deletes requests ten minutes after their end, and BoundSchemas that no export has when a request
//! goes or fails. What is there already is left as it is, so a pass may run twice.

mod exports;
#[cfg(test)]
mod fixture;
mod judge;
mod left;
mod place;
mod unread;

use std::time::Duration;

use api::bind::{
    condition::{Answer, READY, Severity, Verdict, conditions},
    export::{APIServiceExportRequest, APIServiceExportRequestStatus, Phase},
    grant::{EXPORT_IS_GOING, EXPORTS_READY, PERMISSION_CLAIM, Refused},
    resource::{InformerScope, Isolation},
};
use jiff::Timestamp;
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource as _, ResourceExt};
use serde_json::json;

pub(super) use self::left::is_made_here;
use self::{
    exports::Exports,
    judge::{Exported, desired, is_granted_by},
    left::{left, renew},
};
use super::{
    REFUSED, free,
    key::Key,
    knowledge::Knowledge,
    live::{SOON, age, is_behind, left as time_left, looked_at, looks_again},
    refusal,
};

/// How soon a request is looked at again while another one of the same consumer is judged.
const NEXT_TURN: Duration = Duration::from_millis(200);

/// How long a request stays after its end.
const STAYS: Duration = Duration::from_secs(600);

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) isolation: Isolation,
    pub(super) scope: InformerScope,
}

impl Requests {
    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let request = looked_at(&key, &self.knowledge, &self.writer, |known| &known.requests).await?;
        let Some(request) = request else { return self.unknown(&key).await };
        let (has_contract, is_ending) = self.knowledge.known.with(|known| {
            let contract = &key.cluster_namespace;
            (known.contract(contract).is_some(), known.is_ending(contract))
        });
        if request.metadata.deletion_timestamp.is_some() && is_ending {
            free(&self.writer, &request).await?;
        }
        if request.metadata.deletion_timestamp.is_some() || !has_contract {
            return Ok(Outcome::Done);
        }
        let status = request.status.clone().unwrap_or_default();
        if status.phase != Phase::Pending {
            return self.over(&request, &status, Timestamp::now()).await;
        }
        // What one request gets another one of the same consumer may not get any more. Who waits for that keeps no others waiting.
        let turn = self.knowledge.turns.of(&key.cluster_namespace);
        let Ok(_mine) = turn.try_lock() else { return Ok(Outcome::Requeue(NEXT_TURN)) };
        let choices = (self.isolation, self.scope);
        match self.knowledge.known.with(|known| desired(&key, &request, known, choices)) {
            Ok(exported) => {
                let ended = self.export(&request, exported).await;
                match &ended {
                    Err(Error::Refused(why)) => {
                        self.wait(&request, (Severity::Error, REFUSED), refusal(why)).await?;
                    }
                    Err(error @ Error::NotOurs { kind, name }) => {
                        let message = format!(
                            "{error}. The provider's administrator must delete {kind} {name} in Namespace {}",
                            key.cluster_namespace
                        );
                        self.wait(&request, (Severity::Error, "NotOurs"), message).await?;
                    }
                    _ => {}
                }
                ended
            }
            // It is judged again when that export is gone, of which the watch tells.
            Err(refused) if refused.reason == EXPORT_IS_GOING => {
                self.wait(&request, (Severity::Info, EXPORT_IS_GOING), refused.message).await
            }
            Err(refused) => {
                let age = age(&request.metadata, Timestamp::now());
                match looks_again(age, is_behind(&request, &self.knowledge, &self.writer)).await? {
                    Some(left) => Ok(Outcome::Requeue(left)),
                    None => self.fail(&request, &refused).await,
                }
            }
        }
    }

    /// One pass of a request that is gone, or not read.
    async fn unknown(&self, key: &Key) -> Result<Outcome, Error> {
        let cluster_namespace = key.cluster_namespace.as_str();
        let (odd, is_swept, has_contract) = self.knowledge.known.with(|known| {
            let odd = known.requests.odd(key).map(str::to_owned);
            (odd, left(cluster_namespace, known).is_empty(), known.contract(cluster_namespace).is_some())
        });
        if !has_contract || odd.is_none() && is_swept {
            return Ok(Outcome::Done);
        }
        // What another one is being granted has no export yet.
        let turn = self.knowledge.turns.of(cluster_namespace);
        let Ok(_mine) = turn.try_lock() else { return Ok(Outcome::Requeue(NEXT_TURN)) };
        match odd {
            Some(why) => self.refuse(key, &why).await,
            None if self.delete_left(cluster_namespace).await? => Ok(Outcome::Done),
            None => Ok(Outcome::Requeue(SOON)),
        }
    }

    async fn export(&self, request: &APIServiceExportRequest, exported: Exported) -> Result<Outcome, Error> {
        match self.exports(&Key::of(request).cluster_namespace).await? {
            Exports::Known => {}
            Exports::Behind => return Ok(Outcome::Requeue(SOON)),
            Exports::Unreadable(message) => {
                return self.wait(request, (Severity::Error, "ExportNotReadable"), message).await;
            }
        }
        let key = Key::of(&exported.export).pair();
        let there = self.knowledge.known.with(|known| known.exports.named(&key).cloned());
        match &there {
            // It is made anew when it is gone, of which the watch tells.
            Some(there) if there.metadata.deletion_timestamp.is_some() => {
                let message = format!(
                    "APIServiceExport {} is being deleted: it goes when nobody binds it",
                    there.name_any()
                );
                return self.wait(request, (Severity::Info, EXPORT_IS_GOING), message).await;
            }
            Some(there) if !is_granted_by(&request.spec, &there.spec) => {
                let message = format!(
                    "APIServiceExport {} is there already, for other APIs, versions or claims",
                    there.name_any()
                );
                let refused = Refused { condition: EXPORTS_READY, reason: "AlreadyBound", message };
                return self.fail(request, &refused).await;
            }
            Some(_) | None => {}
        }
        for schema in &exported.schemas {
            match there {
                Some(_) => self.create(schema).await?,
                None => renew(&self.writer, schema).await?,
            }
        }
        if there.is_none() {
            self.create(&exported.export).await?;
        }
        for namespace in &exported.namespaces {
            self.create(namespace).await?;
            // Of one that was there: nobody would make it again.
            if self.writer.read(namespace).await?.metadata.deletion_timestamp.is_some() {
                let message = format!("APIServiceNamespace {} is being deleted", namespace.name_any());
                self.wait(request, (Severity::Info, "NamespaceIsGoing"), message).await?;
                return Ok(Outcome::Requeue(SOON));
            }
        }
        if !exported.left_out.is_empty() {
            let message = format!("not carried to the consumer: {}", exported.left_out.join(", "));
            self.env.events.tell(request.object_ref(&()), "Export", "LeftOut", &message);
        }
        tracing::info!(namespace = request.namespace(), request = request.name_any(), "exported");
        let verdicts =
            [Verdict::new(EXPORTS_READY, Answer::Yes), Verdict::new(PERMISSION_CLAIM, Answer::Yes)];
        self.say(request, Phase::Succeeded, &verdicts, None).await
    }

    /// Says what is in the way. It is looked at again.
    async fn wait(
        &self,
        request: &APIServiceExportRequest,
        (severity, reason): (Severity, &'static str),
        message: String,
    ) -> Result<Outcome, Error> {
        let mut said = request.status.iter().flat_map(|status| &status.conditions);
        if severity == Severity::Error && !said.any(|said| said.reason.as_deref() == Some(reason)) {
            self.env.events.warn(request.object_ref(&()), "Export", reason, &message);
        }
        let answer = Answer::No(severity, reason, message);
        self.say(request, Phase::Pending, &[Verdict::new(EXPORTS_READY, answer)], None).await
    }

    async fn create<P>(&self, want: &P) -> Result<(), Error>
    where
        P: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        match self.writer.put(None, want).await {
            Ok(_) | Err(Error::Stale) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn fail(&self, request: &APIServiceExportRequest, refused: &Refused) -> Result<Outcome, Error> {
        self.env.events.warn(request.object_ref(&()), "Export", refused.reason, &refused.message);
        let answer = Answer::No(Severity::Error, refused.reason, refused.message.clone());
        let message = Some(refused.message.clone());
        let ended =
            self.say(request, Phase::Failed, &[Verdict::new(refused.condition, answer)], message).await?;
        // What is not known now is looked at again when the request goes.
        self.delete_left(&Key::of(request).cluster_namespace).await.map(|_| ended)
    }

    async fn say(
        &self,
        request: &APIServiceExportRequest,
        phase: Phase,
        verdicts: &[Verdict],
        terminal_message: Option<String>,
    ) -> Result<Outcome, Error> {
        let have = request.status.clone().unwrap_or_default();
        let conditions = conditions(&have.conditions, verdicts, &[], Timestamp::now());
        let status = APIServiceExportRequestStatus { phase, terminal_message, conditions };
        if request.status.as_ref() == Some(&status) {
            return Ok(Outcome::Done);
        }
        let patch = json!({"metadata": {"resourceVersion": request.resource_version()}, "status": status});
        self.writer.merge(request, Some("status"), patch).await?;
        Ok(Outcome::Done)
    }

    /// A finished request goes when its time is over.
    async fn over(
        &self,
        request: &APIServiceExportRequest,
        status: &APIServiceExportRequestStatus,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        let ready = status.conditions.iter().find(|condition| condition.type_ == READY);
        let ended = ready.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0)).unwrap_or(now);
        match time_left(ended, STAYS, now) {
            Some(left) => Ok(Outcome::Requeue(left)),
            None => self.writer.delete(request, false).await.map(|()| Outcome::Done),
        }
    }
}
