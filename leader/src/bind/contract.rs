//! Who asks to be a consumer gets a cluster namespace.
//!
//! Watches BindableResourcesRequests in the daemon's Namespace. Writes the cluster namespace, which of its templates are granted, the
//! answer, and the status. Deletes requests whose time after the end is over. The same identity always gets the same cluster namespace,
//! so a pass may run twice.

use std::time::Duration;

use api::bind::{
    export::Phase,
    identity::cluster_namespace,
    label,
    offer::{APIServiceExportTemplate, BindableResourcesRequest},
    resource::SecretKey,
};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::{
    credential::{KUBECONFIG, kubeconfig_secret},
    knowledge::Knowledge,
    known::{Known, Place, granted_templates},
    live::{SOON, age, is_newer, looks_again},
};

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Contracts {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) prefix: String,
}

/// Why somebody does not become a consumer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("spec.clusterIdentity.identity is empty")]
    NoIdentity,
    #[error("there is no APIServiceExportTemplate {0}")]
    TemplateNotFound(String),
    #[error("Namespace {0} is there already, and is not the cluster namespace of this identity")]
    NotOurs(String),
    #[error("the answer cannot be written to Secret {0}: {1}")]
    Answer(String, String),
}

impl Refused {
    fn reason(&self) -> &'static str {
        match self {
            Self::NoIdentity => "NoIdentity",
            Self::TemplateNotFound(_) => "TemplateNotFound",
            Self::NotOurs(_) => "NotOurs",
            Self::Answer(..) => "AnswerRefused",
        }
    }
}

/// What is to be written for a consumer.
#[derive(Clone, Debug)]
enum Desired {
    Create(Namespace),
    /// Another value of this annotation.
    Grant(Place, String),
    Stays,
}

/// What the cluster namespace of this name has to be.
fn desired(ask: &BindableResourcesRequest, name: &str, known: &Known) -> Result<Desired, Refused> {
    let spec = &ask.spec;
    let identity = spec.cluster_identity.identity.as_deref().unwrap_or_default();
    if identity.is_empty() {
        return Err(Refused::NoIdentity);
    }
    let template = spec.template_ref.as_ref().map(|template| template.name.as_str());
    if let Some(template) = template.filter(|template| known.templates.get(template).is_none()) {
        return Err(Refused::TemplateNotFound(template.to_owned()));
    }
    let Some(have) = known.contract(name) else {
        let granted = template.map(|template| (label::GRANTED_TEMPLATES, template));
        let called = spec.cluster_identity.pretty_name.clone().filter(|name| !name.is_empty());
        let called = called.unwrap_or_else(|| ask.name_any());
        let annotations = [
            (label::IDENTITY, identity),
            (label::AUTHOR, spec.author.as_str()),
            (label::CLUSTER_PRETTY_NAME, called.as_str()),
        ];
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.labels_mut().insert(label::BIND.to_owned(), label::CONTRACT.to_owned());
        namespace.annotations_mut().extend(
            annotations.into_iter().chain(granted).map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        return Ok(Desired::Create(namespace));
    };
    if have.annotations().get(label::IDENTITY).is_none_or(|had| had != identity) {
        return Err(Refused::NotOurs(name.to_owned()));
    }
    let mut granted = granted_templates(have);
    match template {
        Some(template) if !granted.iter().any(|had| had == template) => {
            granted.push(template.to_owned());
            Ok(Desired::Grant(have.clone(), granted.join(",")))
        }
        _ => Ok(Desired::Stays),
    }
}

/// Only of what was read: another request may have been granted something meanwhile.
fn granting(have: &Place, granted: &str) -> Value {
    let annotations = json!({label::GRANTED_TEMPLATES: granted});
    json!({"metadata": {"resourceVersion": have.resource_version(), "annotations": annotations}})
}

impl Contracts {
    /// One pass of the request of this name.
    pub(super) async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let Some(ask) = self.knowledge.known.with(|known| known.asks.get(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let status = ask.status.clone().unwrap_or_default();
        if status.phase != Phase::Pending {
            return self.over(&ask, Timestamp::now()).await;
        }
        let identity = ask.spec.cluster_identity.identity.clone().unwrap_or_default();
        let contract = self.knowledge.known.with(|known| known.contract_of(&identity));
        let contract = contract.unwrap_or_else(|| cluster_namespace(&self.prefix, &identity));
        let desired = self.knowledge.known.with(|known| desired(&ask, &contract, known));
        match desired {
            Err(refused) => {
                let age = age(&ask.metadata, Timestamp::now());
                return match looks_again(age, self.is_behind(&refused)).await? {
                    Some(left) => Ok(Outcome::Requeue(left)),
                    None => self.fail(&ask, &refused).await,
                };
            }
            Ok(Desired::Create(namespace)) => {
                return match self.writer.put(None, &namespace).await {
                    // The watch tells; the next pass goes on.
                    Ok(_) => Ok(Outcome::Requeue(SOON)),
                    Err(Error::Stale) => match self.writer.read(&namespace).await {
                        Ok(there) if there.labels().contains_key(label::BIND) => Ok(Outcome::Requeue(SOON)),
                        Ok(_) => self.fail(&ask, &Refused::NotOurs(contract)).await,
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                };
            }
            Ok(Desired::Grant(have, granted)) => {
                self.writer.merge(&have, None, granting(&have, &granted)).await?;
            }
            Ok(Desired::Stays) => {}
        }
        let secret = match self.writer.read(&kubeconfig_secret(&contract)).await {
            Ok(secret) => secret,
            Err(Error::Gone) => return Ok(Outcome::Requeue(SOON)),
            Err(error) => return Err(error),
        };
        let Some(kubeconfig) = secret.data.as_ref().and_then(|data| data.get(KUBECONFIG)) else {
            return Ok(Outcome::Requeue(SOON));
        };
        self.answer(&ask, &contract, kubeconfig).await
    }

    /// Whether what it was refused for is there.
    async fn is_behind(&self, refused: &Refused) -> Result<bool, Error> {
        match refused {
            Refused::TemplateNotFound(name) => {
                is_newer::<APIServiceExportTemplate>(&self.writer, name, &[], None).await
            }
            Refused::NoIdentity | Refused::NotOurs(_) | Refused::Answer(..) => Ok(false),
        }
    }

    /// Gives the credential, and says so.
    async fn answer(
        &self,
        ask: &BindableResourcesRequest,
        contract: &str,
        kubeconfig: &ByteString,
    ) -> Result<Outcome, Error> {
        let at = ask.spec.kubeconfig_secret_ref.clone().unwrap_or_else(|| SecretKey {
            name: format!("{}-binding-response", ask.name_any()),
            key: "binding-response".to_owned(),
        });
        let answer = ByteString(response(kubeconfig).to_string().into_bytes());
        let mut secret = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
        secret.metadata.name = Some(at.name.clone());
        secret.metadata.namespace = Some(self.env.namespace.clone());
        let written = match self.writer.read(&secret).await {
            Ok(there) => {
                self.writer.merge(&there, None, json!({"data": {at.key.clone(): answer}})).await.map(drop)
            }
            Err(Error::Gone) => {
                secret.metadata.owner_references = ask.controller_owner_ref(&()).map(|owner| vec![owner]);
                secret.data = Some([(at.key.clone(), answer)].into());
                self.writer.put(None, &secret).await.map(drop)
            }
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => {}
            // Somebody's own Secret has that name, for example.
            Err(Error::Refused(why)) => return self.fail(ask, &Refused::Answer(at.name, why)).await,
            Err(error) => return Err(error),
        }
        tracing::info!(request = ask.name_any(), cluster_namespace = contract, "somebody became a consumer");
        let more = json!({"namespace": contract, "kubeconfigSecretRef": at});
        self.say(ask, Phase::Succeeded, ("Succeeded", "the credential is in the Secret"), more).await
    }

    async fn fail(&self, ask: &BindableResourcesRequest, refused: &Refused) -> Result<Outcome, Error> {
        self.env.events.warn(ask.object_ref(&()), "Bind", refused.reason(), &refused.to_string());
        self.say(ask, Phase::Failed, (refused.reason(), &refused.to_string()), json!({})).await
    }

    async fn say(
        &self,
        ask: &BindableResourcesRequest,
        phase: Phase,
        (reason, message): (&str, &str),
        mut status: Value,
    ) -> Result<Outcome, Error> {
        let now = Timestamp::now().to_string();
        let is_so = if phase == Phase::Succeeded { "True" } else { "False" };
        status["phase"] = json!(phase);
        status["completionTime"] = json!(now);
        status["conditions"] = json!([{
            "type": "Ready", "status": is_so, "reason": reason, "message": message, "lastTransitionTime": now,
            "observedGeneration": ask.metadata.generation,
        }]);
        let patch = json!({"metadata": {"resourceVersion": ask.resource_version()}, "status": status});
        self.writer.merge(ask, Some("status"), patch).await?;
        Ok(Outcome::Done)
    }

    /// A finished request goes when its time is over.
    async fn over(&self, ask: &BindableResourcesRequest, now: Timestamp) -> Result<Outcome, Error> {
        let ended = ask.status.as_ref().and_then(|status| Some(status.completion_time.as_ref()?.0));
        let (Some(ended), Some(stays)) = (ended, ask.spec.ttl_after_finished) else {
            return Ok(Outcome::Done);
        };
        let since = Duration::try_from(now.duration_since(ended)).unwrap_or_default();
        match stays.0.checked_sub(since) {
            Some(left) if !left.is_zero() => Ok(Outcome::Requeue(left)),
            _ => self.writer.delete(ask, false).await.map(|()| Outcome::Done),
        }
    }
}

/// The credential, as kube-bind answers.
fn response(kubeconfig: &ByteString) -> Value {
    json!({
        "kind": "BindingResourceResponse", "apiVersion": "kube-bind.io/v1alpha2", "authentication": {},
        "kubeconfig": kubeconfig, "requests": null,
    })
}

#[cfg(test)]
mod tests {
    use kit::objects::Change;

    use super::*;

    fn ask(identity: &str, template: &str) -> BindableResourcesRequest {
        let of = json!({"clusterIdentity": {"identity": identity}, "author": "me", "templateRef": {"name": template}});
        serde_json::from_value(json!({"metadata": {"name": "east"}, "spec": of})).unwrap()
    }

    fn known(identity: &str, granted: &str) -> Known {
        let mut known = Known::default();
        for name in ["small", "large"] {
            let template =
                json!({"metadata": {"name": name}, "spec": {"scope": "Namespaced", "resources": []}});
            known.templates.change(Change::Apply(serde_json::from_value(template).unwrap()));
        }
        let annotations = json!({label::IDENTITY: identity, label::GRANTED_TEMPLATES: granted});
        let place = json!({"metadata": {"name": "cns", "resourceVersion": "7", "labels": {label::BIND: label::CONTRACT}, "annotations": annotations}});
        known.places.change(Change::Apply(serde_json::from_value(place).unwrap()));
        known
    }

    #[test]
    fn the_same_identity_has_one_cluster_namespace_with_all_that_it_was_granted() {
        let Ok(Desired::Create(namespace)) = desired(&ask("a", "small"), "other", &known("a", "")) else {
            panic!("not created")
        };
        assert_eq!(namespace.annotations()[label::IDENTITY], "a");
        assert_eq!(namespace.annotations()[label::CLUSTER_PRETTY_NAME], "east");
        assert_eq!(namespace.annotations()[label::GRANTED_TEMPLATES], "small");
        let again = desired(&ask("a", "large"), "cns", &known("a", "small"));
        let Ok(Desired::Grant(have, granted)) = again else { panic!("{again:?}") };
        assert_eq!(granted, "small,large");
        assert_eq!(granting(&have, &granted)["metadata"]["resourceVersion"], "7", "no other grant is lost");
        assert!(matches!(desired(&ask("a", "small"), "cns", &known("a", "small")), Ok(Desired::Stays)));
    }

    #[test]
    fn an_identity_keeps_its_cluster_namespace_under_another_prefix() {
        assert_eq!(known("a", "").contract_of("a").as_deref(), Some("cns"));
        assert_eq!(known("a", "").contract_of("b"), None);
        assert_eq!(known("", "").contract_of(""), None);
    }

    #[test]
    fn anothers_cluster_namespace_is_not_given() {
        let refused = |ask, known| desired(&ask, "cns", &known).unwrap_err();
        assert_eq!(refused(ask("a", "small"), known("b", "")), Refused::NotOurs("cns".into()));
        assert_eq!(refused(ask("", "small"), known("", "")), Refused::NoIdentity);
        assert_eq!(refused(ask("a", "gone"), known("a", "")), Refused::TemplateNotFound("gone".into()));
    }
}
