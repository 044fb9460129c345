//! A Namespace of a consumer gets one here.
//!
//! Watches APIServiceNamespaces and the Namespaces that were made for them. Writes the Namespace, the consumer's rights in it and, after that,
//! `status.namespace`. Deletes the Namespace of an APIServiceNamespace that goes, if we made it and no other one needs it, or else
//! the consumer's rights in it; one that is missing deletes nothing. Without a prefix several consumers share a Namespace: it goes with the last. A pass begins with what is there, so it may run twice.

mod assigned;
mod ending;
mod pruned;

use std::time::Duration;

use api::{
    bind::{
        condition::{Answer, Severity, Verdict, conditions},
        export::APIServiceNamespace,
        label,
    },
    view::Named,
};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Namespace, rbac::v1::RoleBinding};
use kit::{
    boot::Env,
    index::Shared,
    list,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Api, Resource, ResourceExt, api::ListParams, core::ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(super) use self::assigned::{place, places, said};
use self::{
    assigned::{Refused, Use, assigned, contradiction, reserved, use_of, without_exports},
    ending::{Ending, ending},
    pruned::Pruned,
};
use super::{
    LOOK_AGAIN, ensure, free,
    key::Key,
    knowledge::Knowledge,
    known::Place,
    lean::is_held,
    live::{SOON, looked_at},
    refusal, rights,
};

/// Whether a Namespace here stands for it.
const ASSIGNED: &str = "Assigned";

/// How soon it is looked again whether a Namespace that is not ours may be used: it is in no watch.
const MAY_BE_LET: Duration = Duration::from_secs(30);

/// Whether a Namespace is there to be used.
enum Made {
    IsThere,
    /// It is being deleted.
    Goes,
    NotOurs,
}

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Namespaces {
    env: Env,
    knowledge: Knowledge,
    writer: Writer,
    prefix: String,
    pruned: Shared<Pruned>,
}

impl Namespaces {
    /// The controller; `prefix` is what the names of cluster namespaces begin with.
    pub(super) fn new(env: Env, knowledge: Knowledge, writer: Writer, prefix: String) -> Self {
        Self { env, knowledge, writer, prefix, pruned: Shared::default() }
    }

    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let namespace = looked_at(&key, &self.knowledge, &self.writer, |known| &known.namespaces).await?;
        let Some(namespace) = namespace else {
            self.pruned.with(|pruned| pruned.forget(&key));
            return Ok(Outcome::Done);
        };
        let ended = match namespace.metadata.deletion_timestamp {
            Some(_) => self.end(&key, &namespace).await,
            None => self.keep(&key, &namespace).await,
        };
        if let Err(Error::Refused(why)) = &ended {
            self.refuse(&key, &namespace, &Refused::ByServer(refusal(why))).await?;
        }
        ended
    }

    async fn keep(&self, key: &Key, namespace: &APIServiceNamespace) -> Result<Outcome, Error> {
        let name = self.knowledge.known.with(|known| {
            known.contract(&key.cluster_namespace)?;
            assigned(key, namespace, known)
        });
        let Some(name) = name else { return Ok(Outcome::Done) };
        let refused = self.knowledge.known.with(|known| contradiction(key, namespace, known));
        if let Some(refused) = refused {
            self.refuse(key, namespace, &refused).await?;
            return Ok(Outcome::Done);
        }
        if let Some(refused) = reserved(key, &name, &self.env.namespace, &self.prefix) {
            self.refuse(key, namespace, &refused).await?;
            return Ok(Outcome::Done);
        }
        if !is_held(&namespace.metadata) {
            self.writer.hold(namespace, label::BIND_FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        if let Some(owners) = without_exports(namespace) {
            let metadata =
                json!({"resourceVersion": namespace.resource_version(), "ownerReferences": owners});
            self.writer.merge(namespace, None, json!({"metadata": metadata})).await?;
            return Ok(Outcome::Done);
        }
        match self.make(key, &name).await? {
            Made::IsThere => {}
            Made::Goes => return Ok(Outcome::Requeue(MAY_BE_LET)),
            Made::NotOurs => {
                self.refuse(key, namespace, &Refused::NotOurs(name)).await?;
                return Ok(Outcome::Requeue(MAY_BE_LET));
            }
        }
        // An export that goes keeps the rights that it has, until it takes them back itself.
        let giving = self.knowledge.giving.of(&key.cluster_namespace);
        let Ok(giving) = giving.try_read() else { return Ok(Outcome::Requeue(SOON)) };
        let apis = self.knowledge.known.with(|known| rights::in_namespaces(&key.cluster_namespace, known));
        // One that is refused keeps no other.
        let mut given = Ok(());
        for api in apis {
            let right = rights::within(&name, &key.cluster_namespace, &api);
            given = given.and(ensure(&self.writer, &right).await.map(drop));
        }
        drop(giving);
        given?;
        self.say(key, namespace, Some(&name), Answer::Yes).await?;
        Ok(Outcome::Requeue(LOOK_AGAIN))
    }

    /// Makes the Namespace, unless it is there.
    async fn make(&self, key: &Key, name: &str) -> Result<Made, Error> {
        let place = self.knowledge.known.with(|known| known.place(name).cloned());
        let is_going = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        if place.is_some_and(|place| use_of(&place, key) == Use::Free && !is_going(&place.metadata)) {
            return Ok(Made::IsThere);
        }
        let mut want = Namespace::default();
        want.metadata.name = Some(name.to_owned());
        want.labels_mut().insert(label::BIND.to_owned(), label::OBJECTS.to_owned());
        want.annotations_mut().insert(label::API_SERVICE_NAMESPACE.to_owned(), key.to_string());
        // One that was adopted is in no watch.
        let there = match self.writer.read(&want).await {
            Err(Error::Gone) => match self.writer.put(None, &want).await {
                Ok(_) => return Ok(Made::IsThere),
                Err(Error::Stale) => self.writer.read(&want).await?,
                Err(error) => return Err(error),
            },
            there => there?,
        };
        match use_of(&there, key) {
            Use::NotOurs => Ok(Made::NotOurs),
            // What is going is made anew.
            Use::Free | Use::ToShare if is_going(&there.metadata) => Ok(Made::Goes),
            Use::Free => Ok(Made::IsThere),
            Use::ToShare => {
                // First, so that nobody takes an object of the others for one of its own.
                self.annotate(&there, json!({label::SHARED: "true"})).await?;
                tracing::info!(namespace = name, with = %key, "consumers share a Namespace");
                Ok(Made::IsThere)
            }
        }
    }

    async fn annotate<P>(&self, place: &P, annotations: Value) -> Result<(), Error>
    where
        P: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let metadata = json!({"resourceVersion": place.resource_version(), "annotations": annotations});
        self.writer.merge(place, None, json!({ "metadata": metadata })).await.map(drop)
    }

    async fn refuse(
        &self,
        key: &Key,
        namespace: &APIServiceNamespace,
        refused: &Refused,
    ) -> Result<(), Error> {
        let answer = Answer::No(Severity::Error, refused.reason(), refused.to_string());
        let mut said_of = namespace.status.iter().flat_map(|status| &status.conditions);
        let is_news = !said_of.any(|condition| condition.reason.as_deref() == Some(refused.reason()))
            && !self.has_said(key, namespace, &answer);
        if is_news {
            self.env.events.warn(namespace.object_ref(&()), "Assign", refused.reason(), &refused.to_string());
        }
        self.say(key, namespace, refused.leaves(namespace), answer).await
    }

    async fn say(
        &self,
        key: &Key,
        namespace: &APIServiceNamespace,
        name: Option<&str>,
        answer: Answer,
    ) -> Result<(), Error> {
        let have = namespace.status.clone().unwrap_or_default();
        let verdict = Verdict::new(ASSIGNED, answer.clone());
        let all = conditions(&have.conditions, &[verdict], &[], Timestamp::now());
        let is_said = all == have.conditions || self.has_said(key, namespace, &answer);
        if is_said && have.namespace.as_deref() == name {
            return Ok(());
        }
        let status = json!({"namespace": name, "conditions": all});
        let patch = json!({"metadata": {"resourceVersion": namespace.resource_version()}, "status": status});
        let there = self.writer.merge(namespace, Some("status"), patch).await?;
        let kept = there.status.unwrap_or_default().conditions;
        self.pruned.with(|pruned| pruned.said(key, namespace.uid(), answer, &kept));
        Ok(())
    }

    fn has_said(&self, key: &Key, namespace: &APIServiceNamespace, answer: &Answer) -> bool {
        self.pruned.with(|pruned| pruned.has(key, namespace.metadata.uid.as_deref(), answer))
    }

    /// What was made for it goes, then it may go.
    async fn end(&self, key: &Key, namespace: &APIServiceNamespace) -> Result<Outcome, Error> {
        let is_ending = self.knowledge.known.with(|known| known.is_ending(&key.cluster_namespace));
        if is_held(&namespace.metadata) {
            for within in places(namespace) {
                let place = self.place(&within).await?;
                let at = (within.as_str(), place.as_ref());
                match self.knowledge.known.with(|known| ending(key, namespace, at, known)) {
                    Ending::Delete(place) if place.metadata.deletion_timestamp.is_some() => {
                        return Ok(Outcome::Done);
                    }
                    Ending::Delete(place) => {
                        // Only as it is known: it may have become another one's meanwhile.
                        self.writer.delete(&place, true).await?;
                        tracing::info!(namespace = within, "the consumer's Namespace is gone: so is ours");
                        return Ok(Outcome::Done);
                    }
                    Ending::HandOver(place, heir) => {
                        self.annotate(&place, json!({label::API_SERVICE_NAMESPACE: heir.to_string()}))
                            .await?;
                    }
                    Ending::Stays => {}
                }
                // One that others use, or that was there before, stays without the rights in it.
                self.take_back(&within, &key.cluster_namespace).await?;
            }
        }
        if is_ending {
            free(&self.writer, namespace).await?;
        } else if is_held(&namespace.metadata) {
            self.release(namespace).await?;
        }
        Ok(Outcome::Done)
    }

    /// The Namespace of this name, also where no watch has told of it: whoever made it may not be there any more when one does.
    async fn place(&self, name: &str) -> Result<Option<Place>, Error> {
        if let Some(place) = self.knowledge.known.with(|known| known.place(name).cloned()) {
            return Ok(Some(place));
        }
        match self.writer.read(&Place::named(name)).await {
            Ok(there) => Ok(Some(there)),
            Err(Error::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All rights of the consumer in a Namespace, of whatever API: exports and schemas may be gone before.
    async fn take_back(&self, within: &str, cluster_namespace: &str) -> Result<(), Error> {
        let all = Api::<Named<RoleBinding>>::namespaced(self.env.client.clone(), within);
        let names = list::all(&all, ListParams::default(), |binding| binding.name_any()).await?;
        for name in names.iter().filter(|name| rights::may_be_of(name, cluster_namespace)) {
            let mut binding = RoleBinding::default();
            binding.metadata.name = Some(name.clone());
            binding.metadata.namespace = Some(within.to_owned());
            match self.writer.read(&binding).await {
                Ok(there) if rights::is_of(&there, cluster_namespace) => {
                    self.writer.delete(&there, false).await?;
                }
                Ok(_) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Finalizers of others stay, of which not all may be known.
    async fn release(&self, namespace: &APIServiceNamespace) -> Result<(), Error> {
        match self.writer.read(namespace).await {
            Ok(there) if there.uid() == namespace.uid() => {
                self.writer.release(&there, &[label::BIND_FINALIZER]).await
            }
            Ok(_) | Err(Error::Gone) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
