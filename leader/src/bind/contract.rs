//! Who asks to be a consumer gets a cluster namespace.
//!
//! Watches BindableResourcesRequests in the daemon's Namespace. Writes the cluster namespace, which of its templates are granted, the
//! answer, and the status. Deletes requests whose time after the end is over. The same identity always gets the same cluster namespace,
//! so a pass may run twice.

mod judge;

use api::bind::{
    export::Phase,
    identity::cluster_namespace,
    label,
    offer::{APIServiceExportTemplate, BindableResourcesRequest},
};
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, ServiceAccount},
};
use kit::{
    boot::Env,
    queue::Outcome,
    write::{Error, Writer},
};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use self::judge::{Desired, Refused, answered_at, answering, desired, granting, is_no_answer, response};
use super::{
    LOOK_AGAIN, REFUSED,
    credential::{BINDER, KUBECONFIG, is_of, kubeconfig_secret},
    knowledge::Knowledge,
    live::{SOON, age, is_newer, left, looks_again},
    refusal,
};

/// The controller. Cloning shares it.
#[derive(Clone)]
pub(super) struct Contracts {
    pub(super) env: Env,
    pub(super) knowledge: Knowledge,
    pub(super) writer: Writer,
    pub(super) prefix: String,
}

impl Contracts {
    /// One pass of the request of this name.
    pub(super) async fn reconcile(self, name: String) -> Result<Outcome, Error> {
        let name = (self.env.namespace.clone(), name);
        let Some(ask) = self.knowledge.known.with(|known| known.asks.named(&name).cloned()) else {
            return Ok(Outcome::Done);
        };
        let status = ask.status.clone().unwrap_or_default();
        if status.phase != Phase::Pending {
            return self.over(&ask, Timestamp::now()).await;
        }
        let ended = self.contract(&ask).await;
        if let Err(Error::Refused(why)) = &ended {
            self.wait(&ask, REFUSED, &refusal(why)).await?;
        }
        ended
    }

    async fn contract(&self, ask: &BindableResourcesRequest) -> Result<Outcome, Error> {
        let identity = ask.spec.cluster_identity.identity.clone().unwrap_or_default();
        let contract = self.knowledge.known.with(|known| known.contract_of(&identity));
        let contract = contract.unwrap_or_else(|| cluster_namespace(&self.prefix, &identity));
        let desired = self.knowledge.known.with(|known| desired(ask, &contract, known));
        match desired {
            Err(refused) => {
                let age = age(&ask.metadata, Timestamp::now());
                return match looks_again(age, self.is_behind(&refused)).await? {
                    Some(left) => Ok(Outcome::Requeue(left)),
                    None => self.fail(ask, &refused).await,
                };
            }
            Ok(Desired::Create(namespace)) => {
                return match self.writer.put(None, &namespace).await {
                    // The watch tells; the next pass goes on.
                    Ok(_) => Ok(Outcome::Requeue(SOON)),
                    Err(Error::Stale) => match self.writer.read(&namespace).await {
                        Ok(there) if there.metadata.deletion_timestamp.is_some() => Ok(Outcome::Failed),
                        Ok(there) if there.labels().contains_key(label::BIND) => Ok(Outcome::Requeue(SOON)),
                        Ok(_) => self.fail(ask, &Refused::NotOurs(contract)).await,
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                };
            }
            Ok(Desired::Waits) => {
                let message = format!("Namespace {contract} of an earlier contract is being deleted");
                self.wait(ask, "ClusterNamespaceIsGoing", &message).await?;
                // The watch tells when it is gone.
                return Ok(Outcome::Requeue(LOOK_AGAIN));
            }
            Ok(Desired::Grant(have, granted)) => {
                self.writer.merge(&have, None, granting(&have, &granted)).await?;
            }
            Ok(Desired::Stays) => {}
        }
        let secret = match self.writer.read(&kubeconfig_secret(&contract)).await {
            Ok(secret) => secret,
            Err(Error::Gone) => {
                // Somebody may have revoked it, of which no watch tells.
                self.knowledge.wants_credential(contract);
                return Ok(Outcome::Requeue(SOON));
            }
            Err(error) => return Err(error),
        };
        if !is_of(&secret, self.account(&contract).await?.as_deref()) {
            self.knowledge.wants_credential(contract);
            return Ok(Outcome::Requeue(SOON));
        }
        let Some(kubeconfig) = secret.data.as_ref().and_then(|data| data.get(KUBECONFIG)) else {
            return Ok(Outcome::Requeue(SOON));
        };
        self.answer(ask, &contract, kubeconfig).await
    }

    /// The uid of the account of a cluster namespace: somebody may have deleted it, of which no watch tells.
    async fn account(&self, contract: &str) -> Result<Option<String>, Error> {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(BINDER.to_owned());
        account.metadata.namespace = Some(contract.to_owned());
        match self.writer.read(&account).await {
            Ok(there) => Ok(there.uid()),
            Err(Error::Gone) => Ok(None),
            Err(error) => Err(error),
        }
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
        let at = answered_at(ask);
        let answer = ByteString(response(kubeconfig).to_string().into_bytes());
        let mut secret = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
        secret.metadata.name = Some(at.name.clone());
        secret.metadata.namespace = Some(self.env.namespace.clone());
        let written = match self.writer.read(&secret).await {
            Ok(there) => {
                let patch = answering(&there, ask, &at.key, &answer);
                match self.writer.merge(&there, None, patch).await {
                    // What else is refused may be let later.
                    Err(Error::Refused(why)) if is_no_answer(&there) => {
                        return self.fail(ask, &Refused::Answer(at.name, why)).await;
                    }
                    written => written.map(drop),
                }
            }
            Err(Error::Gone) => {
                secret.metadata.owner_references = ask.controller_owner_ref(&()).map(|owner| vec![owner]);
                secret.data = Some([(at.key.clone(), answer)].into());
                self.writer.put(None, &secret).await.map(drop)
            }
            Err(error) => Err(error),
        };
        written?;
        tracing::info!(request = ask.name_any(), cluster_namespace = contract, "somebody became a consumer");
        let more = json!({"namespace": contract, "kubeconfigSecretRef": at});
        self.say(ask, Phase::Succeeded, ("SecretReady", "the credential is in the Secret"), more).await
    }

    async fn fail(&self, ask: &BindableResourcesRequest, refused: &Refused) -> Result<Outcome, Error> {
        self.env.events.warn(ask.object_ref(&()), "Bind", refused.reason(), &refused.to_string());
        self.say(ask, Phase::Failed, (refused.reason(), &refused.to_string()), json!({})).await
    }

    /// Says what is in the way, once. It is looked at again.
    async fn wait(&self, ask: &BindableResourcesRequest, reason: &str, message: &str) -> Result<(), Error> {
        let mut said = ask.status.iter().flat_map(|status| &status.conditions);
        if said.any(|said| said.reason == reason && said.message == message) {
            return Ok(());
        }
        self.say(ask, Phase::Pending, (reason, message), json!({})).await.map(drop)
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
        if phase != Phase::Pending {
            status["completionTime"] = json!(now);
        }
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
        match left(ended, stays.0, now) {
            Some(left) => Ok(Outcome::Requeue(left)),
            None => self.writer.delete(ask, false).await.map(|()| Outcome::Done),
        }
    }
}
