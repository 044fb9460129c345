//! A Namespace of a consumer gets one here.
//!
//! Watches APIServiceNamespaces and the Namespaces that were made for them. Writes the Namespace, the consumer's rights in it and, after that,
//! `status.namespace`. Deletes the Namespace of an APIServiceNamespace that goes, if we made it and no other one needs it, or else
//! the consumer's rights in it; one that is missing deletes nothing. Without a prefix several consumers share a Namespace: it goes with the last. A pass begins with what is there, so it may run twice.

mod assigned;

use std::time::Duration;

use api::bind::{
    condition::{Answer, Severity, Verdict, conditions},
    export::APIServiceNamespace,
    label,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt, core::ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::assigned::{Ending, Refused, Use, assigned, ending, is_live, reserved, use_of, without_exports};
use super::{LOOK_AGAIN, ensure, knowledge::Knowledge, known::Key, remove, rights};

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
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    /// What the names of cluster namespaces begin with.
    pub(super) prefix: String,
}

impl Namespaces {
    /// One pass.
    pub(super) async fn reconcile(self, key: Key) -> Result<Outcome, Error> {
        let found = self.knowledge.known.with(|known| {
            let namespace = known.namespaces.named(&key.pair())?.clone();
            let name = assigned(&key, &namespace, known);
            let has_contract = known.contract(&key.cluster_namespace).is_some();
            Some((namespace, name, has_contract))
        });
        let Some((namespace, name, has_contract)) = found else { return Ok(Outcome::Done) };
        if namespace.metadata.deletion_timestamp.is_some() {
            return self.end(&key, &namespace, name).await;
        }
        let Some(name) = name.filter(|_| has_contract) else { return Ok(Outcome::Done) };
        if let Some(refused) = reserved(&key, &name, &self.env.namespace, &self.prefix) {
            return self.refuse(&namespace, &refused).await;
        }
        if !namespace.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            self.writer.hold(&namespace, label::BIND_FINALIZER).await?;
            return Ok(Outcome::Done);
        }
        if let Some(owners) = without_exports(&namespace) {
            let metadata =
                json!({"resourceVersion": namespace.resource_version(), "ownerReferences": owners});
            self.writer.merge(&namespace, None, json!({"metadata": metadata})).await?;
            return Ok(Outcome::Done);
        }
        match self.make(&key, &name).await? {
            Made::IsThere => {}
            Made::Goes => return Ok(Outcome::Requeue(MAY_BE_LET)),
            Made::NotOurs => {
                self.refuse(&namespace, &Refused::NotOurs(name)).await?;
                return Ok(Outcome::Requeue(MAY_BE_LET));
            }
        }
        // An export that goes keeps the rights that it has, until it takes them back itself.
        let giving = self.knowledge.giving.read().await;
        let apis =
            self.knowledge.known.with(|known| rights::in_namespaces(&key.cluster_namespace, known, is_live));
        for api in apis {
            ensure(&self.writer, &rights::within(&name, &key.cluster_namespace, &api)).await?;
        }
        drop(giving);
        self.say(&namespace, Some(&name), Answer::Yes).await?;
        Ok(Outcome::Requeue(LOOK_AGAIN))
    }

    /// Makes the Namespace, unless it is there.
    async fn make(&self, key: &Key, name: &str) -> Result<Made, Error> {
        let place = self.knowledge.known.with(|known| known.places.get(name).cloned());
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

    async fn refuse(&self, namespace: &APIServiceNamespace, refused: &Refused) -> Result<Outcome, Error> {
        let is_news = !namespace
            .status
            .iter()
            .flat_map(|status| &status.conditions)
            .any(|condition| condition.reason.as_deref() == Some(refused.reason()));
        if is_news {
            self.env.events.warn(namespace.object_ref(&()), "Assign", refused.reason(), &refused.to_string());
        }
        self.say(namespace, None, Answer::No(Severity::Error, refused.reason(), refused.to_string())).await
    }

    async fn say(
        &self,
        namespace: &APIServiceNamespace,
        name: Option<&str>,
        answer: Answer,
    ) -> Result<Outcome, Error> {
        let have = namespace.status.clone().unwrap_or_default();
        let all = conditions(&have.conditions, &[Verdict::new("Assigned", answer)], &[], Timestamp::now());
        if all == have.conditions && have.namespace.as_deref() == name {
            return Ok(Outcome::Done);
        }
        let status = json!({"namespace": name, "conditions": all});
        let patch = json!({"metadata": {"resourceVersion": namespace.resource_version()}, "status": status});
        self.writer.merge(namespace, Some("status"), patch).await?;
        Ok(Outcome::Done)
    }

    /// What was made for it goes, then it may go.
    async fn end(
        &self,
        key: &Key,
        namespace: &APIServiceNamespace,
        name: Option<String>,
    ) -> Result<Outcome, Error> {
        if !namespace.finalizers().iter().any(|held| held == label::BIND_FINALIZER) {
            return Ok(Outcome::Done);
        }
        let within = name.unwrap_or_default();
        match self.knowledge.known.with(|known| ending(key, namespace, &within, known)) {
            Ending::Delete(place) if place.metadata.deletion_timestamp.is_some() => return Ok(Outcome::Done),
            Ending::Delete(place) => {
                self.writer.delete(&place, false).await?;
                tracing::info!(namespace = within, "the consumer's Namespace is gone: so is ours");
                return Ok(Outcome::Done);
            }
            Ending::HandOver(place, heir) => {
                self.annotate(&place, json!({label::API_SERVICE_NAMESPACE: heir.to_string()})).await?;
            }
            Ending::Stays => {}
        }
        // One that others use, or that was there before, stays without the rights in it.
        let apis =
            self.knowledge.known.with(|known| rights::in_namespaces(&key.cluster_namespace, known, |_| true));
        for api in apis {
            remove(&self.writer, &rights::within(&within, &key.cluster_namespace, &api)).await?;
        }
        self.writer.release(namespace, &[label::BIND_FINALIZER]).await?;
        Ok(Outcome::Done)
    }
}
