//! `freeport bind apiservice`: a cluster uses an API of a provider.

mod again;
mod credential;
mod holder;
mod known;
mod namespaces;
mod readiness;
mod request;

use std::path::PathBuf;

use api::{
    bind::{binding::APIServiceBinding, resource::Resource},
    label, name,
    view::Tolerant,
};
use kube::Api;

use self::{credential::contract_of, known::Known, request::Contract};
use super::{
    answer::Answer,
    consent,
    contract::{Ask, contract, offered, preview},
};
use crate::{
    Error, KubeContext, Part, Run,
    cluster::{Cluster, known, list},
    eraser::Say,
    install::Installer,
    kubeconfig,
    objects::{
        bind::{self, TOLD, naming::is_bindable},
        crds, member, tells,
    },
    outside,
};

/// What is bound, and where.
#[derive(Clone, Debug)]
pub struct ApiServiceOptions {
    /// Name of the APIServiceBinding, and of the export that it binds.
    pub name: String,
    /// What of it is done here.
    pub halves: Halves,
    /// APIs that the member may have beside those that are asked for, each as `PLURAL.GROUP`.
    pub agree: Vec<String>,
    /// The contract becomes this cluster's although another one holds it, which is gone.
    pub take_over: bool,
    /// How it is done.
    pub run: Run,
}

/// One person may do both halves, or two people one each.
#[derive(Clone, Debug)]
pub enum Halves {
    /// Both.
    Both {
        /// The provider.
        provider: KubeContext,
        /// What is wanted of it.
        template: String,
        /// The consumer.
        consumer: KubeContext,
    },
    /// The provider's: says, as YAML, what the consumer's half takes.
    Provider {
        /// The provider.
        provider: KubeContext,
        /// What is wanted of it.
        template: String,
        /// Who the consumer is: the uid of its Namespace kube-system.
        identity: String,
    },
    /// The consumer's, with what the provider's half said.
    Consumer {
        /// The consumer.
        consumer: KubeContext,
        /// A file with it.
        file: PathBuf,
    },
}

/// Makes the cluster a consumer, asks for the API, and installs it. Safe to run again: it changes only what differs. Returns the
/// member's kubeconfig, if it runs outside.
///
/// # Errors
/// Those of [`Error`]. Arguments and the state of the clusters are checked before anything is changed.
pub async fn bind_apiservice(options: &ApiServiceOptions, say: Say<'_>) -> Result<Option<PathBuf>, Error> {
    let ApiServiceOptions { name, halves, agree, take_over, run } = options;
    if !name::is_dns_label(name) {
        return Err(Error::Argument(format!(
            "{name:?} cannot be the name of an APIServiceBinding: it must be a DNS label"
        )));
    }
    let agree = agree.iter().map(|name| written(name)).collect::<Result<Vec<_>, _>>()?;
    match halves {
        Halves::Provider { provider, template, identity } => {
            let provider = Cluster::connect(provider).await?;
            // What is printed is for a file. What happens meanwhile is not.
            let aside: Say<'_> = &mut |line| (run.aside)(line);
            let spec = offered(&provider, template).await?;
            let ask = Ask { name, template, identity, called: None };
            if run.dry_run {
                say(&preview(&provider, &ask).await?);
                return Ok(None);
            }
            let answer = contract(&provider, &ask, spec, run, aside).await?;
            say(answer.yaml(name)?.trim_end());
            Ok(None)
        }
        Halves::Consumer { consumer, file } => {
            let text = std::fs::read(file).map_err(|source| Error::File { path: file.clone(), source })?;
            let answer =
                Answer::read(&text).map_err(|why| Error::Argument(format!("{}: {why}", file.display())))?;
            let consumer = Cluster::connect(consumer).await?;
            kubeconfig::folder_is_of(&consumer, run)?;
            outside::is_no_member(&consumer, run).await?;
            let half = Consumer { cluster: &consumer, name, agree: &agree, take_over: *take_over, run };
            Box::pin(half.bind(Some(&answer), say)).await
        }
        Halves::Both { provider, template, consumer } => {
            let (provider, consumer) = (Cluster::open(provider).await?, Cluster::open(consumer).await?);
            let (provider, consumer) = (provider.identified().await?, consumer.identified().await?);
            kubeconfig::folder_is_of(&consumer, run)?;
            outside::is_no_member(&consumer, run).await?;
            let spec = offered(&provider, template).await?;
            let half = Consumer { cluster: &consumer, name, agree: &agree, take_over: *take_over, run };
            let binding = half.binding().await?;
            if let Some(binding) = &binding {
                let exported = consent::exported(Some(binding));
                half.has_all(&exported, &spec.resources)?;
                if half.is_whole(binding, &provider).await? && !exported.is_empty() {
                    half.stays(&provider, (template, &spec.resources), &exported, say).await?;
                    return Box::pin(half.bind(None, say)).await;
                }
            }
            consent::may_be_bound(&consumer, &spec.resources, binding.as_ref()).await?;
            let names: Vec<_> = spec.resources.iter().map(Resource::name).collect();
            say(&format!("{}: template {template} has {}", provider.name, list(&names)));
            let (identity, called) = (consumer.uid.as_str(), Some(consumer.name.as_str()));
            let ask = Ask { name, template, identity, called };
            let answer = contract(&provider, &ask, spec, run, say).await?;
            Box::pin(half.bind(Some(&answer), say)).await
        }
    }
}

/// The API that is written `PLURAL.GROUP`, if a member can have it.
fn written(name: &str) -> Result<Resource, Error> {
    let api = consent::named(name).filter(|api| is_bindable(api).is_ok());
    api.ok_or_else(|| Error::Argument(format!("--agree {name:?} must be PLURAL.GROUP, as CRDs are named")))
}

/// The consumer's half.
struct Consumer<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    agree: &'a [Resource],
    take_over: bool,
    run: &'a Run,
}

impl Consumer<'_> {
    async fn binding(&self) -> Result<Option<APIServiceBinding>, Error> {
        let bindings: Api<Tolerant<APIServiceBinding>> = Api::all(self.cluster.client.clone());
        let read = known(bindings.get(self.name));
        let there = self.cluster.request(format!("read APIServiceBinding {}", self.name), read).await?;
        let binding = there.and_then(|there| there.object.ok());
        match binding.as_ref().is_some_and(|binding| binding.metadata.deletion_timestamp.is_some()) {
            true => Err(self.cluster.refuse(format!(
                "APIServiceBinding {} is being deleted: nothing was changed; run this again when it is gone (freeport bind remove {} waits for that)",
                self.name, self.name
            ))),
            false => Ok(binding),
        }
    }

    /// Installs what is needed and, with a credential, asks for the API. Without one it is bound already. The member gets rights on APIs that
    /// somebody agreed to and the provider exports; what is more is refused before anything is changed, or else before there are rights.
    async fn bind(&self, answer: Option<&Answer>, say: Say<'_>) -> Result<Option<PathBuf>, Error> {
        let known = Known::of(self.cluster, self.name, self.binding().await?).await?;
        let wanted = answer.and_then(|answer| answer.request.as_ref());
        let target = answer.map(|answer| self.target(answer)).transpose()?;
        let asked: Vec<_> =
            wanted.iter().flat_map(|wanted| &wanted.resources).chain(self.agree).cloned().collect();
        let agreed = [known.agreed.as_slice(), &asked].concat();
        let contract = match &target {
            Some(target) if !self.run.dry_run => Some(Contract::connect(self.cluster, target)?),
            _ => None,
        };
        let uid = match &contract {
            Some(contract) => contract.is_of(self.cluster, self.take_over).await?,
            None => known.binding.as_ref().and_then(|binding| contract_of(binding).map(str::to_owned)),
        };
        let exported = match &contract {
            Some(contract) => contract.exported(self.name).await?,
            None => Some(known.exported.clone()),
        };
        if let (Some(binding), Some(target)) = (&known.binding, &target) {
            self.is_its(binding, target, uid.as_deref(), exported.as_deref()).await?;
        }
        // Of a contract that is not asked for yet nobody knows.
        let there = exported.as_deref().filter(|there| !there.is_empty());
        if let Some(wanted) = wanted {
            self.has_all(there.unwrap_or_default(), &wanted.resources)?;
        }
        self.agrees_to(there)?;
        consent::may_be_bound(self.cluster, &asked, known.binding.as_ref()).await?;
        consent::is_within(self.cluster, self.name, exported.as_deref().unwrap_or_default(), &agreed)?;

        if let Some(contract) = &contract {
            contract.hold(self.cluster, self.take_over).await?;
        }
        let mut here = Installer::new(self.cluster, self.run, say);
        here.install_crds(&crds::member()).await?;
        here.install_crds(&bind::consumer_crds()).await?;
        here.install(Part::Member, &member::objects()).await?;
        here.install(Part::Member, &bind::consumer()).await?;
        let mut secret = None;
        if let (Some(answer), Some(target)) = (answer, &target) {
            secret = Some(self.keep(&mut here, target, &answer.kubeconfig, known.binding.as_ref()).await?);
        }
        let apis = match (&target, &contract) {
            (Some(_), Some(contract)) => {
                let apis = self.granted(&mut here, contract, exported, wanted, &agreed).await?;
                self.agrees_to(Some(&apis))?;
                apis
            }
            (Some(target), None) => {
                request::preview(&mut here, self.name, target, wanted)?;
                asked
            }
            (None, _) => known.still(self.agree),
        };
        self.give(&mut here, &known, &apis).await?;
        self.let_make(&mut here, wanted).await?;
        let kubeconfig = self.run_member(&mut here).await?;
        if let Some(secret) = secret {
            here.install(Part::Member, &[bind::binding(self.name, &secret, uid.as_deref())]).await?;
        }
        here.sum_up();
        if here.is_to_wait(Part::Member) {
            self.is_ready(&mut here).await?;
        }
        Ok(kubeconfig)
    }

    /// An error if somebody agrees to what the provider does not export, where that is known.
    fn agrees_to(&self, exported: Option<&[Resource]>) -> Result<(), Error> {
        let Some(exported) = exported else { return Ok(()) };
        consent::is_there(self.agree, exported).map_err(|why| self.cluster.refuse(why))
    }

    /// The member's rights on these APIs.
    async fn give(&self, here: &mut Installer<'_>, known: &Known, apis: &[Resource]) -> Result<(), Error> {
        for api in apis {
            is_bindable(api).map_err(|unfit| self.cluster.refuse(unfit.to_string()))?;
            let bindings = known.bindings_of(api, self.name);
            let rights = bind::bound(api).map(|object| bind::noted(object, &bindings));
            here.install(Part::Member, &rights).await?;
        }
        Ok(())
    }

    /// The member, with binding. Its kubeconfig, if it runs outside.
    async fn run_member(&self, here: &mut Installer<'_>) -> Result<Option<PathBuf>, Error> {
        if let Some(image) = here.image(label::MEMBER).await? {
            let mut told = here.told(label::MEMBER).await?;
            told.retain(|variable| variable.name != TOLD);
            told.push(tells(TOLD, label::TRUE));
            let offloads = here.offloading(None).await?.is_some();
            let replicas = here.replicas(label::MEMBER).await?;
            let workload = member::workload(&image, replicas, offloads, &told);
            here.run_daemon(Part::Member, label::MEMBER, &workload).await?;
        }
        here.kubeconfig(Part::Member, label::MEMBER).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_agreed_to_is_the_api_of_a_crd() {
        assert_eq!(written("mangodbs.example.com").unwrap().name(), "mangodbs.example.com");
        for wrong in ["mangodbs", "*.*", "secrets.", "deployments.apps", "roles.rbac.authorization.k8s.io"] {
            assert!(written(wrong).unwrap_err().to_string().contains("PLURAL.GROUP"), "{wrong}");
        }
    }
}
