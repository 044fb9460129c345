//! `freeport bind apiservice`: a cluster uses an API of a provider.

mod request;

use std::path::PathBuf;

use api::{
    bind::{binding::APIServiceBinding, condition::READY, resource::Resource},
    label, name,
    view::Tolerant,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{
    answer::Answer,
    contract::{Ask, contract, offered},
};
use crate::{
    Error, KubeContext, Part, Run,
    cluster::{Cluster, known},
    eraser::Say,
    install::Installer,
    kubeconfig,
    objects::{
        bind::{self, CREDENTIALS, KUBECONFIG, TOLD},
        crds, member, tells,
    },
    rollout,
};

/// What is bound, and where.
#[derive(Clone, Debug)]
pub struct ApiServiceOptions {
    /// Name of the APIServiceBinding, and of the export that it binds.
    pub name: String,
    /// What of it is done here.
    pub halves: Halves,
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
    let ApiServiceOptions { name, halves, run } = options;
    if !name::is_dns_label(name) {
        return Err(Error::Argument(format!(
            "{name:?} cannot be the name of an APIServiceBinding: it must be a DNS label"
        )));
    }
    match halves {
        Halves::Provider { provider, template, identity } => {
            let provider = Cluster::connect(provider).await?;
            // What is printed is for a file. What happens meanwhile is not.
            let aside: Say<'_> = &mut |line| (run.warn)(line);
            let ask = Ask { name, template, identity, called: None };
            let answer = contract(&provider, &ask, run, aside).await?;
            say(answer.yaml(name)?.trim_end());
            Ok(None)
        }
        Halves::Consumer { consumer, file } => {
            let text = std::fs::read(file).map_err(|source| Error::File { path: file.clone(), source })?;
            let answer =
                Answer::read(&text).map_err(|why| Error::Argument(format!("{}: {why}", file.display())))?;
            let consumer = Cluster::connect(consumer).await?;
            kubeconfig::folder_is_of(&consumer, run)?;
            Consumer { cluster: &consumer, name, run }.bind(Some(&answer), say).await
        }
        Halves::Both { provider, template, consumer } => {
            let (provider, consumer) = (Cluster::open(provider).await?, Cluster::open(consumer).await?);
            let (provider, consumer) = (provider.identified().await?, consumer.identified().await?);
            kubeconfig::folder_is_of(&consumer, run)?;
            offered(&provider, template).await?;
            let half = Consumer { cluster: &consumer, name, run };
            if half.is_bound().await? {
                return half.bind(None, say).await;
            }
            let (identity, called) = (consumer.uid.as_str(), Some(consumer.name.as_str()));
            let answer = contract(&provider, &Ask { name, template, identity, called }, run, say).await?;
            half.bind(Some(&answer), say).await
        }
    }
}

/// The consumer's half.
struct Consumer<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    run: &'a Run,
}

impl Consumer<'_> {
    fn bindings(&self) -> Api<Tolerant<APIServiceBinding>> {
        Api::all(self.cluster.client.clone())
    }

    async fn binding(&self) -> Result<Option<APIServiceBinding>, Error> {
        let bindings = self.bindings();
        let read = known(bindings.get(self.name));
        let there = self.cluster.request(format!("read APIServiceBinding {}", self.name), read).await?;
        Ok(there.and_then(|there| there.object.ok()))
    }

    /// The APIs that the binding has installed.
    async fn bound(&self) -> Result<Vec<Resource>, Error> {
        let status = self.binding().await?.and_then(|binding| binding.status).unwrap_or_default();
        let api = |group: String, resource: String| Resource { group, resource, versions: Vec::new() };
        Ok(status.bound_schemas.into_iter().map(|schema| api(schema.group, schema.resource)).collect())
    }

    async fn is_bound(&self) -> Result<bool, Error> {
        Ok(!self.bound().await?.is_empty())
    }

    /// Installs what is needed and, with a credential, asks for the API. Without one it is bound already.
    async fn bind(&self, answer: Option<&Answer>, say: Say<'_>) -> Result<Option<PathBuf>, Error> {
        let target = answer.map(|answer| self.target(answer)).transpose()?;
        let mut here = Installer::new(self.cluster, self.run, say);
        here.install_crds(&crds::member()).await?;
        here.install_crds(&bind::consumer_crds()).await?;
        here.install(Part::Member, &member::objects()).await?;
        here.install(Part::Member, &bind::consumer()).await?;
        let mut apis = self.bound().await?;
        let mut secret = None;
        if let (Some(answer), Some(target)) = (answer, &target) {
            secret = Some(self.keep(&mut here, target, &answer.kubeconfig).await?);
            apis = request::granted(&mut here, self.name, target, answer.request.as_ref()).await?;
        }
        for api in &apis {
            here.install(Part::Member, &bind::bound(api)).await?;
        }
        let kubeconfig = self.run_member(&mut here).await?;
        if let Some(secret) = secret {
            here.install(Part::Member, &[bind::binding(self.name, &secret)]).await?;
        }
        if here.is_to_wait(Part::Member) {
            self.is_ready(&mut here).await?;
        }
        Ok(kubeconfig)
    }

    fn target(&self, answer: &Answer) -> Result<Target, Error> {
        Target::read(&answer.kubeconfig.0)
            .map_err(|why| self.cluster.refuse(format!("the provider's kubeconfig cannot be used: {why}")))
    }

    /// Puts the kubeconfig into the Secret of its contract; the Secret's name.
    async fn keep(
        &self,
        here: &mut Installer<'_>,
        target: &Target,
        kubeconfig: &ByteString,
    ) -> Result<String, Error> {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client.clone(), CREDENTIALS);
        let there = self.cluster.all(&secrets, "").await?;
        let name = place(&there, target);
        here.install(Part::Member, &[bind::credential(&name)]).await?;
        if !self.run.dry_run {
            here.fill(CREDENTIALS, &name, json!({KUBECONFIG: kubeconfig})).await?;
        }
        Ok(name)
    }

    /// The member, with binding. Its kubeconfig, if it runs outside.
    async fn run_member(&self, here: &mut Installer<'_>) -> Result<Option<PathBuf>, Error> {
        if let Some(image) = here.image(label::MEMBER).await? {
            let mut told = here.told_of_binding(label::MEMBER).await?;
            told.retain(|variable| variable.name != TOLD);
            told.push(tells(TOLD, label::TRUE));
            let offloads = here.offloading(None).await?.is_some();
            here.install(Part::Member, &member::workload(&image, offloads, &told)).await?;
        }
        here.kubeconfig(Part::Member, label::MEMBER).await
    }

    /// Waits until the member says that the API is installed and in step.
    async fn is_ready(&self, here: &mut Installer<'_>) -> Result<(), Error> {
        let probe = async || Ok(ready(self.binding().await?.as_ref()));
        let waiting =
            |message: &str| here.say(&format!("waiting for APIServiceBinding {}: {message}", self.name));
        match rollout::wait(self.run.timeout, probe, waiting).await? {
            Ok(message) => {
                for api in self.bound().await? {
                    here.is_served(&api.name()).await?;
                }
                here.say(&format!("APIServiceBinding {} is ready: {message}", self.name));
                Ok(())
            }
            Err(message) => Err(Error::NotReady {
                cluster: self.cluster.name.clone(),
                daemon: label::MEMBER.into(),
                message: format!("APIServiceBinding {}: {message}", self.name),
                limit: self.run.timeout,
            }),
        }
    }
}

/// The Secret that leads there, or a name for one.
fn place(secrets: &[Secret], target: &Target) -> String {
    let leads_there = |secret: &&Secret| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(KUBECONFIG));
        let had = bytes.and_then(|bytes| Target::read(&bytes.0).ok());
        had.is_some_and(|had| had.server() == target.server() && had.namespace == target.namespace)
    };
    if let Some(secret) = secrets.iter().find(leads_there) {
        return secret.name_any();
    }
    let names =
        std::iter::once(target.namespace.clone()).chain((2..).map(|n| format!("{}-{n}", target.namespace)));
    let is_free = |name: &String| {
        // One that was made and not filled yet is ours to fill.
        secrets.iter().all(|secret| secret.name_any() != *name || secret.data.is_none())
    };
    let mut free = names.filter(is_free);
    free.next().unwrap_or_default()
}

/// What the member says of it: what it installed, or what is missing.
fn ready(binding: Option<&APIServiceBinding>) -> Result<String, String> {
    let status = binding.and_then(|binding| binding.status.clone()).unwrap_or_default();
    let Some(ready) = status.conditions.iter().find(|condition| condition.type_ == READY) else {
        return Err("freeport-member has not seen it yet".into());
    };
    if ready.status == "True" {
        let apis: Vec<_> = status
            .bound_schemas
            .iter()
            .map(|schema| format!("{}.{}", schema.resource, schema.group))
            .collect();
        return Ok(format!("{} of {}", apis.join(", "), status.provider_pretty_name.unwrap_or_default()));
    }
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    Err(format!("{}: {}", or_empty(&ready.reason), or_empty(&ready.message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(server: &str) -> ByteString {
        let all = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "cns"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {"token": "t"}}],
        });
        ByteString(all.to_string().into_bytes())
    }

    fn secret(name: &str, server: Option<&str>) -> Secret {
        let mut secret = Secret {
            data: server.map(|server| [(KUBECONFIG.into(), kubeconfig(server))].into()),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.into());
        secret
    }

    #[test]
    fn a_contract_has_one_secret_whatever_it_is_called() {
        let target = Target::read(&kubeconfig("https://leader:6443").0).unwrap();
        assert_eq!(place(&[], &target), "cns");
        assert_eq!(place(&[secret("kubeconfig-x1", Some("https://leader:6443"))], &target), "kubeconfig-x1");
        assert_eq!(place(&[secret("cns", None)], &target), "cns");
        let other = secret("cns", Some("https://other:6443"));
        assert_eq!(place(&[other], &target), "cns-2", "another provider's, of the same identity");
    }

    #[test]
    fn it_is_ready_when_the_member_says_so() {
        let binding = |status: &str| -> APIServiceBinding {
            serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": {"kubeconfigSecretRef": {"namespace": "n", "name": "s", "key": "k"}},
                "status": {"providerPrettyName": "P", "boundSchemas": [{"group": "g", "resource": "m"}],
                    "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "why", "lastTransitionTime": null}]}}))
            .unwrap()
        };
        assert!(ready(None).is_err());
        assert_eq!(ready(Some(&binding("False"))), Err("R: why".into()));
        assert_eq!(ready(Some(&binding("True"))), Ok("m.g of P".into()));
    }
}
