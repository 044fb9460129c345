//! `freeport bind remove`: ends a binding.

mod contract;

use std::time::Duration;

use api::{
    bind::{binding::APIServiceBinding, label, resource::Resource},
    view::Tolerant,
};
use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt, api::ApiResource};
use serde_json::json;

use self::contract::Contract;
use crate::{
    Error, KubeContext,
    cluster::{Cluster, known},
    eraser::{Eraser, Say, called},
    objects::{
        Object,
        bind::{self, CREDENTIALS, KUBECONFIG},
    },
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
/// uses. Safe to run again: it continues.
///
/// # Errors
/// Those of [`Error`].
pub async fn remove(options: &RemoveOptions, say: Say<'_>) -> Result<(), Error> {
    let consumer = Cluster::connect(&options.consumer).await?;
    let provider = match &options.provider {
        Some(context) => Some(Cluster::connect(context).await?),
        None => None,
    };
    let ending = Ending { cluster: &consumer, options };
    let binding = ending.binding().await?;
    let secret = binding.as_ref().map(|binding| binding.spec.kubeconfig_secret_ref.name.clone());
    let contract = ending.contract(secret.as_deref()).await?;
    let contract = match (provider, contract) {
        (Some(provider), Some(name)) => Some(Contract::of(&consumer, provider, name).await?),
        _ => None,
    };
    match &binding {
        Some(binding) => ending.end(binding, secret.as_deref(), say).await?,
        None => say(&format!("{}: there is no APIServiceBinding {}", consumer.name, options.name)),
    }
    match contract {
        Some(contract) => contract.end(options, say).await,
        None => Ok(()),
    }
}

struct Ending<'a> {
    cluster: &'a Cluster,
    options: &'a RemoveOptions,
}

impl Ending<'_> {
    async fn binding(&self) -> Result<Option<APIServiceBinding>, Error> {
        let bindings: Api<APIServiceBinding> = Api::all(self.cluster.client.clone());
        let read = known(bindings.get(&self.options.name));
        self.cluster.request(format!("read APIServiceBinding {}", self.options.name), read).await
    }

    /// The cluster namespace that the credential leads to.
    async fn contract(&self, secret: Option<&str>) -> Result<Option<String>, Error> {
        let Some(name) = secret else { return Ok(None) };
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), CREDENTIALS);
        let read = known(secrets.get(name));
        let found = self.cluster.request(format!("read Secret {CREDENTIALS}/{name}"), read).await?;
        let bytes = found.and_then(|secret| secret.data?.remove(KUBECONFIG));
        Ok(bytes.and_then(|bytes| Target::read(&bytes.0).ok()).map(|target| target.namespace))
    }

    async fn end(
        &self,
        binding: &APIServiceBinding,
        secret: Option<&str>,
        say: Say<'_>,
    ) -> Result<(), Error> {
        let options = self.options;
        let crds = self.crds(binding).await?;
        for crd in &crds {
            let count = self.objects(crd).await?.len();
            let copies = if options.orphan {
                "their copies at the provider stay"
            } else {
                "with their copies at the provider"
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
        if !options.dry_run {
            self.is_gone(&crds, &mut here).await?;
        }
        for crd in &crds {
            for object in bind::bound(&api_of(crd)) {
                here.delete_ours(&object).await?;
            }
        }
        match secret {
            Some(secret) if !self.is_used(secret).await? => {
                here.delete_ours(&called::<Secret>(CREDENTIALS, secret)).await
            }
            _ => Ok(()),
        }
    }

    /// The CRDs that the binding brought.
    async fn crds(&self, binding: &APIServiceBinding) -> Result<Vec<CustomResourceDefinition>, Error> {
        let crds: Api<Tolerant<CustomResourceDefinition>> = Api::all(self.cluster.client.clone());
        let all = self.cluster.all(&crds, "").await?;
        let uid = binding.uid();
        let is_its = |crd: &CustomResourceDefinition| {
            crd.owner_references().iter().any(|owner| Some(&owner.uid) == uid.as_ref())
        };
        Ok(all.into_iter().filter_map(|crd| crd.object.ok()).filter(is_its).collect())
    }

    async fn objects(&self, crd: &CustomResourceDefinition) -> Result<Vec<Object>, Error> {
        let Some(resource) = resource(crd) else { return Ok(Vec::new()) };
        let objects = self.cluster.metadata(&resource, None);
        let found = self.cluster.pages(&crd.name_any(), &objects, "").await?;
        let object = |found: &api::view::Meta<_>| Object {
            resource: resource.clone(),
            name: found.name_any(),
            namespace: found.namespace(),
            body: json!({"metadata": found.metadata}),
        };
        Ok(found.iter().map(object).collect())
    }

    /// Does what the member would do if it still reached the provider: without asking anybody.
    async fn let_go(
        &self,
        here: &mut Eraser<'_>,
        crds: &[CustomResourceDefinition],
        binding: &Object,
    ) -> Result<(), Error> {
        for crd in crds {
            for object in self.objects(crd).await? {
                let held = object.metadata().finalizers.unwrap_or_default();
                let left: Vec<_> = held.iter().filter(|held| *held != label::FINALIZER).collect();
                let patch = json!({"metadata": {"finalizers": left}});
                here.change(&object, &patch, "it does not wait for its copy").await?;
                here.delete(&object).await?;
            }
            here.delete(&Object::new(crd)).await?;
        }
        let patch = json!({"metadata": {"finalizers": null}});
        here.change(binding, &patch, "it does not wait for the provider").await
    }

    /// Waits until the binding and its CRDs are gone.
    async fn is_gone(&self, crds: &[CustomResourceDefinition], here: &mut Eraser<'_>) -> Result<(), Error> {
        let probe = async || {
            if self.binding().await?.is_none() {
                for crd in crds {
                    let there = self.cluster.read(&Object::new(crd)).await?;
                    if there.is_some_and(|there| there.metadata().uid == crd.uid()) {
                        return Ok(Err(format!("{} is still served", crd.name_any())));
                    }
                }
                return Ok(Ok(()));
            }
            let mut left = 0;
            for crd in crds {
                left += self.objects(crd).await?.len();
            }
            Ok(Err(format!("{left} objects left")))
        };
        let (name, limit) = (&self.options.name, self.options.timeout);
        let waiting =
            |message: &str| here.say(&format!("waiting for APIServiceBinding {name} to go: {message}"));
        rollout::wait(limit, probe, waiting).await?.map_err(|message| Error::Timeout {
            cluster: self.cluster.name.clone(),
            missing: format!(
                "APIServiceBinding {name} is still there: {message}; if the provider is gone for good, run it again with --force"
            ),
            limit,
        })
    }

    /// Whether another binding uses the credential.
    async fn is_used(&self, secret: &str) -> Result<bool, Error> {
        let bindings: Api<Tolerant<APIServiceBinding>> = Api::all(self.cluster.client.clone());
        let all = self.cluster.all(&bindings, "").await?;
        // One that does not decode may use it.
        Ok(all.iter().any(|other| match &other.object {
            Ok(binding) => {
                binding.name_any() != self.options.name && binding.spec.kubeconfig_secret_ref.name == secret
            }
            Err(_) => true,
        }))
    }
}

fn called_binding(name: &str) -> Object {
    Object { namespace: None, ..called::<APIServiceBinding>("", name) }
}

fn api_of(crd: &CustomResourceDefinition) -> Resource {
    Resource { group: crd.spec.group.clone(), resource: crd.spec.names.plural.clone(), versions: Vec::new() }
}

/// Its objects, in the first version that is served.
fn resource(crd: &CustomResourceDefinition) -> Option<ApiResource> {
    let version = crd.spec.versions.iter().find(|version| version.served)?;
    Some(ApiResource {
        group: crd.spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", crd.spec.group, version.name),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
    })
}
