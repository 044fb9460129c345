//! The provider's half of ending a binding: the export and, with the last one, the contract.

use std::time::Duration;

use api::bind::{binding::ClusterBinding, export::APIServiceExport, holder::Other};
use k8s_openapi::api::core::v1::Namespace;
use kit::client::kubeconfig::Target;
use kube::Api;

use super::{RemoveOptions, going, remainder::Remainder};
use crate::{
    Error,
    bind::{
        holder::other,
        parties::{NotOf, by_identity, not_of, not_with},
    },
    cluster::{Cluster, known},
    eraser::{Eraser, Say, called},
    objects::Object,
    rollout,
};

/// Who else than the consumer holds the contract in this Namespace.
async fn held_by_other(
    provider: &Cluster,
    namespace: &str,
    consumer: &Cluster,
) -> Result<Option<Other>, Error> {
    let bindings = Api::<ClusterBinding>::namespaced(provider.client.clone(), namespace);
    let doing = format!("read ClusterBinding {namespace}/cluster");
    let binding = provider.request(doing, known(bindings.get("cluster"))).await?;
    other(consumer, &binding.and_then(|binding| binding.status).unwrap_or_default()).await
}

/// The provider's half.
pub(super) struct Contract {
    provider: Cluster,
    /// The cluster namespace.
    namespace: Object,
}

impl Contract {
    /// The Namespace that a Secret of the consumer names, if it is this consumer's: it is going to be deleted with the rights of an administrator
    /// of the provider. Where no Secret is left, the consumer's by its identity; none if there is none.
    pub(super) async fn of(
        consumer: &Cluster,
        identity: &str,
        provider: Cluster,
        (binding, named): (&str, Option<&Target>),
    ) -> Result<Option<Self>, Error> {
        let name = match named {
            Some(target) => match not_with(&provider, &consumer.name, target).await? {
                Some(why) => {
                    return Err(provider
                        .refuse(format!("{why}; without --provider-context the binding alone is removed")));
                }
                None => target.namespace.clone(),
            },
            None => match by_identity(&provider, identity).await? {
                Some(name) => name,
                None => return Ok(None),
            },
        };
        let namespace = Object { namespace: None, ..called::<Namespace>("", &name) };
        let there = provider.read(&namespace).await?;
        match there.and_then(|there| not_of(&there.metadata(), identity)) {
            Some(why) => Err(provider.refuse(format!(
                "the credential of {} leads to {namespace}, which {why}: it is not touched; {}without --provider-context the binding alone is removed",
                consumer.name,
                hint(&why, &name, binding)
            ))),
            None => match held_by_other(&provider, &name, consumer).await? {
                Some(other) => Err(provider.refuse(format!(
                    "the contract in {namespace} is in use by {other}, and not by {}: it is not touched; without --provider-context the binding alone is removed",
                    consumer.name
                ))),
                None => Ok(Some(Self { provider, namespace })),
            },
        }
    }

    /// The provider, and the name of the cluster namespace.
    pub(super) fn place(&self) -> (&Cluster, &str) {
        (&self.provider, &self.namespace.name)
    }

    /// Ends the export and, with the last one, the contract; unless the copies are to stay, which would go with it. Where no Secret of the
    /// consumer says that the binding was with this contract, an export of its name has to.
    pub(super) async fn end(
        &self,
        options: &RemoveOptions,
        (consumer, remainder): (&Cluster, &Remainder),
        say: Say<'_>,
    ) -> Result<(), Error> {
        let is_named = remainder.contract.is_some();
        let (provider, contract) = (&self.provider, self.namespace.name.as_str());
        let mut there = Eraser::new(provider, options.dry_run, say);
        let export = called::<APIServiceExport>(contract, &options.name);
        if !is_named && there.read(&export).await?.is_none() {
            there.say(&format!(
                "{} stays: nothing says that {} was bound in it",
                self.namespace, options.name
            ));
            return Ok(());
        }
        there.delete(&export).await?;
        if options.orphan {
            there.say(&format!("the contract in {} stays: the copies would go with it", self.namespace));
            return Ok(());
        }
        let left: Vec<_> = there.list::<APIServiceExport>(Some(contract), "").await?;
        if left.iter().any(|export| export.name != options.name) {
            there.say(&format!("the contract in {} stays: other APIs of it are bound", self.namespace));
            return Ok(());
        }
        let noted: Vec<_> = remainder.others_noted(consumer).await?.into_iter().collect();
        if let Some(first) = noted.first() {
            there.say(&format!(
                "the contract in {} stays: its credential is also for {} (`freeport bind remove {first}` with --provider-context ends it, also \
                 where there is no such APIServiceBinding)",
                self.namespace,
                noted.join(", ")
            ));
            return Ok(());
        }
        there.delete(&self.namespace).await?;
        if options.dry_run {
            return Ok(());
        }
        self.is_gone(&mut there, options.timeout).await
    }

    /// Waits until the contract is gone.
    async fn is_gone(&self, there: &mut Eraser<'_>, limit: Duration) -> Result<(), Error> {
        let probe = async || match self.provider.read(&self.namespace).await? {
            None => Ok(Ok(())),
            Some(_) => Ok(Err("what was made for its consumer goes first".to_owned())),
        };
        let waiting = |message: &str| there.say(&format!("waiting for {} to go: {message}", self.namespace));
        let Err(_) = rollout::wait(limit, probe, waiting).await? else { return Ok(()) };
        let held = going::told(&going::of_contract(&self.provider, &self.namespace).await?);
        Err(Error::Timeout {
            cluster: self.provider.name.clone(),
            missing: format!("{} still exists. {held}. Resolve that, and run this again", self.namespace),
            limit,
        })
    }
}

/// Returns what to do at the provider about a binding whose credential leads to this Namespace, which is not this consumer's.
fn hint(why: &NotOf, namespace: &str, binding: &str) -> String {
    match why {
        NotOf::NoContract => format!(
            "if kube-bind's backend made it, `kubectl --namespace {namespace} delete apiserviceexport {binding}` ends its export there; "
        ),
        NotOf::Another(identity, _) => format!("if that is this consumer, add `--identity {identity}`; "),
        NotOf::NoIdentity => String::new(),
    }
}
