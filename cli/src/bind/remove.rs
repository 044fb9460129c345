//! `freeport bind remove`: ends a binding.

mod contract;
mod going;
mod remainder;

use std::time::{Duration, Instant};

use api::bind::{
    binding::APIServiceBinding,
    condition::{Condition, READY},
    holder::CONTRACT_IN_USE,
    label,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use serde_json::json;

use self::{contract::Contract, going::objects, remainder::Remainder};
use super::{consent, refused};
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    eraser::{Eraser, Say, called, release},
    objects::Object,
    rollout,
};

/// What ends, and how.
#[derive(Clone, Debug)]
pub struct RemoveOptions {
    /// Name of the APIServiceBinding.
    pub name: String,
    /// The consumer.
    pub consumer: KubeContext,
    /// The provider, to end the contract there, too.
    pub provider: Option<KubeContext>,
    /// Who the consumer is to the provider; none: by the uid of its Namespace kube-system.
    pub identity: Option<String>,
    /// The copies at the provider stay.
    pub orphan: bool,
    /// The provider is gone: nobody waits for it.
    pub force: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// How long to wait.
    pub timeout: Duration,
}

/// Deletes the binding, and with it the objects of its APIs, its CRDs, the member's rights on them, and a credential that nobody else
/// uses. Safe to run again: it continues, also without the binding, since rights and credential note its name and go last.
///
/// # Errors
/// Those of [`Error`].
pub async fn remove(options: &RemoveOptions, say: Say<'_>) -> Result<(), Error> {
    let consumer = Cluster::connect(&options.consumer).await?;
    let provider = match &options.provider {
        Some(context) => Some(Cluster::connect(context).await?),
        None => None,
    };
    let binding = binding(&consumer, &options.name).await?;
    let remainder = Remainder::of(&consumer, &options.name, binding.as_ref()).await?;
    let contract = match provider {
        Some(provider) => {
            let identity = options.identity.as_ref().unwrap_or(&consumer.uid);
            Contract::of(&consumer, identity, provider, (&options.name, remainder.contract.as_ref())).await?
        }
        None => None,
    };
    let ending = Ending { cluster: &consumer, contract: contract.as_ref(), options };
    match &binding {
        Some(binding) => ending.end(binding, say).await?,
        None => {
            say(&format!("{}: there is no APIServiceBinding {}", consumer.name, options.name));
            if options.force {
                // A run before this one did not get to its end.
                let crds = consent::left_by(&consumer, &options.name).await?;
                ending.let_objects_go(&mut Eraser::new(&consumer, options.dry_run, say), &crds).await?;
            }
        }
    }
    if let Some(contract) = &contract {
        contract.end(options, (&consumer, &remainder), say).await?;
    }
    remainder.go(&mut Eraser::new(&consumer, options.dry_run, say)).await
}

async fn binding(cluster: &Cluster, name: &str) -> Result<Option<APIServiceBinding>, Error> {
    let bindings: Api<APIServiceBinding> = Api::all(cluster.client.clone());
    cluster.request(format!("read APIServiceBinding {name}"), known(bindings.get(name))).await
}

struct Ending<'a> {
    cluster: &'a Cluster,
    /// At the provider, if that was named.
    contract: Option<&'a Contract>,
    options: &'a RemoveOptions,
}

impl Ending<'_> {
    async fn end(&self, binding: &APIServiceBinding, say: Say<'_>) -> Result<(), Error> {
        let options = self.options;
        let reason = said(binding, "Connected").and_then(|said| said.reason.as_deref());
        let why = match reason {
            Some("Evicted") => {
                Some("the provider has ended it, so nobody can say what becomes of copies there")
            }
            Some(CONTRACT_IN_USE) => {
                Some("another cluster uses it, so copies there are not this one's to delete")
            }
            _ => None,
        };
        if let Some(why) = why.filter(|_| !options.force) {
            return Err(self.cluster.refuse(format!(
                "the contract of {} cannot be ended from here: {why}; nothing was changed; run it with --force to remove what is in this cluster",
                options.name
            )));
        }
        let crds = consent::brought(self.cluster, binding).await?;
        for crd in &crds {
            let count = objects(self.cluster, crd).await?.len();
            let copies = match options {
                RemoveOptions { orphan: true, .. } => "their copies at the provider stay",
                RemoveOptions { force: true, .. } => {
                    "and nobody waits for their copies at the provider, which may stay"
                }
                _ => "with their copies at the provider",
            };
            say(&format!("{}: {count} objects of {} go, {copies}", self.cluster.name, crd.name_any()));
        }
        let object = Object { body: json!(binding), ..called_binding(&options.name) };
        let mut here = Eraser::new(self.cluster, options.dry_run, say);
        if options.orphan {
            let patch = json!({"metadata": {"annotations": {label::DELETION_POLICY: label::ORPHAN}}});
            here.change(&object, &patch, "copies stay at the provider").await?;
        }
        here.delete(&object).await?;
        if options.force {
            self.let_go(&mut here, &crds, &object).await?;
        }
        match options.dry_run {
            true => Ok(()),
            false => self.is_gone(&crds, &object, &mut here).await,
        }
    }

    /// Does what the member would do if it still reached the provider: without asking anybody. What others hold waits for them.
    async fn let_go(
        &self,
        here: &mut Eraser<'_>,
        crds: &[CustomResourceDefinition],
        binding: &Object,
    ) -> Result<(), Error> {
        self.let_objects_go(here, crds).await?;
        release(here, binding.clone(), label::BIND_FINALIZER, "it does not wait for the provider").await
    }

    /// In this order the member, which runs beside, cannot hold any of them again: of a CRD that goes there are no new objects, and to an object
    /// that goes nobody adds a finalizer.
    async fn let_objects_go(
        &self,
        here: &mut Eraser<'_>,
        crds: &[CustomResourceDefinition],
    ) -> Result<(), Error> {
        for crd in crds {
            here.delete(&Object::new(crd)).await?;
        }
        for crd in crds {
            for object in objects(self.cluster, crd).await? {
                here.delete(&object).await?;
                if let Some(now) = here.read(&object).await? {
                    release(here, now, label::FINALIZER, "it does not wait for its copy").await?;
                }
            }
        }
        Ok(())
    }

    /// Waits until the binding and its CRDs are gone.
    async fn is_gone(
        &self,
        crds: &[CustomResourceDefinition],
        object: &Object,
        here: &mut Eraser<'_>,
    ) -> Result<(), Error> {
        let (name, limit, begun) = (&self.options.name, self.options.timeout, Instant::now());
        let probe = async || self.left(crds, begun).await;
        let waiting =
            |message: &str| here.say(&format!("waiting for APIServiceBinding {name} to go: {message}"));
        let Err(message) = rollout::wait(limit, probe, waiting).await? else { return Ok(()) };
        let there = self.contract.map(Contract::place);
        let held = going::told(&going::of_binding(self.cluster, there, crds, object).await?);
        Err(Error::Timeout {
            cluster: self.cluster.name.clone(),
            missing: format!("{object} still exists ({message}). {held}. {}", self.next()),
            limit,
        })
    }

    /// Nothing, or what is not gone yet. Fails where the member reports that API servers refuse its writes, unless nobody waits for it.
    async fn left(
        &self,
        crds: &[CustomResourceDefinition],
        begun: Instant,
    ) -> Result<Result<(), String>, Error> {
        let Some(binding) = binding(self.cluster, &self.options.name).await? else {
            for crd in crds {
                let there = self.cluster.read(&Object::new(crd)).await?;
                if there.is_some_and(|there| there.metadata().uid == crd.uid()) {
                    return Ok(Err(format!("{} is still served", crd.name_any())));
                }
            }
            return Ok(Ok(()));
        };
        if !self.options.force {
            refused::stop(self.cluster, &binding, (begun, self.options.timeout))?;
        }
        let mut left = 0;
        for crd in crds {
            left += objects(self.cluster, crd).await?.len();
        }
        let says = said(&binding, READY).and_then(|said| said.message.clone());
        let says = says.map(|says| format!("; the member says: {says}"));
        Ok(Err(format!("{left} objects left{}", says.unwrap_or_default())))
    }

    /// What to do when it is known what holds it.
    fn next(&self) -> String {
        let mut next = "Resolve that, and run this again".to_owned();
        if self.contract.is_none() && !self.options.force {
            next.push_str("; --provider-context shows what holds copies at the provider");
        }
        if !self.options.force {
            next.push_str("; if the provider is gone for good, run it with --force");
        }
        next
    }
}

fn said<'a>(binding: &'a APIServiceBinding, type_: &str) -> Option<&'a Condition> {
    let mut said = binding.status.iter().flat_map(|status| &status.conditions);
    said.find(|condition| condition.type_ == type_)
}

fn called_binding(name: &str) -> Object {
    Object { namespace: None, ..called::<APIServiceBinding>("", name) }
}
