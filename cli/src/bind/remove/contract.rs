//! The provider's half of ending a binding: the export and, with the last one, the contract.

use std::collections::BTreeMap;

use api::{
    bind::{export::APIServiceExport, label},
    view::Meta,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, core::ObjectMeta};

use super::RemoveOptions;
use crate::{
    Error,
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
        consumer: &Cluster,
        provider: Cluster,
        named: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let name = match named {
            Some(name) => name.to_owned(),
            None => match by_identity(&provider, &consumer.uid).await? {
                Some(name) => name,
                None => return Ok(None),
            },
        };
        let namespace = Object { namespace: None, ..called::<Namespace>("", &name) };
        let there = provider.read(&namespace).await?;
        match there.and_then(|there| not_of(&there.metadata(), &consumer.uid)) {
            Some(why) => Err(provider.refuse(format!(
                "the credential of {} leads to {namespace}, which {why}: it is not touched; without --provider-context the binding alone is removed",
                consumer.name
            ))),
            None => Ok(Some(Self { provider, namespace })),
        }
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
        let probe = async || match provider.read(&self.namespace).await? {
            None => Ok(Ok(())),
            Some(_) => Ok(Err("what was made for its consumer goes first".to_owned())),
        };
        let waiting = |message: &str| there.say(&format!("waiting for {} to go: {message}", self.namespace));
        rollout::wait(options.timeout, probe, waiting).await?.map_err(|message| Error::Timeout {
            cluster: provider.name.clone(),
            missing: format!("{} is still there: {message}", self.namespace),
            limit: options.timeout,
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
