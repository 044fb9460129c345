//! The provider's half of ending a binding: the export and, with the last one, the contract.

use std::{collections::BTreeMap, time::Duration};

use api::{
    bind::{export::APIServiceExport, label},
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kit::client::kubeconfig::Target;
use kube::{Api, ResourceExt, core::ObjectMeta};

use super::{RemoveOptions, going};
use crate::{
    Error,
    bind::parties::not_with,
    cluster::Cluster,
    eraser::{Eraser, Say, called},
    objects::Object,
    rollout,
};

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
        consumer: &str,
        identity: &str,
        provider: Cluster,
        named: Option<&Target>,
    ) -> Result<Option<Self>, Error> {
        let name = match named {
            Some(target) => match not_with(&provider, consumer, target).await? {
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
                "the credential of {consumer} leads to {namespace}, which {why}: it is not touched; if the contract was asked for with another \
                 --identity, say that again; without --provider-context the binding alone is removed"
            ))),
            None => Ok(Some(Self { provider, namespace })),
        }
    }

    /// The provider, and the name of the cluster namespace.
    pub(super) fn place(&self) -> (&Cluster, &str) {
        (&self.provider, &self.namespace.name)
    }

    /// Ends the export and, with the last one, the contract; unless the copies are to stay, which would go with it. Where the consumer has
    /// nothing of such a binding (`was_bound`), an export of its name has to say that there was one.
    pub(super) async fn end(
        &self,
        options: &RemoveOptions,
        was_bound: bool,
        say: Say<'_>,
    ) -> Result<(), Error> {
        let (provider, contract) = (&self.provider, self.namespace.name.as_str());
        let mut there = Eraser::new(provider, options.dry_run, say);
        let export = called::<APIServiceExport>(contract, &options.name);
        if !was_bound && there.read(&export).await?.is_none() {
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
            missing: format!(
                "{} is not gone. {held}. See to that, and run it again. It gave up",
                self.namespace
            ),
            limit,
        })
    }
}

/// The cluster namespace of the consumer with this uid.
async fn by_identity(provider: &Cluster, consumer: &str) -> Result<Option<String>, Error> {
    let namespaces: Api<Meta<Namespace>> = Api::all(provider.client.clone());
    let contracts = provider.all(&namespaces, &format!("{}={}", label::BIND, label::CONTRACT)).await?;
    let found = contracts.iter().find(|namespace| not_of(&namespace.metadata, consumer).is_none());
    Ok(found.map(ResourceExt::name_any))
}

/// Why a Namespace of a provider is not the cluster namespace of the consumer with this uid.
fn not_of(namespace: &ObjectMeta, consumer: &str) -> Option<String> {
    let says = |of: &Option<BTreeMap<String, String>>, key: &str| of.as_ref()?.get(key).cloned();
    if says(&namespace.labels, label::BIND).as_deref() != Some(label::CONTRACT) {
        return Some(format!("has no label {}={}", label::BIND, label::CONTRACT));
    }
    match says(&namespace.annotations, label::IDENTITY) {
        Some(identity) if !consumer.is_empty() && identity == consumer => None,
        Some(identity) => {
            Some(format!("is of the consumer with the identity {identity:?}, and this one has {consumer:?}"))
        }
        None => Some(format!("has no annotation {}", label::IDENTITY)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_that_is_not_of_the_consumer_is_not_touched() {
        let why = |label: &str, identity: Option<&str>| {
            let annotations = identity.map(|identity| json!({label::IDENTITY: identity}));
            let metadata = json!({"labels": {label::BIND: label}, "annotations": annotations});
            not_of(&serde_json::from_value(metadata).unwrap(), "u1")
        };
        assert_eq!(why(label::CONTRACT, Some("u1")), None);
        assert!(why(label::CONTRACT, Some("u2")).unwrap().contains("\"u2\""));
        assert!(why(label::CONTRACT, None).unwrap().contains("no annotation"));
        assert!(why(label::OBJECTS, Some("u1")).unwrap().contains("bind=contract"));
        assert!(not_of(&ObjectMeta::default(), "u1").is_some(), "kube-system, for example");
    }
}
